"""Blocks as they were replayed last: what comes late follows what came late into the same block.

A change to a block replays it twice, as it was and as it is now. What it is now is what it was when
the next change comes. So of a row of changes each one replays the block once. Where nobody else
changes the store meanwhile, as while one mark follows from the other, it is read once, too.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from lasp_edge.ordered.cells import CellId
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.graph import StreamGraph
from lasp_edge.ordered.inputs import InputCell, Inputs, inserted_cells
from lasp_edge.ordered.item_store import Cut
from lasp_edge.ordered.plain import same


class BlockItems(NamedTuple):
    """What stands in a block.

    Attributes:
        cells: of all devices.
        items: by event, from nothing; they are not changed any more.
    """

    cells: dict[CellId, InputCell]
    items: dict[str, Delta]


class ReplayedBlock(NamedTuple):
    """What came of a block.

    Attributes:
        given: what the streams say of it, from nothing.
        states: of all scans at its end.
    """

    given: dict[str, Delta]
    states: bytes


class BlockReplays:
    """Replays blocks, and remembers the last one."""

    def __init__(self) -> None:
        self._known: tuple[Callable[[], StreamGraph], Cut] | None = None
        self._items: dict[str, Delta] = {}
        self._last = ReplayedBlock({}, b"")
        self._read: dict[tuple[int, int], BlockItems] = {}
        self._is_read_once = False

    @contextmanager
    def reading_once(self) -> Iterator[None]:
        """Remember what stands in each block: nobody else changes the store meanwhile."""
        self._is_read_once = True
        try:
            yield
        finally:
            self._is_read_once = False
            self._read.clear()

    def read(
        self, block: Cut, inputs: Inputs, cells_in: Callable[[int, int], dict[CellId, InputCell]]
    ) -> BlockItems:
        """Return what stands in a block; `cells_in` reads it of the store."""
        span_us = block.time_us, block.end_us
        known = self._read.get(span_us)
        if known is None:
            cells = cells_in(*span_us)
            known = BlockItems(cells, inserted_cells(inputs, cells))
        return known

    def changed(self, block: Cut, content: BlockItems) -> None:
        """Take what stands in a block now."""
        if self._is_read_once:
            self._read[block.time_us, block.end_us] = content

    def replayed(
        self, graph: Callable[[], StreamGraph], block: Cut, items: dict[str, Delta]
    ) -> ReplayedBlock:
        """Return what comes of a block; nobody changes that.

        Args:
            graph: returns the graph, before anything was taken.
            block: with the states at its beginning.
            items: by event, from nothing; they are not changed any more.
        """
        if self._known != (graph, block) or not _are_same(items, self._items):
            made = begun(graph(), block.states)
            given = made.update(items, block.end_us)
            self._last = ReplayedBlock(given, made.cut(block.end_us))
            self._known, self._items = (graph, block), items
        return self._last

    def forget(self) -> None:
        """Let memory hold no block."""
        self._known, self._items, self._last = None, {}, ReplayedBlock({}, b"")


def _are_same(a: dict[str, Delta], b: dict[str, Delta]) -> bool:
    """Return whether the same is there by event: most often it is not even equal."""
    if a is b:
        return True
    return a == b and all(
        same(new.value, b[name][place][1].value)
        for name, delta in a.items()
        for place, (_, new) in delta.items()
    )


def begun(graph: StreamGraph, states: bytes | None) -> StreamGraph:
    """Let a new graph go on from states."""
    if states is not None:
        graph.begin(states)
    return graph
