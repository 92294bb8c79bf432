"""The windows of a lake as the page is told them, without Spark; needs the extra `cloud`.

The lake is looked at every few seconds in a thread of its own, and read only where a step of the
job has written something.
"""

import threading
from typing import Any

from cloud_tier.lake.definitions import WINDOW, definitions
from cloud_tier.lake.reading import windows
from cloud_tier.lake.tables import Lake
from fleet_dashboard.board import Board
from lasp_edge.errors import CommandError
from lasp_edge.tool.screen import in_words

LOOK_S = 5.0
"""Seconds between two looks at the lake."""
STARTS = 60
"""Starts of each window that are shown, the last ones."""
MOST_ROWS = 400
"""Rows of a window that are shown, the last ones."""


class LakeLook:
    """Looks at a lake, and writes its windows on a board.

    Args:
        root: the lake.
        board: where the windows are written, under "windows".

    Raises:
        NotFound: there is no lake.
    """

    def __init__(self, root: str, board: Board) -> None:
        self._lake, self._board = Lake(root), board
        self._read: tuple[int, ...] = ()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="lake", daemon=True)
        self.look()

    def start(self) -> None:
        """Go on looking."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """Read the windows where there is something new.

        Raises:
            NotFound: there is no lake.
        """
        lake = self._lake
        versions = tuple(lake.table(path).version() for path in (lake.windows, lake.programs))
        if versions != self._read:
            shown = [_window(lake, name) for name in definitions(lake, WINDOW)]
            self._board.write("windows", {"lake": lake.root, "windows": shown, "trouble": None})
            self._read = versions

    def _go_on(self) -> None:
        while not self._ended.wait(LOOK_S):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - a table may be damaged in any way
                said = str(error) if isinstance(error, CommandError) else type(error).__name__
                why = {"lake": self._lake.root, "windows": [], "trouble": said}
                self._board.write("windows", why)
                self._read = ()


def _window(lake: Lake, name: str) -> dict[str, Any]:
    """Return the last rows of a window, the newest first."""
    parts = definitions(lake, WINDOW)[name].parts
    found = windows(lake, name, starts=STARTS).rows[-MOST_ROWS:]
    rows = [
        {
            "key": row["key"],
            "start": row["start_us"] / 1_000_000,
            "end": row["end_us"] / 1_000_000,
            "parts": [row.get(part) for part in parts],
            "in": row["devices_in"],
            "expected": row["devices_expected"],
            "status": row["status"],
            "revision": row["revision"],
        }
        for row in sorted(found, key=lambda row: (-row["start_us"], row["key"]))
    ]
    return {"name": name, "parts": [in_words(part) for part in parts], "rows": rows}
