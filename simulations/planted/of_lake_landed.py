"""Bugs of the tables that a lander writes: they break the law of `simulations.lake_landed`."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from cloud_tier.lake.tables import MEMBER, PROMISE
from cloud_tier.lander.landing import Landing
from simulations.planted.bug import planted, replaced

LAW: Final = "lake_landed"
"""What these bugs need: a seed of that law, and no scenario."""
_planted = partial(planted, needs=LAW)


@_planted
def a_lander_begins_with_the_first_life_of_a_device() -> Iterator[None]:
    """A lander starts again, and lives of before that send late frames are heard by it."""

    def incarnations(self: Landing) -> dict[str, int]:
        rows = self._rows(PROMISE, "device", "incarnation")
        found: dict[str, int] = {}
        for device, incarnation in [(row["device"], row["incarnation"]) for row in rows]:
            found[device] = min(incarnation, found.get(device, incarnation))
        return found

    with replaced(Landing, "incarnations", incarnations):
        yield


@_planted
def what_a_killed_lander_had_refused_is_counted_again() -> Iterator[None]:
    """A lander dies between two commits of a segment, and the next one commits both."""

    def beside(self: Landing, table: DeltaTable, path: str, rows: pa.Table, number: int) -> None:
        table.update_incremental()
        if (table.transaction_version(self._lander) or 0) <= number:
            self._write(table, rows, number)
        self._make_durable(path)

    with replaced(Landing, "_beside", beside):
        yield


@_planted
def rows_that_were_lost_once_are_lost_at_each_start() -> Iterator[None]:
    """A table was put back, and devices send all again whenever its lander starts."""
    right = Landing._check_restored  # noqa: SLF001 - a bug is planted from outside

    def check_restored(self: Landing, commits: Iterable[Mapping[str, Any]]) -> None:
        right(self, [each for each in commits if each.get("operation") != "WRITE"])

    with replaced(Landing, "_check_restored", check_restored):
        yield


@_planted
def a_lander_looks_for_lost_rows_in_no_commit() -> Iterator[None]:
    """A table was put back, and devices never send again what it lacks."""
    with replaced(Landing, "_check_restored", lambda _self, _commits: None):
        yield


@_planted
def a_lander_that_starts_again_has_forgotten_who_is_retired() -> Iterator[None]:
    """A retired device is back, and a lander that was restarted takes what it sends."""
    right = Landing._rows  # noqa: SLF001 - a bug is planted from outside

    def rows(self: Landing, kind: str, *columns: str) -> Iterator[dict[str, Any]]:
        yield from () if kind == MEMBER else right(self, kind, *columns)

    with replaced(Landing, "_rows", rows):
        yield
