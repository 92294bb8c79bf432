"""Streams over the whole fleet in a step: touched cells are evaluated, rows that differ appended.

The evaluator is a gateway's (`lasp_edge.evaluation.fleet`), over the cells of `lattice`. The graph,
and the items since the last cut, stay in the driver between steps. Touched are the cells of all
input rows, new or not. At a start, and so after a batch that died, evaluation goes on from the
newest cut before all that is touched, and what comes out is compared with the rows of the table.

    1 rows of results that differ    a commit for each result
    2 cuts, when there are new ones  one commit, so all rows before a cut are there

Of a scan with local events the answers of devices land as outputs do, and each says of which share
it was made: so a lake settles the same rows by itself. A gateway publishes the events in order. The
marks of places that are whole are committed with the cuts. A cut lies so far behind the frontier
that nothing in time comes before it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from cloud_tier.job.fleet_history import LakeHistory
from cloud_tier.job.job import Job
from crdts.frontier import BOTTOM_US, Promise
from lasp_edge.evaluation.fleet import LIVE_ITEMS, LIVE_US, NOBODY, FleetEvaluator, FleetTerms
from lasp_edge.evaluation.rows import ResultBook
from lasp_edge.language.streaming import FLEET, stream_plan
from lasp_edge.ordered.absences import NO_TIMES, RowAbsences
from lasp_edge.ordered.cells import CELL_US
from lasp_edge.ordered.deltas import Delta, compose_into
from lasp_edge.ordered.engine import Rebuilt
from lasp_edge.ordered.gathering import Promised
from lasp_edge.ordered.inputs import PlacedCell
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.revisiting import RevisitingEngine
from lasp_edge.protocol.frontier import AwaitedDevices
from lasp_edge.protocol.lost_stores import LackingStretches
from lasp_edge.tool.stalls import ScanStalls
from lasp_edge.units import SECOND_US

MOST_ENTRIES: Final = 5_000
"""Entries of cells that are evaluated together, about: some 50,000 items of devices at 1 Hz."""
ANSWERED_US: Final = 60_000_000
"""Microseconds of readings in which devices have answered an event in order, if a gateway runs."""

Touched = Mapping[int, Mapping[int, int]]
"""Stream -> start of a cell -> how many entries a batch has."""
Cells = Mapping[str, Mapping[int, int]]
"""Event -> start of a cell -> how many entries there are of it."""


class StepFrontier(NamedTuple):
    """How far all has come in a step.

    Attributes:
        before_us: how far results were final before it; None for nothing yet.
        now_us: how far they are now.
        due_us: items before this time are waited for no longer.
        is_over: all that are waited for have sent their last reading.
        promises: of the devices that count, whose answers are waited for.
        answers_due_us: for answers before this time nobody waits any longer.
        awaited: for whom rows wait.
        known: the promise of each device, by `unvoided`.
        caught_up: the ends of windows that devices have promised past since F has passed them.
        clock_us: what time the landers have.
        lacking: of which devices readings may be missing.
    """

    before_us: int | None
    now_us: int | None
    due_us: int | None
    is_over: bool
    promises: Mapping[str, Promised | None] = NOBODY
    answers_due_us: int | None = None
    awaited: AwaitedDevices = AwaitedDevices((), BOTTOM_US)
    known: Mapping[str, Promise] = MappingProxyType({})
    caught_up: range = NO_TIMES
    clock_us: int = 0
    lacking: LackingStretches = LackingStretches()


class LakeStreams:
    """The streams over the fleet, as the driver keeps them between steps.

    Args:
        job: the program over the lake.

    Attributes:
        stalls: looks which scans with local events go on.
        too_late: how many entries of cells came too late, in the last step.
    """

    def __init__(self, job: Job) -> None:
        plan, self._retain_us = job.plan, job.retain_us
        self._events = {each.stream: event for event, each in plan.item_streams.items()}
        self._history = LakeHistory(job)
        books = {
            name: ResultBook(each, self._history, rounds=True, remembers=False)
            for name, each in plan.fleet_results.items()
        }
        self._parted = self._history.parted
        live = (FOR_EVER_US, 2 * job.retain_us) if self._parted.scans else (LIVE_ITEMS, LIVE_US)
        self._engine = RevisitingEngine(stream_plan(plan, FLEET), self._history, *live)
        self._evaluator = FleetEvaluator(self._engine, self._history, books)
        self._has_begun = False
        self.stalls = ScanStalls(self._parted)
        self._absences: RowAbsences | None = None
        self.too_late = 0

    @property
    def failed(self) -> Counter[str]:
        """How often a function of the program failed, by reason."""
        return self._evaluator.failed

    @property
    def frontier_us(self) -> int | None:
        """How far rows are final; None for nothing yet."""
        return self._engine.frontier_us

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The scans whose events in order devices have passed, and have answered none of."""
        frontier_us = self.frontier_us
        return () if frontier_us is None else self._parted.unanswered(frontier_us - ANSWERED_US)

    def advance(self, touched: Touched, frontier: StepFrontier) -> int:
        """Evaluate what a batch brought, and commit it; return how many rows were appended.

        Args:
            touched: the panes of the batch, those of other streams, too.
            frontier: how far all has come.
        """
        cells, live = self._in_time(touched, frontier.before_us), None
        if not self._has_begun:
            live = self._begin(cells, frontier)
        since_us, appended = self._engine.since_us, self._history.appended
        self._history.frontier_us = frontier.now_us
        self._absences = self._absences_of(frontier)
        self._evaluate(cells, live, frontier)
        if frontier.is_over:
            self._advance([], frontier.now_us, frontier.due_us, frontier)
        for again in self._again(frontier):  # all else of the step is done
            self._absences = self._absences_of(frontier, **again)
            self._advance([], frontier.now_us, frontier.due_us, frontier)
        self._parted.unpublished.clear()  # gateways publish
        self._history.commit_rows()
        self._history.commit_cuts()
        if self._engine.since_us != since_us:
            self._parted.forget(self._needed_us(frontier.now_us))
        self._has_begun = True
        self.stalls.look(self.frontier_us, frontier.clock_us // SECOND_US)
        return self._history.appended - appended

    def _again(self, frontier: StepFrontier) -> Iterator[dict[str, range]]:
        """Yield which final rows may have to name others: first those that name somebody."""
        before_us, grown = frontier.before_us, frontier.lacking.grown
        if frontier.caught_up:
            yield {"caught_up": frontier.caught_up}
        if before_us is not None and grown.stop > max(grown.start, self._floor_us(before_us)):
            yield {"grown": grown}

    def _absences_of(self, frontier: StepFrontier, **again: range) -> RowAbsences:
        """Return who is missing in rows of a step, and which of them may have to name others.

        Args:
            frontier: how far all has come.
            again: see `_again`.
        """
        before_us = frontier.before_us
        return RowAbsences(
            lambda: frontier.awaited,
            frontier.known,
            frontier.lacking.lacking,
            tentative=(frontier.now_us, frontier.answers_due_us),
            lost=frontier.lacking.lost,
            floor_us=0 if before_us is None else self._floor_us(before_us),
            **again,
        )

    def _in_time(self, touched: Touched, before_us: int | None) -> dict[str, dict[int, int]]:
        """Return the touched cells by event, without those that are too old."""
        floor_us = BEFORE_ALL_US if before_us is None else self._floor_us(before_us)
        found: dict[str, dict[int, int]] = {event: {} for event in self._events.values()}
        self.too_late = 0
        for stream, event in self._events.items():
            for cell_us, entries in touched.get(stream, {}).items():
                if cell_us < floor_us:
                    self.too_late += entries
                else:
                    found[event][cell_us] = entries
        return found

    def _floor_us(self, frontier_us: int) -> int:
        return (frontier_us - self._retain_us) // CELL_US * CELL_US

    def _needed_us(self, before_us: int | None) -> int:
        """Return from when on the events in order of scans with local events are needed."""
        if before_us is None or not self._parted.scans:
            return BEFORE_ALL_US
        least_us = min(self._floor_us(before_us), self._engine.since_us)
        return self._history.cut_at(least_us).time_us

    def _begin(self, cells: Cells, frontier: StepFrontier) -> Cells:
        """Go on at the newest cut; return all cells since, whether they were touched or not."""
        before_us = frontier.before_us
        self._engine.resume(BEFORE_ALL_US if before_us is None else self._floor_us(before_us))
        since_us = self._engine.since_us
        self._history.floor_us = self._needed_us(before_us)
        self._parted.begin(self._history.floor_us)
        for book in self._evaluator.books.values():
            book.begin(since_us)
        events = [*cells, *self._parted.inputs]
        return {event: self._history.starts_us(event, since_us) for event in events}

    def _evaluate(self, cells: Cells, live: Cells | None, frontier: StepFrontier) -> None:
        """Evaluate what a batch brought.

        Where the live end begins again, it is compared with the rows once all has come: what is so
        meanwhile is nothing to anybody.

        Args:
            cells: that were touched.
            live: all since the last cut, at a start; None later.
            frontier: how far all has come.
        """
        since_us, due_us = self._engine.since_us, frontier.due_us
        starts = live is not None
        again: dict[str, Delta] | None = {} if starts else None
        past = {at_us for each in cells.values() for at_us in each if at_us < since_us}
        for rebuilt in self._engine.revisited(past, starts=starts):
            if rebuilt.end_us == FOR_EVER_US:
                again = rebuilt.deltas
            else:
                # no row behind it is meant
                self._evaluator.compare(rebuilt, since_us, since_us, self._absences)
        if live is None:
            live = {
                event: {at_us: n for at_us, n in entries.items() if at_us >= since_us}
                for event, entries in cells.items()
            }
        else:
            # What has a row was not waited for any longer, whatever is known of that now.
            due_us = max(due_us or BEFORE_ALL_US, self._history.newest_row_us(since_us) + 1)
        for came, now_us in self._chunks(live, frontier.now_us):
            if again is None:
                self._advance(came, now_us, due_us, frontier)
                continue
            for name, delta in (self._evaluator.step(came, now_us, due_us=due_us) or {}).items():
                compose_into(again.setdefault(name, {}), delta)
        if again is not None:
            self._evaluator.settle(again, self._terms(due_us, frontier))
            rebuilt = Rebuilt(again, since_us)
            self._evaluator.compare(rebuilt, since_us, self._engine.frontier_us, self._absences)

    def _advance(
        self,
        came: list[PlacedCell],
        now_us: int | None,
        due_us: int | None,
        frontier: StepFrontier,
    ) -> None:
        """Evaluate what came, and bring it to the rows."""
        terms = self._terms(due_us, frontier)
        is_over = frontier.is_over and not came
        self._evaluator.advance(came, now_us, terms._replace(is_over=is_over))

    def _terms(self, due_us: int | None, frontier: StepFrontier) -> FleetTerms:
        waited = frontier.is_over, frontier.promises, frontier.answers_due_us
        floor_us = self._floor_us(frontier.now_us or 0)
        return FleetTerms(due_us, *waited, self._absences, floor_us)

    def _chunks(
        self, cells: Cells, frontier_us: int | None
    ) -> Iterator[tuple[list[PlacedCell], int | None]]:
        """Yield cells, some of them together in their order, and F for each.

        It is passed on as far as the items have come, so there can be cuts between; at last all.
        """
        spans = list(_spans(cells))
        following = [*[first_us for first_us, _ in spans][1:], FOR_EVER_US]
        for (first_us, last_us), next_us in zip(spans, following, strict=False):
            came = [
                each
                for event, entries in cells.items()
                for each in self._history.cells_at(
                    event, {at_us for at_us in entries if first_us <= at_us <= last_us}
                )
            ]
            yield came, None if frontier_us is None else min(frontier_us, next_us)
        if not spans:
            yield [], frontier_us


def _spans(cells: Cells) -> Iterator[tuple[int, int]]:
    """Yield the first and the last start of cells that are evaluated together."""
    entries: Counter[int] = Counter()
    for each in cells.values():
        entries.update(each)
    chunk: list[int] = []
    count = 0
    for at_us in sorted(entries):
        chunk.append(at_us)
        count += entries[at_us]
        if count >= MOST_ENTRIES:
            yield chunk[0], chunk[-1]
            chunk, count = [], 0
    if chunk:
        yield chunk[0], chunk[-1]


def streams_of(job: Job) -> LakeStreams | None:
    """Return the streams over the fleet; None for a program without results of such."""
    return LakeStreams(job) if job.plan.fleet_results else None
