"""Where an engine cuts: what lies before the cut is packed away, in a block.

A cut is at the begin of a cell that the frontier has passed: that many items are not live any more,
or that old ones. Behind a cut what comes late is dear: its whole block is evaluated twice. So where
a device still waits for events in order that others have read, it cuts behind those that it knows,
unless it holds very many items.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate

from lasp_edge.ordered.cells import CELL_US, CellId, cell_of
from lasp_edge.ordered.inputs import InputCell
from lasp_edge.ordered.log import BEFORE_ALL_US

KEPT_PARTS = 8
"""Of the items that may be live, this part stays in memory at a cut, if it lies before the
frontier: most of what is late comes among them."""
AGAIN_PARTS = 4
"""After this part of them a cut is tried again that the frontier did not allow."""
WAITING_TIMES = 16
"""So many times as many items may be live behind the last event in order that is known: 15 MB."""


class CutPolicy:
    """When an engine cuts, and where.

    Args:
        live_most: items in memory from which on there is a cut.
        live_us: there is one, too, once an item in memory lies so far behind the frontier; None:
            they stay, however old they are.
    """

    def __init__(self, live_most: int, live_us: int | None) -> None:
        self._live_most, self._live_us = live_most, live_us
        self._kept, self._again = max(1, live_most // KEPT_PARTS), max(1, live_most // AGAIN_PARTS)
        self._next, self._look_us = live_most, BEFORE_ALL_US
        self._known_us: int | None = None

    def know(self, known_us: int) -> None:
        """Note when the last event in order is that is known: others are expected behind it."""
        if known_us != self._known_us:
            self._known_us, self._next = known_us, self._live_most

    def restart(self) -> None:
        """Note that there was a cut."""
        self._next = self._live_most

    def at_us(self, cells: Mapping[CellId, InputCell], count: int, frontier_us: int) -> int:
        """Return where to cut; 0 for nowhere.

        Args:
            cells: live ones.
            count: of their items.
            frontier_us: nothing older is expected.
        """
        if count >= self._next:
            self._next = count + self._again
            if self._known_us is not None and count < WAITING_TIMES * self._live_most:
                frontier_us = min(frontier_us, self._known_us)
            return cut_by_count(cells, frontier_us, self._kept)
        if self._live_us is not None and frontier_us >= self._look_us:
            self._look_us = frontier_us + self._live_us // 8
            return cut_by_age(cells, frontier_us, self._live_us)
        return 0


def cut_by_count(cells: Mapping[CellId, InputCell], frontier_us: int, kept: int) -> int:
    """Return where the cell begins with the last items before the frontier; 0 if these are all.

    Args:
        cells: live ones.
        frontier_us: nothing older is expected.
        kept: how many items are kept, at least.
    """
    counts: Counter[int] = Counter()
    for (_, _, cell_us), cell in cells.items():
        if cell_us + CELL_US <= frontier_us:
            counts[cell_us] += len(cell)
        elif cell_us < frontier_us:
            counts[cell_us] += sum(item.time_us < frontier_us for item in cell)
    if counts.total() <= kept:
        return 0
    starts_us = sorted(counts, reverse=True)
    behind = accumulate(counts[cell_us] for cell_us in starts_us)
    return next(at for at, count in zip(starts_us, behind, strict=True) if count >= kept)


def cut_by_age(cells: Iterable[CellId], frontier_us: int, live_us: int) -> int:
    """Return half of an age behind the frontier if a cell is older than that age; else 0."""
    oldest_us = min((where.cell_us for where in cells), default=frontier_us)
    return 0 if oldest_us >= frontier_us - live_us else cell_of(frontier_us - live_us // 2)
