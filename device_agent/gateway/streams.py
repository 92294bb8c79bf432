"""A gateway's streams: one order over the items of the whole fleet, on the engine of devices.

Items come as cells, a pane entry for each cell of an event and device, and are united: of several
lives of a device each may have a part. An entry stays in the store as it came, and the engine reads
cells from there. Whatever is behind the frontier is final; what comes late is replayed from its
place, and revises what it changes. Entries, states and rows of a turn are in one commit, so a
gateway that is killed goes on where its store stands, and devices send again what it had not
acknowledged.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from device_agent.gateway.kept import FleetChanges, FleetKeeper, KeptEntry, WriterOfPanes
from lasp_edge.evaluation.history import StreamHistory
from lasp_edge.evaluation.packed_rows import ChangedRows, Rows, packed_rows, rows_in
from lasp_edge.evaluation.rows import Newest, ResultBook
from lasp_edge.evaluation.stored import ResultRowId
from lasp_edge.event import StreamItem
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET, plain_parts, stream_plan
from lasp_edge.ordered.cells import CELL_US, RETRACTED, Cell, CellId, Item, cell_of, unpacked
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.engine import StreamEngine
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import decoded, encoded
from lasp_edge.ordered.results import ResultRow
from lasp_edge.ordered.sent_items import item_of, united
from lasp_edge.ordered.sent_rows import SentRow, row_name
from lasp_edge.protocol.acceptance import PaneRows

LIVE_ITEMS: Final = 50_000
"""Items in memory before there is a cut, some 700 bytes each: more are in the store alone."""
MOST_CELLS: Final = 20_000
"""Cells whose entries are known by their seq in memory; of others the store is asked."""

_UNTIL_AT_US: Final = 1
"""Where in the stream of the progress it is stored what the engine has taken: that stands at 0."""
Cells = dict[tuple[str, WriterOfPanes], int]
"""The seq of each entry of a cell, by key and writer."""


class FleetHistory(StreamHistory):
    """What a gateway's store holds of the streams: cells of items are the entries of devices.

    Args:
        plan: the plan.
        keeper: keeps the entries.

    Attributes:
        rows_changed: rows of results that are to be committed, packed; None: it is gone.
        unseen: items that are in the store and that the engine has not taken yet, by cell.
    """

    def __init__(self, plan: Plan, keeper: FleetKeeper) -> None:
        super().__init__(plan, FLEET, lambda *wanted: list(keeper.history(*wanted)))
        self._keeper = keeper
        self._streams = {event: each.stream for event, each in plan.item_streams.items()}
        self.rows_changed: dict[ResultRowId, bytes | None] = {}
        self.unseen: dict[CellId, list[Item]] = {}

    def cells(self, event: str, least_us: int, end_us: int) -> Iterator[tuple[CellId, Cell]]:
        """Yield the cells of an event, of all devices, with least_us <= start < end_us."""
        if event not in self._streams:
            return
        parts: dict[CellId, list[Cell]] = {}
        for entry in self._keeper.entries(self._streams[event], max(0, least_us), end_us - 1):
            at = CellId(event, entry.writer.device, entry.pane_us)
            parts.setdefault(at, []).append(unpacked(entry.partial[0]))
        for at, cells in parts.items():
            cell = united(cells)
            for item in self.unseen.get(at, ()):
                cell.pop(item, None)
            yield at, cell

    def put_cell(self, where: CellId, cell: Cell, end_us: int) -> None:
        """Store nothing: the entries from which a cell is united are in the store as they came."""

    def rows(self, result: str, least_us: int, end_us: int) -> Iterator[tuple[int, bytes]]:
        """Yield time and packed row of each row of a result."""
        stream = self._rows[result]
        found: dict[ResultRowId, bytes | None] = {
            ResultRowId(stream, at_us, name): packed
            for at_us, name, packed in self._keeper.result_rows(stream, least_us, end_us)
        }
        found |= {
            at: packed
            for at, packed in self.rows_changed.items()
            if at.stream == stream and least_us <= at.at_us < end_us
        }
        yield from ((at.at_us, packed) for at, packed in sorted(found.items()) if packed)

    def put_rows(self, result: str, changed: ChangedRows, rows: Rows) -> None:  # noqa: ARG002
        """Store rows that have changed, each by itself: those of a cell come from many devices."""
        stream = self._rows[result]
        for place, row in changed:
            at = ResultRowId(stream, place[0], row_name(place))
            self.rows_changed[at] = None if row is None else packed_rows([(place, row)])

    def until_us(self) -> int:
        """Return the time before which the engine has taken all that is stored."""
        for _, row in self._entries(self._progress, _UNTIL_AT_US, _UNTIL_AT_US + 1):
            return int(decoded(row.content))
        return FOR_EVER_US

    def put_until(self, until_us: int) -> None:
        """Store that time, as of this turn."""
        self._put(self._progress, _UNTIL_AT_US, FOR_EVER_US, encoded(until_us))

    def take_rows(self) -> dict[ResultRowId, bytes | None]:
        """Return the rows that are to be committed and were not taken yet."""
        taken, self.rows_changed = self.rows_changed, {}
        return taken


class FleetStreams:
    """The streams over a fleet.

    Args:
        plan: the program.
        keeper: keeps entries, states and rows.
        retain_us: for how long late items are taken.

    Attributes:
        failed: how often a function of the program failed, by reason.
    """

    def __init__(self, plan: Plan, keeper: FleetKeeper, retain_us: int) -> None:
        self._keeper, self._retain_us = keeper, retain_us
        self._events = {each.stream: event for event, each in plan.item_streams.items()}
        self._history = FleetHistory(plan, keeper)
        self._engine = StreamEngine(stream_plan(plan, FLEET), self._history, LIVE_ITEMS)
        self._books = {n: ResultBook(each, self._history) for n, each in plan.fleet_results.items()}
        self._known: dict[tuple[int, int], Cells] = {}
        self._taken: list[StreamItem] = []
        self._waiting: list[StreamItem] = []
        self._entries: list[KeptEntry] = []
        self._failing: set[tuple[str, object]] = set()
        self._until_us = FOR_EVER_US
        self.failed: Counter[str] = Counter()
        self._begin()

    def _begin(self) -> None:
        """Go on where the store stands; streams that are new are made of what it holds."""
        progress = self._history.progress()
        frontier_us = None if progress is None else progress.frontier_us
        pruned_us = BEFORE_ALL_US if frontier_us is None else self.floor_us(frontier_us)
        self._until_us = self._history.until_us()
        self._waiting = list(self._stored_behind(self._until_us))
        self._history.unseen = _by_cell(self._waiting)
        rebuilt = self._engine.begin(pruned_us)
        self._history.unseen = {}
        for book in self._books.values():
            book.begin(self._engine.since_us)
        if rebuilt is not None:
            since_us = max(rebuilt.since_us, pruned_us)
            changed = {
                name: book.changed(rebuilt.deltas.get(name, {}), since_us)
                for name, book in self._books.items()
            }
            self._bring(changed, self._engine.since_us)

    def _stored_behind(self, until_us: int) -> Iterator[StreamItem]:
        """Yield the stored items from a time on: they waited when the last process ended."""
        for event in self._events.values():
            for (_, device, _), cell in self._history.cells(event, cell_of(until_us), FOR_EVER_US):
                for item, state in cell.items():
                    if item.time_us >= until_us:
                        yield _taken(event, device, item, state)

    def has(self, stream: int) -> bool:
        """Return whether entries of a stream are cells of items."""
        return stream in self._events

    def floor_us(self, frontier_us: int) -> int:
        """Return the time before which no item is taken any more."""
        return (frontier_us - self._retain_us) // CELL_US * CELL_US

    def take_entries(self, rows: PaneRows, frontier_us: int | None) -> int:
        """Take accepted cells of items, and return how many came too late.

        Args:
            rows: the entries.
            frontier_us: how far results were final before them.
        """
        block, late = rows.block, 0
        event = self._events[block.stream]
        floor_us = BEFORE_ALL_US if frontier_us is None else self.floor_us(frontier_us)
        writer = WriterOfPanes(rows.device, block.incarnation, block.nonce)
        for key, pane_us, seq, content in zip(
            block.keys, block.panes_us, block.seqs, block.columns[0], strict=True
        ):
            known = self._seqs(block.stream, pane_us)
            if known.get((key, writer), -1) >= seq:
                continue
            if pane_us < floor_us:
                late += 1
                continue
            assert isinstance(content, bytes)  # the form of cells
            cell = unpacked(content)
            if any(not 0 <= item.time_us - pane_us < CELL_US for item in cell):
                self.failed[f"{event}: items outside of their cell, from {rows.device}"] += 1
                continue
            known[(key, writer)] = seq
            self._entries.append(KeptEntry(block.stream, pane_us, key, writer, seq, (content,)))
            self._taken += self._new(event, rows.device, pane_us, cell)
        return late

    def _seqs(self, stream: int, pane_us: int) -> Cells:
        """Return which entries of a cell are known; it is now the one that was used last."""
        at = (stream, pane_us)
        known = self._known.pop(at, None)
        if known is None:
            kept = self._keeper.entries(stream, pane_us, pane_us)
            known = {(entry.key, entry.writer): entry.seq for entry in kept}
        self._known[at] = known
        while len(self._known) > MOST_CELLS:
            del self._known[next(iter(self._known))]
        return known

    def _new(self, event: str, device: str, pane_us: int, cell: Cell) -> Iterator[StreamItem]:
        """Yield the items of a cell; of one behind the last cut those that the store has not."""
        before: Cell = {}
        if pane_us < self._engine.since_us:
            stored = dict(self._history.cells(event, pane_us, pane_us + 1))
            before = stored.get(CellId(event, device, pane_us), {})
        for item, state in cell.items():
            if before.get(item, 0) < state:
                yield _taken(event, device, item, state)

    @property
    def written(self) -> int:
        """How many rows were new or have changed."""
        return sum(book.written for book in self._books.values())

    @property
    def frontier_us(self) -> int | None:
        """How far rows are final; None for nothing yet."""
        return self._engine.frontier_us

    def advance(
        self,
        frontier_us: int | None,
        changes: FleetChanges,
        *,
        due_us: int | None = None,
        is_over: bool = False,
    ) -> None:
        """Evaluate what was taken, and add what is to be kept to the changes of a turn.

        Args:
            frontier_us: nothing older is expected.
            changes: of the turn.
            due_us: items before this time are waited for no longer, though F has not passed them.
            is_over: nothing more is expected at all: timers ring ahead of time.
        """
        changes.entries += self._entries
        came, self._taken, self._entries = self._taken, [], []
        if is_over and not came and frontier_us is not None:
            newest_us = max((each.time_us for each in self._waiting), default=frontier_us)
            frontier_us = self._engine.horizon_us(max(frontier_us, newest_us))
        until_us = max(each for each in (frontier_us, due_us, BEFORE_ALL_US) if each is not None)
        unseen, waiting = _by_cell(self._waiting), [*self._waiting, *came]
        taken = [each for each in waiting if each.time_us < until_us]
        self._waiting = [each for each in waiting if each.time_us >= until_us]
        until_us = min(until_us, FOR_EVER_US)
        if until_us != self._until_us:
            self._until_us = until_us
            self._history.put_until(until_us)
        if taken or _is_later(frontier_us, self._engine.frontier_us):
            before_us = self._engine.since_us
            self._history.unseen = unseen
            outcome = self._engine.take(taken, frontier_us)
            self._history.unseen = {}
            self._bring(outcome.deltas, before_us)
            self._count_failures()
        changes.history |= self._history.take_changes()
        changes.result_rows |= self._history.take_rows()

    def _bring(self, deltas: dict[str, Delta], before_us: int) -> None:
        """Bring the outputs of streams to their rows."""
        since_us, frontier_us = self._engine.since_us, self._engine.frontier_us
        for name, book in self._books.items():
            unfit = book.unfit
            book.take(book.fitting(deltas.get(name, {})), since_us, before_us, frontier_us)
            if book.unfit > unfit:
                self.failed[book.why] += book.unfit - unfit

    def _count_failures(self) -> None:
        """Count the functions that fail at a place where they did not before."""
        failing = self._engine.graph.failing
        for at in failing.keys() - self._failing:
            self.failed[f"{at[0]}: {failing[at]}"] += 1
        self._failing = set(failing)

    def needed_from_us(self, frontier_us: int) -> dict[int, int]:
        """Return the time before which no item is needed for a replay, by stream of items."""
        return dict.fromkeys(self._events, self._history.cut_at(self.floor_us(frontier_us)).time_us)

    def stored(self, name: str) -> Iterator[tuple[Place, ResultRow]]:
        """Yield the rows of a result, as the store has them."""
        for _, stored in self._history.rows(name, BEFORE_ALL_US, FOR_EVER_US):
            yield from rows_in(self._books[name].result, stored).items()

    def rows(self, name: str) -> Iterator[SentRow]:
        """Yield the rows of a result that are there, as they would travel."""
        for place, row in self.stored(name):
            if row.event is not None:
                parts = plain_parts(self._books[name].result, row.event.value)
                yield SentRow(place, row.event.key, parts)

    def newest(self) -> Iterator[tuple[str, str, Newest]]:
        """Yield result, key and newest rows, of all keys that are remembered."""
        for name, book in self._books.items():
            yield from ((name, key, newest) for key, newest in sorted(book.newest.items()))


def _is_later(frontier_us: int | None, than_us: int | None) -> bool:
    return frontier_us is not None and (than_us is None or frontier_us > than_us)


def _by_cell(taken: Iterable[StreamItem]) -> dict[CellId, list[Item]]:
    found: dict[CellId, list[Item]] = {}
    for each in taken:
        at = CellId(each.event, each.device, cell_of(each.time_us))
        found.setdefault(at, []).append(item_of(each))
    return found


def _taken(event: str, device: str, item: Item, state: int) -> StreamItem:
    return StreamItem(event, *item, device, state == RETRACTED)
