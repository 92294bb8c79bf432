"""The windows of a gateway that are not final: by end, so that a turn looks only at those it ends.

A window is unfinished while its current row is tentative, or while it has panes and no row, since
it waits for devices (`lasp_edge.protocol.waiting`); or where it is longer than when it was final,
until the frontier has passed its end again. Ends are in heaps. An operator may change how long a
window is: it is pushed again then, and a popped end that is not its own any more is skipped.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.waiting import WindowWaiting
from lasp_edge.protocol.window_rows import FleetRow, WindowStart

EndHeap = list[tuple[int, WindowStart]]
"""Ends of windows, the least first."""


class UnfinishedWindows:
    """Windows of a gateway that are not final, in memory.

    Args:
        waits: window -> X, for how long it waits for devices before it has a row.

    Attributes:
        rows: the current rows of those that have one.
        waiting: windows that have panes and no row yet -> their ends.
    """

    def __init__(self, waits: Mapping[str, int]) -> None:
        self._waits = waits
        self.rows: dict[WindowStart, FleetRow] = {}
        self.waiting: dict[WindowStart, int] = {}
        self._ends: EndHeap = []
        self._due_ends: dict[int, EndHeap] = defaultdict(list)

    def put(self, row: FleetRow) -> None:
        """Make a row the current one of its window."""
        self.waiting.pop(row.at, None)
        before = self.rows.pop(row.at, None)
        if row.status == TENTATIVE or not row.was_over:
            self.rows[row.at] = row
            if before is None or before.end_us != row.end_us:
                heappush(self._ends, (row.end_us, row.at))

    def wait(self, at: WindowStart, end_us: int) -> None:
        """Let a window that has panes wait for its first row."""
        if self.waiting.get(at) != end_us:
            self.waiting[at] = end_us
            heappush(self._ends, (end_us, at))
            heappush(self._due_ends[self._waits[at.window]], (end_us, at))

    def passed(self, frontier_us: int | None) -> Iterator[WindowStart]:
        """Yield the windows whose end the frontier has passed since the last time."""
        while frontier_us is not None and self._ends and self._ends[0][0] <= frontier_us:
            end_us, at = heappop(self._ends)
            row = self.rows.get(at)
            if end_us == (self.waiting.get(at) if row is None else row.end_us):
                yield at

    def due(self, waiting: WindowWaiting) -> Iterator[WindowStart]:
        """Yield the windows without a row that have waited for as long as they may."""
        for wait_us, ends in self._due_ends.items():
            while ends and waiting.is_due(wait_us, ends[0][0]):
                end_us, at = heappop(ends)
                if self.waiting.get(at) == end_us:
                    yield at

    def due_at_us(self, waiting: WindowWaiting) -> int | None:
        """Return when the next window without a row will be due; None where that is not known."""
        times_us = []
        for wait_us, ends in self._due_ends.items():
            while ends and self.waiting.get(ends[0][1]) != ends[0][0]:
                heappop(ends)
            at_us = waiting.due_at_us(wait_us, ends[0][0]) if ends else None
            times_us += [] if at_us is None else [at_us]
        return min(times_us, default=None)
