"""The port of a stream engine: what it stores of items and states, and what it reads of them again.

Items are stored in cells; cuts divide them into blocks. A **cut** is a time at which the state of
all scans is known. Blocks lie before the last cut; what comes behind it is live, and in memory,
too. A cut has an era: how often the program's streams have changed. The cuts of an era are of no
use to another one: they do not know what came late meanwhile.

All that is stored in one turn of the engine becomes durable together, with the readings that it is
made from; what was stored before is read back at once, durable or not.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from lasp_edge.ordered.cells import Cell, CellId
from lasp_edge.units import SECOND_US

FOR_EVER_US = 2**62
"""The end of what is not pruned yet."""
BLOCK_US = 3_600 * SECOND_US
"""Microseconds that a cell outlives its items; one of a longer block is stored again at its cut."""


class Cut(NamedTuple):
    """A time before which everything is packed away.

    Attributes:
        time_us: the time; before all times for the first block.
        states: where all keys of all scans go on; None: nothing came before.
        end_us: the next cut; `FOR_EVER_US` for the last one.
    """

    time_us: int
    states: bytes | None
    end_us: int


class EngineProgress(NamedTuple):
    """How far the streams have come.

    Attributes:
        since_us: the last cut; before all times without any.
        frontier_us: nothing older was expected; None before the first word of it.
        era: how often the program's streams have changed.
        meanings: of each stream; see `lasp_edge.language.streaming.meanings_of`.
        entries: the operators' entries under which the streams were evaluated.
        waiting: the cells that the streams have not taken (`lasp_edge.ordered.waiting_cells`).
    """

    since_us: int
    frontier_us: int | None
    era: int
    meanings: tuple[tuple[str, str], ...]
    entries: tuple[tuple[Any, ...], ...] = ()
    waiting: tuple[int, tuple[str, ...]] | None = None


class ItemStore(Protocol):
    """What an engine stores, and reads again."""

    def progress(self) -> EngineProgress | None:
        """Return how far the streams had come; None where there never were any."""

    def put_progress(self, progress: EngineProgress) -> None:
        """Store how far they have come."""

    def enter(self, era: int) -> None:
        """Turn to the cuts of an era."""

    def cut_at(self, time_us: int) -> Cut:
        """Return the last cut at a time or before it; the block before all cuts where none is."""

    def put_cut(self, cut: Cut) -> None:
        """Store a cut; the first block has none."""

    def cells(self, event: str, least_us: int, end_us: int) -> Iterable[tuple[CellId, Cell]]:
        """Return the cells of an event, of all devices, with least_us <= start < end_us."""

    def cell(self, where: CellId) -> Cell:
        """Return a cell that is stored."""

    def put_cell(self, where: CellId, cell: Cell, end_us: int) -> None:
        """Store a cell, which stays until a time."""

    def keep_cell(self, where: CellId, cell: Cell, end_us: int) -> None:
        """Let a cell that is stored as it is stay until another time."""
