"""A gateway's streams: one order over the items of the whole fleet, on the engine of devices.

Items come as cells, a pane entry for each cell of an event and device, and are united: of several
lives of a device each may have a part. An entry stays in the store as it came, and the engine reads
cells from there. Whatever is behind the frontier is final; what comes late is replayed from its
place, and revises what it changes. Entries, states and rows of a turn are in one commit, so a
gateway that is killed goes on where its store stands, and devices send again what it had not
acknowledged.
"""

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Final

from crdts.frontier import Promise
from device_agent.gateway.failures import MOST_FAILURES
from device_agent.gateway.finality import TurnFinality
from device_agent.gateway.fleet_history import GatewayHistory
from device_agent.gateway.kept import FleetChanges, FleetKeeper, KeptEntry, WriterOfPanes
from lasp_edge.evaluation.fleet import (
    LIVE_ITEMS,
    LIVE_US,
    NOBODY,
    FleetEvaluator,
    FleetTerms,
    is_over,
)
from lasp_edge.evaluation.parted import promises_of
from lasp_edge.evaluation.rows import Newest, ResultBook
from lasp_edge.language.plan import Plan
from lasp_edge.language.raising import fleet_alerts
from lasp_edge.language.streaming import FLEET, StreamRow, cell_in, plain_parts, stream_plan
from lasp_edge.ordered.absences import RowAbsences
from lasp_edge.ordered.cells import CELL_US, CellId, cell_of
from lasp_edge.ordered.engine import StreamEngine
from lasp_edge.ordered.inputs import InputCell, PlacedCell, is_newer
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.results import ResultRow
from lasp_edge.ordered.sent_rows import SentRow
from lasp_edge.protocol.acceptance import PaneRows
from lasp_edge.tool.stalls import ScanStalls

MOST_CELLS: Final = 20_000
"""Cells whose entries are known by their seq in memory; of others the store is asked."""

Cells = dict[tuple[str, WriterOfPanes], int]
"""The seq of each entry of a cell, by key and writer."""


