"""Where streams stand in a store: in rows of their own, which go to no sink.

Three kinds, each under stream ids of its own: the cells of items, the cuts (at which the state of
all scans is known, and everything before is packed away), and the cells of rows of results; and one
row with the progress of all. All are committed with the readings that they are made from.

A row is pruned when it lies below the floor, and so does its end. The end of a cut is the next cut,
and that of a cell is at least the end of its block: what a late reading may need stays.
"""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

from lasp_edge.evaluation.packed_rows import ChangedRows, Rows, packed_rows, place_of, rows_in
from lasp_edge.evaluation.stored import HistoryId, HistoryRow
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.declarations import StreamResult
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import (
    StreamRow,
    events_of,
    items_stream,
    parts_of,
    shown_parts,
    standing_stream,
    states_stream,
)
from lasp_edge.ordered.cells import CELL_US, CellId, cell_of, packed, unpacked
from lasp_edge.ordered.inputs import InputCell
from lasp_edge.ordered.item_store import FOR_EVER_US, Cut, EngineProgress
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import decoded, encoded
from lasp_edge.ordered.results import ResultRow
from lasp_edge.units import SECOND_US

_LOOK_US = 3_600 * SECOND_US

LAST_US = 86_400_000_000
"""Microseconds before the newest reading of which people are shown rows, if there are any."""

Read = Callable[[int, int, int], list[tuple[int, HistoryRow]]]
"""Returns the rows of a stream from one time to another, each with its time."""


