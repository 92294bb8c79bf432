"""Where an engine cuts: what lies before the cut is packed away, in a block.

A cut is at the begin of a cell that the frontier has passed: that many items are not live any more,
or that old ones.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate

from lasp_edge.ordered.cells import CELL_US, CellId, cell_of
from lasp_edge.ordered.inputs import InputCell


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
