"""Who merges what the devices send into windows: the job in Spark, or a gateway without it."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

from lasp_edge.language.declarations import DynamicFold, StreamResult, Window
from simulations.demo.lake import Row, all_windows, current_globals, current_rows, current_windows


class Merging(NamedTuple):
    """Who merges, and what is said of it.

    Attributes:
        is_spark: the job in Spark; else a gateway.
        name: what it is called in a sentence.
        beginning: is said while it starts.
        introduction: of the demo, in lines.
        idle_s: it ends when nothing new came for that long. A device waits for 5 s for an answer
            before it sends again, to a gateway that was killed meanwhile.
    """

    is_spark: bool
    name: str
    beginning: str
    introduction: Sequence[str]
    idle_s: int

    def words(self, spec: str, place: Path) -> list[str]:
        """Return the sub-command that starts it, without the broker."""
        if self.is_spark:
            return ["cloud", spec, "--lake", str(place)]
        return ["gateway", spec, "--data-dir", str(place), "--commit-every", "0.5"]

    def news(self, lines: Sequence[str]) -> str:
        """Return the last line in which it says how far it is; "" before it has said one."""
        told = [line for line in lines if line[:1].isdigit() or line.startswith("gateway: ")]
        return told[-1] if told else ""

    def windows(self, place: Path, window: Window) -> list[Row]:
        """Return the newest revision of each (key, start) of a window, as the table has it."""
        return current_windows(place, window) if self.is_spark else _newest(place, window)

    def revisions(self, place: Path, window: Window) -> list[Row]:
        """Return all revisions of a window."""
        return all_windows(place, window) if self.is_spark else _kept(place, window)

    def globals(self, place: Path, folds: Mapping[str, DynamicFold]) -> dict[str, list[Row]] | None:
        """Return the newest revision of each key of the fleet-wide values; None without any."""
        if not self.is_spark:
            return None
        return {name: current_globals(place, fold) for name, fold in folds.items()}

    def results(
        self, place: Path, results: Mapping[str, StreamResult]
    ) -> dict[str, list[Row]] | None:
        """Return the newest revision of each row of streams' results; None without any."""
        if not self.is_spark:
            return None
        return {name: current_rows(place, result) for name, result in results.items()}


SPARK = Merging(
    is_spark=True,
    name="Spark",
    beginning="Spark is starting; that takes a while.",
    introduction=(
        "Five devices, each its own process, measure five simulated rooms and agree on",
        "one average, though one crashes and one loses its network. Spark confirms it.",
    ),
    idle_s=5,
)
GATEWAY = Merging(
    is_spark=False,
    name="the gateway",
    beginning="The gateway is starting.",
    introduction=(
        "Ten devices, each its own process, measure ten simulated rooms and agree on one",
        "average, though some fail. No Spark runs: a gateway keeps the windows of all.",
    ),
    idle_s=10,
)


def _newest(place: Path, window: Window) -> list[Row]:
    """Return the last revision of each (key, start) that a gateway kept."""
    return list({(row["key"], row["start_us"]): row for row in _kept(place, window)}.values())


def _kept(place: Path, window: Window) -> list[Row]:
    """Read a gateway's file with SQLite alone, as somebody without its code would."""
    path = place / "gateway.sqlite"
    if not path.exists():
        return []
    named = (
        *("key", "start_us", "end_us", "partial", "devices_in", "devices_expected"),
        *("excluded", "status", "revision"),
    )
    query = (
        f"SELECT {', '.join(named)} FROM revision WHERE stream = ?"  # noqa: S608 - ours
        " ORDER BY key, start_us, revision"
    )
    with closing(sqlite3.connect(path)) as db:
        found = db.execute(query, (window.stream,)).fetchall()
    rows: list[dict[str, Any]] = [dict(zip(named, row, strict=True)) for row in found]
    for row in rows:
        parts = msgpack.unpackb(row.pop("partial"))
        row |= dict(zip(window.fold.columns_named, parts, strict=True))
    return list(rows)
