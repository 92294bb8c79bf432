"""Cells that are stored, and that the graph of an engine has not taken yet.

A device that reads a file is far ahead of the events in order, which come from its fleet. What it
has read behind the last one that it knows would be stepped again with each that comes. So there it
waits, packed, in the store, and is stepped once: when the next ones are known.

Only readings wait of which nothing else is made than the device's half of a scan with local events,
none of which is late or taken back. All cells of such events wait from one time on, and none before
it: that time is stored, so a restarted engine knows which readings have given no outputs yet.
"""

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter

from lasp_edge.ordered.cells import RETRACTED, CellId, cell_of
from lasp_edge.ordered.graph import StreamNode
from lasp_edge.ordered.inputs import InputCell, Inputs
from lasp_edge.ordered.item_store import FOR_EVER_US, ItemStore
from lasp_edge.ordered.log import BEFORE_ALL_US

LEAF = "leaf"
"""The operator of a device's half."""
MOST_CELLS = 10_000
"""Cells that wait, at most, since memory has an entry for each: more than a day of them."""
AT_ONCE = 40
"""Cells that a graph takes at once: 4,000 readings where ten come a second."""

_time_of = itemgetter(0)
_event_of, _start_of = itemgetter(0), itemgetter(2)

WaitingFrom = tuple[int, tuple[str, ...]]
"""Where the last cell begins that does not wait, and the events of which later ones do."""


class WaitingCells:
    """The cells that wait.

    Args:
        nodes: the streams.
        inputs: what they are made from.
        store: holds the cells.

    Attributes:
        events: the events whose readings may wait.
        behind_us: cells wait that begin later; None: no cell waits.
        live_us: where the last cell of these events begins that does not wait.
    """

    def __init__(self, nodes: Iterable[StreamNode], inputs: Inputs, store: ItemStore) -> None:
        made: dict[bool, set[str]] = {True: set(), False: set()}
        for node in nodes:
            made[node.stage.operator == LEAF].update(node.sources)
        readings = {name for name, resolution in inputs.items() if resolution is not None}
        self.events, self._store = frozenset(readings & made[True] - made[False]), store
        self.behind_us: int | None = None
        self.live_us, self._restored = BEFORE_ALL_US, frozenset[str]()
        self._firsts_us: dict[CellId, int] = {}
        self._first_us: int | None = None
        self._opened: dict[str, tuple[CellId, InputCell]] = {}

    @property
    def known(self) -> WaitingFrom | None:
        """From where on which cells wait, as an engine stores it; None: nowhere."""
        events = sorted(self.events | self._restored if self._firsts_us else ())
        waits = tuple(each for each in events if each in map(_event_of, self._firsts_us))
        return (self.live_us, waits) if waits else None

    @property
    def first_us(self) -> int | None:
        """The time of the first reading that waits; None where no cell waits."""
        if self._first_us is None:  # it is asked for several times a commit
            self._first_us = min(self._firsts_us.values(), default=None)
        return self._first_us

    def put(self, where: CellId, came: InputCell, frontier_us: int | None) -> bool:
        """Store readings and let them wait, if they may; else change nothing.

        Args:
            where: their cell, which is not live.
            came: the readings.
            frontier_us: nothing older was expected.

        Returns:
            Whether they wait.
        """
        if not self._may_wait(where) or RETRACTED in came.values():
            return False
        first_us, cell = _first_us(came), InputCell()
        if frontier_us is not None and first_us < frontier_us:
            return False
        if where in self._firsts_us:
            opened, cell = self._opened.get(where.event, (None, cell))
            if opened != where or not cell.keys().isdisjoint(came):
                return False
        cell.update(came)
        self._opened[where.event] = where, cell
        self._firsts_us[where] = min(first_us, self._firsts_us.get(where, first_us))
        self._first_us = None if self._first_us is None else min(first_us, self._first_us)
        self._store.put_cell(where, cell, FOR_EVER_US)
        return True

    def restore(
        self, cells: dict[CellId, InputCell], known: WaitingFrom | None
    ) -> dict[CellId, InputCell]:
        """Let those of stored cells go on waiting that waited; return the others."""
        if known is None:
            mine = [at.cell_us for at in cells if at.event in self.events]
            self.live_us = max(mine, default=self.live_us)
            return cells
        self.live_us, events = known
        self.behind_us = self.live_us
        self._restored = frozenset(events)
        waited = {at for at in cells if at.event in events and at.cell_us > self.live_us}
        for where in waited:
            self._firsts_us[where] = _first_us(cells[where])
        return {at: cell for at, cell in cells.items() if at not in waited}

    def _may_wait(self, where: CellId) -> bool:
        behind_us = self.behind_us
        if behind_us is None or where.event not in self.events:
            return False
        return where.cell_us > max(behind_us, self.live_us)

    def ended(self, where: CellId) -> list[CellId]:
        """Return the cells that wait no longer since a cell is live."""
        if where.event not in self.events | self._restored or where.cell_us <= self.live_us:
            return []
        self.live_us = where.cell_us
        return [each for each in self._firsts_us if each.cell_us <= where.cell_us]

    def due(self) -> list[CellId]:
        """Return the first cells that need not wait any longer."""
        if len(self._firsts_us) > MOST_CELLS:
            self.behind_us = None
        behind_us, first_us = self.behind_us, self.first_us
        if first_us is None or (behind_us is not None and cell_of(first_us) > behind_us):
            return []
        found = sorted(self._firsts_us, key=_start_of)
        last_us = found[:AT_ONCE][-1].cell_us  # with all that begin there: none of them may wait
        if behind_us is not None:
            last_us = min(last_us, behind_us)
        return found[: bisect_right(found, last_us, key=_start_of)]

    def taken(self, cells: Iterable[CellId]) -> dict[CellId, InputCell]:
        """Let cells wait no longer; return what they hold."""
        found: dict[CellId, InputCell] = {}
        for where in cells:
            del self._firsts_us[where]
            self._first_us = None
            self.live_us = max(self.live_us, where.cell_us)
            if where in self._opened.get(where.event, ()):
                del self._opened[where.event]
            found[where] = self._store.cell(where)
        return found


def _first_us(cell: InputCell) -> int:
    """Return the time of the first item of a cell."""
    first_us: int = min(map(_time_of, cell))
    return first_us