class FleetStreams:
    """The streams over a fleet.

    Args:
        plan: the program.
        keeper: keeps entries, states and rows.
        retain_us: for how long late items are taken.

    Attributes:
        failed: how often a function of the program failed, by reason, former runs included.
        parted: the scans with local events.
        stalls: looks which of them go on.
    """

    def __init__(self, plan: Plan, keeper: FleetKeeper, retain_us: int) -> None:
        self._keeper, self._retain_us = keeper, retain_us
        self._streams = {each.stream: each for each in plan.item_streams.values()}
        self._history = GatewayHistory(plan, keeper)
        streams = stream_plan(plan, FLEET)
        self._engine = StreamEngine(streams, self._history, LIVE_ITEMS, LIVE_US)
        self._books = {
            name: ResultBook(each, self._history, rounds=True)
            for name, each in plan.fleet_results.items()
        }
        watched = {each.variable for each in fleet_alerts(plan).values()}
        self._evaluator = FleetEvaluator(self._engine, self._history, self._books, watched)
        self.parted = self._history.parted
        self.stalls = ScanStalls(self.parted)
        self._known: dict[tuple[int, int], Cells] = {}
        self._taken: list[PlacedCell] = []
        self._entries: list[KeptEntry] = []
        self.failed = self._evaluator.failed
        progress = self._history.progress()
        self._stored_failed = self._history.failed()
        if progress is not None and progress.meanings == streams.meanings:
            self.failed.update(self._stored_failed)
        frontier_us = None if progress is None else progress.frontier_us
        self._evaluator.begin(BEFORE_ALL_US if frontier_us is None else self.floor_us(frontier_us))

    def has(self, stream: int) -> bool:
        """Return whether entries of a stream are cells of items."""
        return stream in self._streams

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
        sent = self._streams[block.stream]
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
            cell = cell_in(sent, content, (*writer[1:], seq))
            if cell_of(next(iter(cell))[0]) != pane_us:  # by its form, all are of one cell
                self.failed[f"{sent.name}: items outside of their cell, from {rows.device}"] += 1
                continue
            known[(key, writer)] = seq
            self._entries.append(KeptEntry(block.stream, pane_us, key, writer, seq, (content,)))
            at = CellId(sent.name, rows.device, pane_us)
            if new := self._new(at, cell):
                self._taken.append((at, new))
        return late

    def _seqs(self, stream: int, pane_us: int) -> Cells:
        """Return which entries of a cell are known; it is now the one that was used last."""
        at = (stream, pane_us)
        known = self._known.pop(at, None)
        if known is None:
            kept = self._keeper.entries(stream, pane_us, pane_us)
            known = {(entry.key, entry.writer): entry.seq for entry in kept}
        self._known[at] = known
        return known

    def _new(self, at: CellId, cell: InputCell) -> InputCell:
        """Return the items of a cell; of one behind the last cut those that the store has not."""
        event, _, pane_us = at
        if pane_us >= self._engine.since_us:
            return cell
        before = dict(self._history.cells(event, pane_us, pane_us + 1)).get(at, {})
        return {item: s for item, s in cell.items() if is_newer(s, before.get(item))}

    @property
    def written(self) -> int:
        """How many rows were new or have changed."""
        return sum(book.written for book in self._books.values())

    @property
    def frontier_us(self) -> int | None:
        """How far rows are final; None for nothing yet."""
        return self._engine.frontier_us

    def passed_us(self, frontier_us: int | None) -> int | None:
        """Return how far rows are final under F: once all devices are done, behind it, too."""
        ends_us = (each for each in (frontier_us, self.frontier_us) if each is not None)
        return max(ends_us, default=None)

    @property
    def taken_us(self) -> int:
        """The time before which items are waited for no longer, whatever is due by now."""
        return self._history.taken_us

    @property
    def is_settled(self) -> bool:
        """Whether nothing waits to be taken, and all events in order are answered."""
        return self._evaluator.is_settled

    def settled_us(self, name: str) -> int | None:
        """Return the time before which the rows of a result are final."""
        return self._evaluator.settled_us(name)

    def terms(
        self, promises: Mapping[str, Promise], finality: TurnFinality, wait_us: int
    ) -> FleetTerms:
        """Return for whom rows wait in a turn, and who is missing in them; see `advance`.

        Args:
            promises: the newest of each device.
            finality: how far they are final, and for whom that waits.
            wait_us: X.
        """
        coverage, due_us = finality.coverage, finality.waiting.due_us(wait_us)
        # Who does not wait at all waits for answers all the same: each one that is late would
        # change a share, and all that devices make of it.
        waited_us = due_us if wait_us else None
        return FleetTerms(
            due_us,
            is_over(promises, coverage),
            promises_of(promises, coverage) if self.parted.scans else NOBODY,
            waited_us,
            RowAbsences(
                finality.awaited,
                finality.promises,
                finality.lacking,
                tentative=(coverage.frontier, waited_us),
                caught_up=finality.caught_up,
                lost=finality.lost,
                grown=range(0) if self.frontier_us is None else finality.grown,
                floor_us=self.floor_us(self.frontier_us or 0),
            ),
            self.floor_us(coverage.frontier or 0),
        )

    def advance(self, frontier_us: int | None, changes: FleetChanges, terms: FleetTerms) -> None:
        """Evaluate what was taken, and add what is to be kept to the changes of a turn.

        Args:
            frontier_us: nothing older is expected.
            changes: of the turn.
            terms: for whom rows wait.
        """
        changes.entries += self._entries
        self._history.committed()
        self._history.coming = self._entries
        came, self._taken, self._entries = self._taken, [], []
        while len(self._known) > MOST_CELLS:  # the store has what this turn has taken from here on
            del self._known[next(iter(self._known))]
        since_us = self._engine.since_us
        self._evaluator.advance(came, frontier_us, terms)
        if self._engine.since_us != since_us and self.frontier_us is not None:
            self.parted.forget(self._history.cut_at(self.floor_us(self.frontier_us)).time_us)
        self.stalls.look(self.frontier_us, self.parted.least)
        self._store_failed()
        changes.history |= self._history.take_changes()
        changes.result_parts |= self._history.take_rows()

    def _store_failed(self) -> None:
        """Store how often functions failed, if that has changed: after a restart it is known."""
        failed = dict(self.failed.most_common(MOST_FAILURES))
        if failed != self._stored_failed:
            self._stored_failed = failed
            self._history.put_failed(failed)

    def needed_from_us(self, frontier_us: int) -> dict[int, int]:
        """Return the time before which no item is needed for a replay, by stream of items."""
        return dict.fromkeys(
            self._streams, self._history.cut_at(self.floor_us(frontier_us)).time_us
        )

    def stored(self, name: str) -> Iterator[tuple[Place, ResultRow]]:
        """Yield the rows of a result, as the store has them."""
        for _, stored in self._history.rows(name, BEFORE_ALL_US, FOR_EVER_US):
            yield from stored.items()

    def rows(self, name: str) -> Iterator[SentRow]:
        """Yield the rows of a result that are there, as they would travel."""
        for place, row in self.stored(name):
            if row.event is not None:
                parts = plain_parts(self._books[name].result, row.event.value)
                yield SentRow(place, row.event.key, parts)

    def take_final(self) -> list[StreamRow]:
        """Return the rows that alerts watch and that became final since the last time, in order."""
        final, self._evaluator.final = self._evaluator.final, []
        return sorted(final, key=attrgetter("place"))

    def newest(self) -> Iterator[tuple[str, str, Newest]]:
        """Yield result, key and newest rows, of all keys that are remembered."""
        for name, book in self._books.items():
            yield from ((name, key, newest) for key, newest in sorted(book.newest.items()))
