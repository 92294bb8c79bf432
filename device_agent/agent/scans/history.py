"""Where streams stand in the store: among the pane entries, as entries that go to no sink.

Three kinds, each under stream ids of its own: the cells of items, the cuts (at which the state of
all scans is known, and everything before is packed away), and the cells of rows of results; and one
entry says how far all of it has come. So all of it is committed with the readings that it is made
from, and is pruned as panes are.

An entry is pruned when it lies below the floor, and so does its end. The end of a cut is the next
cut, and that of a cell is at least the end of its block: what a late reading may need stays.
"""

from collections.abc import Callable, Iterator

from crdts import Replica
from device_agent.agent.changes import PaneId, PaneRow
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import items_stream, standing_stream, states_stream
from lasp_edge.ordered.cells import CELL_US, Cell, CellId, packed, unpacked
from lasp_edge.ordered.item_store import FOR_EVER_US, Cut, EngineProgress
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.plain import decoded, encoded
from lasp_edge.units import SECOND_US

NOBODY = Replica(0, 0, "")
"""What is stored here is the device's, whichever replica of it came by."""
_LOOK_US = 3_600 * SECOND_US

Read = Callable[[Replica, int, int, int], list[tuple[PaneId, PaneRow]]]
"""Returns the entries of a replica and stream that start at a time or later, and before another."""


class StreamHistory:
    """What the store holds of a plan's streams.

    Args:
        plan: the plan.
        device: whose readings its items are.

    Attributes:
        changes: what is to be committed.
        read: reads the store; it is set before anything is asked.
    """

    def __init__(self, plan: Plan, device: str) -> None:
        self._device = device
        self._items = {name: items_stream(plan, name) for name in sorted(plan.streamed_events)}
        self._plan, self._progress = plan, standing_stream(plan)
        self._states = states_stream(plan, 0)
        self._rows = {name: each.stream for name, each in plan.stream_results.items()}
        self.changes: dict[PaneId, PaneRow] = {}
        self.read: Read | None = None

    def take_changes(self) -> dict[PaneId, PaneRow]:
        """Return what is to be committed and was not taken yet."""
        taken, self.changes = self.changes, {}
        return taken

    def progress(self) -> EngineProgress | None:
        """Return how far the streams had come; None where there never were any."""
        for _, row in self._entries(self._progress, 0, 1):
            return EngineProgress(*decoded(row.partial[0]))
        return None

    def put_progress(self, progress: EngineProgress) -> None:
        """Store how far they have come."""
        self._put(self._progress, 0, FOR_EVER_US, encoded(tuple(progress)))

    def enter(self, era: int) -> None:
        """Turn to the cuts of an era."""
        self._states = states_stream(self._plan, era)

    def cut_at(self, time_us: int) -> Cut:
        """Return the last cut at a time or before it."""
        end_us, span_us = time_us + 1, _LOOK_US
        while end_us > 1:
            found = self._entries(self._states, max(1, end_us - span_us), end_us)
            if found:
                pane, row = max(found)
                return Cut(pane.pane_us, row.partial[0], row.end_us)
            end_us, span_us = end_us - span_us, 4 * span_us
        following = self._entries(self._states, 1, FOR_EVER_US)
        end_us = min((pane.pane_us for pane, _ in following), default=FOR_EVER_US)
        return Cut(BEFORE_ALL_US, None, end_us)

    def put_cut(self, cut: Cut) -> None:
        """Store a cut; the first block has none."""
        if cut.states is not None:
            self._put(self._states, cut.time_us, cut.end_us, cut.states)

    def cells(self, event: str, least_us: int, end_us: int) -> Iterator[tuple[CellId, Cell]]:
        """Yield the cells of an event with least_us <= start < end_us."""
        for pane, row in self._entries(self._items[event], least_us, end_us):
            yield CellId(event, self._device, pane.pane_us), unpacked(row.partial[0])

    def put_cell(self, where: CellId, cell: Cell, end_us: int) -> None:
        """Store a cell of items, which stays until a time."""
        self._put(self._items[where.event], where.cell_us, end_us, packed(cell))

    def rows(self, result: str, least_us: int, end_us: int) -> Iterator[tuple[int, bytes]]:
        """Yield the start and packed rows of each cell of a result."""
        for pane, row in self._entries(self._rows[result], least_us, end_us):
            yield pane.pane_us, row.partial[0]

    def put_rows(self, result: str, cell_us: int, rows: bytes) -> None:
        """Store the packed rows of a cell."""
        self._put(self._rows[result], cell_us, cell_us + CELL_US, rows)

    def _put(self, stream: int, at_us: int, end_us: int, content: bytes) -> None:
        pane = PaneId(at_us, stream, "", NOBODY.incarnation, NOBODY.nonce)
        self.changes[pane] = PaneRow(0, end_us, (content,), dirty=0)

    def _entries(self, stream: int, least_us: int, end_us: int) -> list[tuple[PaneId, PaneRow]]:
        """Return the stored entries, and those that are to be committed, in order."""
        assert self.read is not None
        found = dict(self.read(NOBODY, stream, least_us, end_us))
        found |= {
            pane: row
            for pane, row in self.changes.items()
            if pane.stream == stream and least_us <= pane.pane_us < end_us
        }
        return sorted(found.items())
