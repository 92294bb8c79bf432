"""Follows a lake for the dashboard: gives the newest windows as plain data whenever it grew.

A thread of its own looks every few seconds, and reads only where a step of the job has written
something. The dashboard finds this class by the entry point group `lasp_edge.dashboard`, so that a
device needs nothing of the cloud.
"""

import math
import threading
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from cloud_tier.lake.definitions import definitions
from cloud_tier.lake.lake import Lake
from lasp_edge.errors import CommandError
from lasp_edge.folds.numbers import decimals
from lasp_edge.folds.units import unit_of
from lasp_edge.language.described import WINDOW
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.tool.screen import in_words

LOOK_S = 5.0
"""Seconds between two looks at the lake."""
STARTS = 60
"""Starts of each window that are shown, the last ones."""
MOST_ROWS = 400
"""Rows of a window that are shown, the newest ones."""


class LakeFollower:
    """Follows a lake, and shows its windows.

    Args:
        root: the lake.
        show: is given the windows, as JSON has it, whenever it is new.

    Raises:
        NotFound: there is no lake.
    """

    def __init__(self, root: str, show: Callable[[dict[str, Any]], None]) -> None:
        self._lake, self._show = Lake(root), show
        self._read: tuple[int, ...] = ()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="lake", daemon=True)
        self.look()

    def start(self) -> None:
        """Look again every few seconds."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """Read the windows where there is something new.

        Raises:
            NotFound: there is no lake.
        """
        tables = self._lake.tables
        versions = tuple(tables.table(path).version() for path in (tables.windows, tables.programs))
        if versions != self._read:
            shown = {name: _shown(self._lake, name) for name in self._lake.window_names()}
            self._show({"lake": tables.root, "windows": shown})
            self._read = versions

    def _go_on(self) -> None:
        while not self._ended.wait(LOOK_S):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - a table may be damaged in any way
                trouble = str(error) if isinstance(error, CommandError) else type(error).__name__
                self._show({"lake": self._lake.tables.root, "windows": {}, "trouble": trouble})
                self._read = ()


def _shown(lake: Lake, name: str) -> dict[str, Any]:
    """Return the last rows of a window, by start and key."""
    meaning, windows = definitions(lake.tables, WINDOW)[name], lake.windows(name)
    newest_us = windows.newest_start_us()
    rows: list[dict[str, Any]] = []
    if newest_us is not None:
        since_us = newest_us - (STARTS - 1) * meaning.slide_us
        exact = set(meaning.columns) - set(meaning.parts)
        columns = [column for column in windows.columns if column not in exact]
        rows = windows.current(since=since_us, columns=columns).to_pylist()
    rows.sort(key=lambda row: (-row["start_us"], row["key"]))
    return {
        "parts": [in_words(part) for part in meaning.parts],
        "units": [unit_of(meaning.fold, part, meaning.unit) for part in meaning.parts],
        "places": decimals(meaning.resolution),
        "rows": {
            f"{row['start_us']} {row['key']}": {
                "key": row["key"],
                "start": row["start_us"] / 1_000_000,
                "end": row["end_us"] / 1_000_000,
                "parts": [_plain(row[part]) for part in meaning.parts],
                "in": row["devices_in"],
                "expected": row["devices_expected"],
                "status": row["status"],
                "revision": row["revision"],
                "waiting_for": _waiting_for(row),
            }
            for row in rows[:MOST_ROWS]
        },
    }


def _waiting_for(row: Mapping[str, Any]) -> list[str]:
    """Return the devices for which a row waits."""
    is_open = row["status"] == TENTATIVE and row["excluded"]
    return row["excluded"].split(",") if is_open else []


def _plain(value: Any) -> Any:
    """Return a part as JSON has it.

    >>> [_plain(value) for value in (Decimal(3), 21.5, float("nan"), None)]
    [3, 21.5, None, None]
    """
    if isinstance(value, Decimal):
        return int(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
