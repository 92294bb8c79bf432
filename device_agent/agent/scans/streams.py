"""The part that runs a program's streams: its scans, windows over them, results and handlers.

It takes new readings right before each commit, and reads the store where something comes late. So
items, states, rows, the panes of windows over streams and what handlers of results change are in
one transaction with the readings.

What streams say becomes panes, which land like all others
(`device_agent.agent.scans.stream_panes`).
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from crdts import ControlLog
from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes
from device_agent.agent.intake.intake import Intake
from device_agent.agent.panes.panes import Panes
from device_agent.agent.parts import Part, StoreReader
from device_agent.agent.scans.incomplete import IncompleteAnswers
from device_agent.agent.scans.leaving import LeavingOutputs
from device_agent.agent.scans.stream_panes import StreamPanes
from device_agent.agent.variables.variables import PendingUpdates, Variables
from device_agent.outputs.retained import Content, Retained
from lasp_edge.evaluation.history import StreamHistory
from lasp_edge.evaluation.packed_rows import place_of
from lasp_edge.evaluation.rows import ResultBook
from lasp_edge.evaluation.stored import HistoryRow
from lasp_edge.language.declarations import Window
from lasp_edge.language.parameter_scan import NO_ENTRIES, log_of_entries, streamed_log
from lasp_edge.language.streaming import StreamRow, stream_plan
from lasp_edge.language.updates import Update, ValueOf
from lasp_edge.ordered.cells import CELL_US
from lasp_edge.ordered.engine import Rebuilt, StreamChanges
from lasp_edge.ordered.following import FollowingEngine
from lasp_edge.ordered.inputs import column_cells
from lasp_edge.protocol.limits import FUTURE_US
from lasp_edge.protocol.publication import Publication
from lasp_edge.timers import Timer
from lasp_edge.units import SECOND_US

if TYPE_CHECKING:
    from device_agent.agent.scans.shares import Shares
    from device_agent.outputs.topic_notes import TopicNotes

LONG_AGO_US = 600 * SECOND_US
"""Microseconds: readings that lie further behind the clock are those of a file, or of a sensor that
was cut off from its device. Others are some seconds behind it."""
PATIENCE_US = 10 * SECOND_US
"""Microseconds for which readings of a time long ago wait for the next place, at most: a gateway
commits every two seconds."""


class Streams(Part):
    """Runs the streams of a program.

    Args:
        agent: what all parts share.
        intake: gives the readings, and how far they have come.
        panes: the entries of windows.
        variables: what handlers of results change.
        value_of: returns what folds are worth, for handlers that ask.
        shares: the places that gateways publish; None where no scan has local events.
        notes: the stored topics of newest rows.

    Attributes:
        engine: the streams.
        books: the rows of each result.
        begun: the rows of the store are in the books.
        panes: makes those of windows, and of rows.
        shares: the places that gateways publish; None where no scan has local events.
        waits: the next commit has entries of operators to follow.
    """

    name = "streams"

    def __init__(
        self,
        agent: Agent,
        intake: Intake,
        panes: Panes,
        variables: Variables,
        value_of: ValueOf,
        shares: "Shares | None" = None,
        notes: "TopicNotes | None" = None,
    ) -> None:
        self.shares = shares
        plan, self._agent, self._intake = agent.plan, agent, intake
        self._variables, self._value_of = variables, value_of
        self.panes = StreamPanes(agent, panes)
        self._panes = panes
        self._sent = [each for each in plan.item_streams.values() if each.outputs]
        self._store: StoreReader | None = None
        self._log = ControlLog()
        self._load()
        self._windows = [w for w in plan.windows.values() if w.source.name in plan.device_streams]
        self._events = plan.evaluated_events
        self._known = frozenset(agent.facts.streams or ())
        self._waits = False
        self._now_us = 0
        self._pace = Timer(max(SECOND_US, agent.settings.commit_every_us))
        every_us = agent.settings.results_us
        self._timer = Timer(every_us) if every_us else None
        self._notes, self._retained = notes, Retained(notes)
        self._failing: set[tuple[str, Any]] = set()

    def _load(self, log: ControlLog = NO_ENTRIES) -> None:
        """Begin with the stored history, under the stored operators' entries."""
        plan, device = self._agent.plan, self._agent.replica.device
        self.begun, self._followed = False, log
        self.waits = self._log != log
        self._history, incomplete = StreamHistory(plan, device, self._stored), None
        if self.shares is not None:
            self._history = self._parted = self.shares.history(device, self._stored)
            doubt_us = self._intake.highs.furthest_doubt_us
            incomplete = IncompleteAnswers(doubt_us, self._parted.places)
        self._leaving = LeavingOutputs(self._agent, self._panes, self.shares, incomplete)
        live_most = self._agent.settings.live_items
        self.engine = FollowingEngine(stream_plan(plan, device, log), self._history, live_most)
        self.panes.follow(log)
        self.books = {
            name: ResultBook(result, self._history) for name, result in plan.device_results.items()
        }

    def follow(self, log: ControlLog) -> None:
        """Take the operators' entries: what they change is evaluated with the next commit."""
        self._log = streamed_log(self._agent.plan, self._agent.replica.device, log)
        self.waits = self._log != self._followed

    def _stored(self, stream: int, least_us: int, end_us: int) -> list[tuple[int, HistoryRow]]:
        """Read what is kept of a stream; only while a commit is prepared."""
        assert self._store is not None
        return self._store.history(stream, least_us, end_us)

    def _low_us(self, now_us: int) -> int | None:
        """Return the time before which nothing older is read; None while that is unknown."""
        low_us = self._intake.low_us(now_us)
        if low_us is not None and self._intake.sources.all_done:
            high_us = self._intake.progress.high_us
            low_us = self.engine.graph.horizon_us(low_us if high_us is None else high_us)
        return low_us

    def is_due(self, now_us: int) -> bool:
        """Return whether time alone has brought something."""
        if not self.begun or self.waits or _has_places(self, self._agent, self._intake, now_us):
            return True
        low_us, timer_us = self._low_us(now_us), self.engine.graph.due_us
        if low_us is None:
            return False
        due_us = [book.due_us for book in self.books.values() if book.due_us is not None]
        rows = bool(due_us) and min(due_us) < low_us
        is_timer_due = timer_us is not None and timer_us < low_us
        self._waits = is_timer_due or (rows and self._pace.is_due(now_us))
        return self._waits

    def read(self, store: StoreReader, now_us: int) -> None:
        """Take the readings that came since the last time, before they are committed."""
        self._now_us = self.panes.now_us = now_us
        columns = [each for each in self._intake.columns if each.event in self._events]
        if self.begun and not (
            columns
            or self._waits
            or self.waits
            or _has_places(self, self._agent, self._intake, now_us)
        ):
            return
        self._waits = False
        self._store = store
        if not self.begun:
            self._begin(store)
        if self.waits:
            self._follow(store)
        before_us, shares = self.engine.since_us, self.shares
        taken, low_us = list(column_cells(columns)), self._low_us(now_us)
        if shares is None:
            outcome = self.engine.take(taken, low_us)
        else:
            given = self.engine, self._parted, taken, low_us, self._intake.progress.pruned_us
            outcome = shares.evaluated(
                *given, now_us, catches_up=_catches_up(self._agent, self._intake, shares, now_us)
            )
        self._bring(outcome, before_us, store, self._windows)
        if self._leaving.leave(self._sent, outcome.deltas, store, now_us) and shares is not None:
            shares.answered(self._agent.beats, self._intake.progress.promised_us)
        for each in outcome.retracted:
            self._agent.counters.add("retracted")
            self.panes.take_back(each, store)
        failing = self.engine.graph.failing
        for name, place in failing.keys() - self._failing:  # it did not fail there before
            self._agent.counters.note(f"failed: {name}: {failing[name, place]}")
        self._failing = set(failing)

    def give_up(self) -> None:
        """Store nothing of an evaluation that has failed, and go on from what is stored."""
        if self.shares is not None:
            self.shares.give_up()
        self._load()

    def _begin(self, store: StoreReader) -> None:
        progress = self._history.progress()
        if progress is not None and progress.entries:
            self._load(log_of_entries(progress.entries))
        self.begun = True
        pruned_us = self._intake.progress.pruned_us
        if self.shares is not None:
            self.shares.begin(self._parted, self._intake.progress.promised_us)
        rebuilt = self.engine.begin(pruned_us)
        for book in self.books.values():
            book.begin(self.engine.since_us)
        self._renew(rebuilt, pruned_us, store)

    def _follow(self, store: StoreReader) -> None:
        """Evaluate again what the operators' entries change, and make the panes of new meanings."""
        plan, log = self._agent.plan, self._log
        changed = self._log.entries.items() ^ self._followed.entries.items()
        since_us = min(at.from_us for at, _ in changed)
        before_us, self._followed, self.waits = self.engine.since_us, log, False
        deltas = self.engine.follow(stream_plan(plan, self._agent.replica.device, log), since_us)
        renewed = {name: each for name, each in self.panes.follow(log).items() if each}
        for window in self._windows:
            delta = deltas.get(window.source.name, {})
            if delta:
                again = renewed.get(window.name, [])
                self.panes.fold(window, delta, store, without=again)
        if renewed:
            first_us = min(piece.first_us for each in renewed.values() for piece in each)
            windows = [plan.windows[name] for name in renewed]
            contents = self.engine.contents({w.source.name for w in windows}, first_us)
            for window in windows:
                content = contents[window.source.name]
                self.panes.renew(window, renewed[window.name], content, store)
        self._bring(StreamChanges(deltas, []), before_us, store, [])
        self._leaving.leave(self._sent, deltas, store, self._now_us)

    def _renew(self, rebuilt: Rebuilt | None, pruned_us: int, store: StoreReader) -> None:
        """Bring streams to what the last program did not have: windows, items and rows.

        Rows of cells that have left the store are over.

        Args:
            rebuilt: what all streams give, if one of them is another one.
            pruned_us: what lies wholly before it may have left the store.
            store: of what is kept.
        """
        is_same, known = rebuilt is None, self._known
        windows = [each for each in self._windows if each.stream in self._panes.begun]
        books = {
            name: book
            for name, book in self.books.items()
            if not is_same or book.result.stream not in known
        }
        if rebuilt is None:
            since_us = self._history.cut_at(pruned_us).time_us
            names = {each.source.name for each in windows} | books.keys()
            rebuilt = Rebuilt(self.engine.contents(names, since_us) if names else {}, since_us)
        deltas, since_us, _ = rebuilt
        self.panes.complete(windows, deltas, since_us, store)
        if not is_same:
            sent = [each for each in self._sent if each.stream not in known]
            self._leaving.leave(sent, deltas, store, self._now_us)
        first_us = max(since_us, pruned_us // CELL_US * CELL_US)
        changed = {
            name: book.changed(deltas.get(name, {}), first_us) for name, book in books.items()
        }
        self._bring(StreamChanges(changed, []), self.engine.since_us, store, [])

    def _bring(
        self, outcome: StreamChanges, before_us: int, store: StoreReader, windows: list[Window]
    ) -> None:
        """Bring the outputs of streams to windows, rows and handlers."""
        since_us, frontier_us = self.engine.since_us, self.engine.frontier_us
        for window in windows:
            delta = outcome.deltas.get(window.source.name)
            if delta:
                self.panes.fold(window, delta, store)
        for name, book in self.books.items():
            delta = book.fitting(outcome.deltas.get(name, {}))
            self.panes.deliver(book.result, delta, store)
            unfit = book.unfit
            final = book.take(delta, since_us, before_us, frontier_us)
            if self._agent.plan.functions.results.get(name):
                for placed in sorted(final, key=place_of):
                    self._handle(book.shown(*placed))
            if book.unfit != unfit or (book.why and book.unfit):
                self._agent.counters.note(f"failed: {book.why}", book.unfit)
                book.unfit, book.why = 0, ""

    def bounded_us(self, low_us: int | None, now_us: int) -> int | None:
        """Return the time before which no stream has another output.

        Args:
            low_us: no reading comes that is older; None while that is unknown.
            now_us: the time.
        """
        due_us, frontier_us = self.engine.graph.due_us, self.engine.frontier_us
        first_us = self.engine.waiting.first_us
        if low_us is not None and first_us is not None:
            low_us = min(low_us, first_us)
        if low_us is not None and self.waits:
            changed = self._log.entries.items() ^ self._followed.entries.items()
            low_us = min(low_us, *(at.from_us for at, _ in changed))
        if low_us is None or due_us is not None:
            return low_us if low_us is None or due_us is None else min(low_us, due_us)
        if frontier_us is None or not self._intake.sources.all_done:
            return low_us
        # All timers have rung, some of them perhaps ahead of time; nobody believes far promises.
        return max(low_us, min(frontier_us, self._agent.clock.time_us(now_us) + FUTURE_US // 2))

    def _handle(self, row: StreamRow) -> None:
        """Run the handlers of a row; what one changes is taken whole, or not at all."""
        for handler in self._agent.plan.functions.results.get(row.name, ()):
            update = Update(self._agent.plan, value_of=self._value_of)
            pending = PendingUpdates()
            try:
                handler(row, update)
                self._variables.apply(update.changes, pending)
            except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
                self._agent.guard.failed(f"on_result of {row.name}", error)
            else:
                self._variables.record(pending, self._agent.clock.time_us(self._now_us))

    def take_changes(self) -> Changes | None:
        if self._notes and self._timer and self.begun and self._timer.is_over(self._agent.now_us):
            self._notes.ask(partial(_coming, self._agent, self.books))
        taken = self._history.take_changes()
        return Changes(history=taken) if taken else None

    def connected(self, _now_us: int) -> None:
        self._retained.again()
        if self._timer:
            self._timer.restart()

    def unsent(self, publication: Publication) -> None:
        if self._timer and not publication.pane_frame:
            self._timer.restart()

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Publish the newest rows of each key, where that is asked for."""
        if self._timer is not None and self.begun and self._timer.is_due(now_us):
            yield from self._retained.publications(_wanted(self._agent, self.books))
            if self._retained.waits:
                self._timer.restart()

    def shown(self) -> Iterator[tuple[str, str]]:
        """Yield result and key of each row that people are shown."""
        for name, book in self.books.items():
            yield from ((name, k) for k, each in sorted(book.newest.items()) if not each.is_empty)

    def report(self) -> dict[str, Any]:
        frontier_us = self.engine.frontier_us
        return {
            "streams": {
                "final_before_us": frontier_us,
                "results": {
                    name: {key: newest.plain() for key, newest in sorted(book.newest.items())}
                    for name, book in self.books.items()
                },
            }
        }


def _wanted(agent: Agent, books: Mapping[str, ResultBook]) -> Iterator[Content]:
    """Yield the newest rows of each key, for people."""
    for name, book in books.items():
        for key, newest in sorted(book.newest.items()):
            topic = agent.topics.result(name, agent.replica.device, key or None)
            yield Content(topic, newest.mark, newest.as_json)


def _coming(agent: Agent, books: Mapping[str, ResultBook]) -> Iterator[str]:
    """Yield the topics of the newest rows of each key."""
    yield from (each.topic for each in _wanted(agent, books))


def _has_places(streams: Streams, agent: Agent, intake: Intake, now_us: int) -> bool:
    """Return whether places were published that were not taken, or cells wait for none any more."""
    shares = streams.shares
    if shares is None:
        return False
    waits = streams.engine.waiting.first_us is not None
    return (waits and not _catches_up(agent, intake, shares, now_us)) or shares.is_waiting(now_us)


def _catches_up(agent: Agent, intake: Intake, shares: "Shares", now_us: int) -> bool:
    """Return whether readings are of a time long ago, and places behind them may still come."""
    high_us, since_us = intake.progress.high_us, shares.waits_since_us
    is_old = high_us is not None and high_us < agent.clock.time_us(now_us) - LONG_AGO_US
    return is_old and (since_us is None or now_us < since_us + PATIENCE_US)