class StreamHistory:
    """What the store holds of a plan's streams.

    Args:
        plan: the plan.
        device: whose readings its items are; `FLEET` for those of all.
        read: reads the store.

    Attributes:
        changes: what is to be committed.
    """

    def __init__(self, plan: Plan, device: str, read: Read) -> None:
        self._device, self._read = device, read
        self._items = {name: items_stream(plan, name) for name in sorted(events_of(plan, device))}
        self.plan, self._progress = plan, standing_stream(plan)
        self._states = states_stream(plan, 0)
        self._results = plan.stream_results
        self._packed: dict[CellId, bytes] = {}
        self._last: Cut | None = None
        self.changes: dict[HistoryId, HistoryRow] = {}

    def take_changes(self) -> dict[HistoryId, HistoryRow]:
        """Return what is to be committed and was not taken yet."""
        taken, self.changes = self.changes, {}
        return taken

    def progress(self) -> EngineProgress | None:
        """Return how far the streams had come; None where there never were any."""
        for _, row in self._entries(self._progress, 0, 1):
            return EngineProgress(*decoded(row.content))
        return None

    def put_progress(self, progress: EngineProgress) -> None:
        """Store how far they have come."""
        waits = progress.waiting is not None  # else an earlier release reads it, too
        self._put(self._progress, 0, FOR_EVER_US, encoded(progress[: None if waits else -1]))

    def enter(self, era: int) -> None:
        """Turn to the cuts of an era."""
        self._last = None
        self._states = states_stream(self.plan, era)

    def cut_at(self, time_us: int) -> Cut:
        """Return the last cut at a time or before it; the last one of all is at hand."""
        if self._last is not None and time_us >= self._last.time_us:
            return self._last
        end_us, span_us = time_us + 1, _LOOK_US
        while end_us > 1:
            found = self._entries(self._states, max(1, end_us - span_us), end_us)
            if found:
                at_us, row = found[-1]
                return Cut(at_us, row.content, row.end_us)
            end_us, span_us = end_us - span_us, 4 * span_us
        following = self._entries(self._states, 1, FOR_EVER_US)
        end_us = following[0][0] if following else FOR_EVER_US
        return Cut(BEFORE_ALL_US, None, end_us)

    def put_cut(self, cut: Cut) -> None:
        """Store a cut; the first block has none."""
        if cut.states is not None:
            self._last = cut if cut.end_us == FOR_EVER_US else None
            self._put(self._states, cut.time_us, cut.end_us, cut.states)
            for where in [each for each in self._packed if each[2] < cut.time_us]:
                del self._packed[where]

    def cells(self, event: str, least_us: int, end_us: int) -> Iterator[tuple[CellId, InputCell]]:
        """Yield the cells of an event with least_us <= start < end_us."""
        for at_us, row in self._entries(self._items[event], least_us, end_us):
            yield CellId(event, self._device, at_us), unpacked(row.content)

    def cell(self, where: CellId) -> InputCell:
        """Return a cell that is stored: what was packed since the last cut is not read again."""
        content = self._packed.get(where)
        if content is None:
            event, _, cell_us = where
            return dict(self.cells(event, cell_us, cell_us + 1))[where]
        return unpacked(content)

    def put_cell(self, where: CellId, cell: InputCell, end_us: int) -> None:
        """Store a cell of items, which stays until a time."""
        self._packed[where] = packed(cell)
        self.keep_cell(where, cell, end_us)

    def keep_cell(self, where: CellId, cell: InputCell, end_us: int) -> None:
        """Let a cell that is stored as it is stay until another time."""
        content = self._packed.get(where) or packed(cell)
        self._put(self._items[where.event], where.cell_us, end_us, content)

    def rows(self, result: str, least_us: int, end_us: int) -> Iterator[tuple[int, Rows]]:
        """Yield the start and rows of each cell of a result with least_us <= start < end_us."""
        made = self._results[result]
        for at_us, row in self._entries(made.stream, least_us, end_us):
            yield at_us, rows_in(made, row.content)

    def naming(
        self,
        result: str,
        spans_us: Iterable[tuple[int, int]],
        *,
        every: bool,  # noqa: ARG002 - whoever reads row by row leaves out the others
    ) -> Iterator[Rows]:
        """Yield the rows of spans of time that name devices, or every row; of an hour all together.

        There may be others among them.
        """
        for first_us, last_us in spans_us:
            for at_us in range(first_us, last_us, _LOOK_US):
                found: dict[Place, ResultRow] = {}
                for _, stored in self.rows(result, at_us, min(at_us + _LOOK_US, last_us)):
                    found |= stored
                yield found

    def put_rows(self, result: str, changed: ChangedRows, rows: Rows) -> None:
        """Store rows that have changed, with the others of their cells.

        Args:
            result: of which they are.
            changed: the rows.
            rows: all of those cells, after the change.
        """
        cells: dict[int, list[tuple[Place, ResultRow]]] = {
            cell_of(place[0]): [] for place, _ in changed
        }
        for place, row in rows.items() if cells else ():
            if (cell := cells.get(cell_of(place[0]))) is not None:
                cell.append((place, row))
        for cell_us, found in sorted(cells.items()):
            packed_cell = packed_rows(sorted(found, key=place_of))
            self._put(self._results[result].stream, cell_us, cell_us + CELL_US, packed_cell)

    def _put(self, stream: int, at_us: int, end_us: int, content: bytes) -> None:
        self.changes[HistoryId(at_us, stream)] = HistoryRow(end_us, content)

    def _entries(self, stream: int, least_us: int, end_us: int) -> list[tuple[int, HistoryRow]]:
        """Return the stored rows, and those that are to be committed, in order."""
        found = dict(self._read(stream, least_us, end_us))
        found |= {
            at_us: row
            for (at_us, of), row in self.changes.items()
            if of == stream and least_us <= at_us < end_us
        }
        return sorted(found.items())


def shown_row(result: StreamResult, place: Place, row: ResultRow) -> StreamRow:
    """Return a row of a result as handlers and people see it."""
    event = row.event
    parts = {} if event is None else shown_parts(result, parts_of(result, event.value))
    named = (result.name, row.key, place[0], parts, row.status, row.revision)
    return StreamRow(*named, place, row.excluded)


def exact_row_part(result: StreamResult, row: StreamRow, part: str) -> Fraction:
    """Return a part of a row that is a number, exactly."""
    step = Resolution(dict(result.parts)[part])
    return step.quantise(row.parts[part]) * step.exact


def stored_rows(read: Read, result: StreamResult, high_us: int, count: int) -> list[StreamRow]:
    """Return the last rows of a result.

    Args:
        read: reads the store.
        result: of the program.
        high_us: how far the readings have come.
        count: how many, at most.
    """
    cells = read(result.stream, high_us - LAST_US, FOR_EVER_US)
    cells = cells or read(result.stream, 0, FOR_EVER_US)
    rows = [found for _, cell in cells for found in rows_in(result, cell.content).items()]
    return [shown_row(result, place, row) for place, row in sorted(rows, key=place_of)[-count:]]
