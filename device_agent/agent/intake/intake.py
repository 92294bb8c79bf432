"""The way in: from held batches of readings to what a commit stores.

1. `hold` takes a batch, which waits until its commit is due (`HeldBatches`).
2. `read` takes in all that is held, right before that commit, small batches of one source that came
   one after the other as one (`together`). It accepts readings by whole columns (`by_column`) where
   no function of the user's must see them, else one after the other (`one_by_one`, the definition
   of both). Both read of the store what memory has let go.
3. What they bring to panes and variables waits in the `PendingBatch`.
4. `join`, at the end of `read`, brings it there; `take_changes` returns all the rest of it.
5. `committed` acknowledges them to the sources.
"""

from collections import deque
from operator import itemgetter
from typing import Protocol

from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes, Facts, Restored
from device_agent.agent.clock import EARLIEST_US
from device_agent.agent.intake.batch import COLUMN_LEAST, Batch, HeldBatch, HeldBatches, together
from device_agent.agent.intake.by_column import ByColumn
from device_agent.agent.intake.identities import KEPT_STREAMS, Identities
from device_agent.agent.intake.odd_readings import LOOKED_AT, MOST_BATCHES, OddReadings
from device_agent.agent.intake.one_by_one import OneByOne
from device_agent.agent.intake.peer_reports import KnownProgress
from device_agent.agent.intake.pending import PendingBatch
from device_agent.agent.intake.progress import NO_TIME, STAMP_AHEAD_US, SourceProgress
from device_agent.agent.intake.routes import Route
from device_agent.agent.intake.times_behind import LEAST_US
from device_agent.agent.panes.panes import Panes
from device_agent.agent.parts import Part, StoreKeeper, StoreReader
from device_agent.agent.variables.variables import Variables
from lasp_edge.event import StreamColumn, StreamItem
from lasp_edge.language.plan import ordered_events
from lasp_edge.language.updates import ValueOf
from lasp_edge.timers import Timer

PRUNE_US = 3_600_000_000
"""Microseconds between two deletions of what is older than the retention: one hour."""


class WaitingRoom(Protocol):
    """Where readings wait for the clock.

    Attributes:
        is_ready: some wait, and need not any more.
    """

    is_ready: bool

    def put(self, batch: Batch, now_us: int) -> bool:
        """Let a batch wait while no clock is trusted; return whether it does."""

    def take_page(self, store: StoreReader, now_us: int) -> list[Batch]:
        """Return the first batches, which wait no more."""


class Intake(Part):
    """Accepts readings.

    Args:
        agent: what all parts share.
        restored: what the store holds.
        sources: how far each source has been read.
        known: how far the readings have come.
        panes, variables: what readings change.
        waiting: keeps readings until a clock is trusted.
        value_of: returns what folds are worth, for handlers that ask.

    Attributes:
        identities: which readings are known.
        sources: how far each source has been read.
        progress: how far the readings have come.
        highs: how far each source with own times has come, and which readings are doubtful.
        peer_reports: takes how far they have come by other processes.
        columns: the readings that streams, and windows that are not plain, are made from: those
            that the last `read` has accepted.
        corrected: of windows that are not plain, the readings that it has taken back.
        read_us: when the last reading came, taken in or held.
        column_least: batches of fewer readings are taken one by one.
    """

    name = "intake"

    def __init__(
        self,
        agent: Agent,
        restored: Restored,
        sources: SourceProgress,
        known: KnownProgress,
        panes: Panes,
        variables: Variables,
        waiting: WaitingRoom,
        value_of: ValueOf,
    ) -> None:
        plan, settings = agent.plan, agent.settings
        self._clock = agent.clock
        self._panes, self._variables, self._counters = panes, variables, agent.counters
        self._waiting, self._guard, self._notices = waiting, agent.guard, agent.notices
        self._max_skew_us = settings.max_skew_us
        self.sources, progress = sources, known.readings
        self.progress, self._noted_us = progress, progress.promised_us
        self.highs, self.peer_reports = known.highs, known.peer_reports
        self._held = HeldBatches(settings.commit_every_us, ordered_events(plan))
        self._taken_in = list[HeldBatch]()
        self._prune = Timer(PRUNE_US)
        self.read_us = self._asked_us = 0
        newest = restored.last_blocks[:KEPT_STREAMS]
        complete = len(restored.last_blocks) <= KEPT_STREAMS
        self.identities = Identities(reversed(newest), complete=complete)
        self._routes = {name: Route(plan, event) for name, event in plan.events.items()}
        self._windows = [each.window for route in self._routes.values() for each in route.targets]
        found = (agent, self._routes, progress, self.identities, panes)
        self._by_column = ByColumn(*found)
        self._one_by_one = OneByOne(*found, variables, value_of)
        self._odd = OddReadings(plan.events.values(), agent.notices)
        self._to_look_at = deque[tuple[Batch, bool]](maxlen=MOST_BATCHES)
        self.column_least = COLUMN_LEAST
        self._pending, self._changes = PendingBatch(), Changes()
        self.columns, self.corrected = list[StreamColumn](), list[StreamItem]()

    def hold(self, held: HeldBatch, *, is_pressing: bool = False) -> bool:
        """Hold a batch until its commit; return whether that must not wait for the next tick.

        Args:
            held: the batch.
            is_pressing: its source gives nothing more before that.
        """
        if held.batch.arrived_us is not None:  # but not before what was promised already
            at_us = min(held.at_us, max(held.batch.arrived_us, self._asked_us))
            held = held._replace(at_us=at_us)
        self.read_us = held.at_us
        return self._held.add(held, is_pressing=is_pressing)

    def end(self) -> None:
        """Note that the sources are stopped: what is held is due now."""
        self.sources.stopped = True
        self._held.end()

    @property
    def finished(self) -> bool:
        """Whether nothing more will be read, and nothing of it waits for a commit."""
        return self.sources.finished and not self._held

    @property
    def held_since_us(self) -> int | None:
        """When the first reading came that waits for a commit; None: nothing waits."""
        return self._held.since_us

    def is_due(self, now_us: int) -> bool:
        return self._held.is_due(now_us)

    def read(self, store: StoreReader, now_us: int) -> None:
        """Take in what is held, and what had to wait for the clock."""
        self.columns, self.corrected = [], []
        if self._waiting.is_ready:
            page = self._guard.run("waiting, read", self._waiting.take_page, store, now_us)
            for batch in page or ():
                self._take_in(batch, now_us, store)
        held = self._held.take(now_us)
        joined, clock = None, self._clock
        if not (clock.holds_back or self.peer_reports.waiting or self.highs.doubts):
            found = together(held, clock.ahead_us)
            joined = self._guard.run("a batch", list[HeldBatch], found)
        for batch, at_us, _ in joined or held:
            self._take_in(batch, at_us, store)
        self._taken_in += held
        self.join(store)

    def _take_in(self, batch: Batch, at_us: int, store: StoreReader) -> None:
        """Take in a batch, unless it has to wait for the clock."""
        clock = self._clock
        is_clear = clock.trusted and not clock.waiting and at_us >= EARLIEST_US
        try:
            if is_clear or batch.dated_us is not None or not self._waiting.put(batch, at_us):
                self.accept(batch, at_us, store)
        except BaseException as error:  # noqa: BLE001 - a source may give anything
            self._guard.failed("a batch", error)
            self._guard.run("a batch", self.refuse, batch)

    def accept(self, batch: Batch, now_us: int, store: StoreReader) -> None:
        """Accept what is acceptable of a batch; it waits for the next `join`.

        Raises:
            ValueError: the columns are not equally long; nothing was accepted.
        """
        count, doubt_us = batch.checked(), None
        if self.peer_reports.waiting or self.highs.doubts:
            batch = self.peer_reports.without_placed(batch, now_us)
            doubt_us = self.peer_reports.doubt_us(batch, now_us)
            count = len(batch)
        by_column = count >= self.column_least and doubt_us is None
        if by_column and self._pending.samples:
            self.join(store)  # columns are checked against entries as they are
        pending = self._begin(batch, now_us, doubt_us)
        before, accepted = pending.accepted, None
        if by_column:
            # It changes nothing before it has looked at everything: a source may give anything.
            accepted = self._guard.run("a batch", self._by_column.accept, batch, pending, store)
        if accepted is None:
            accepted = self._one_by_one.accept(batch, pending, store)
        high_us, stamped = accepted
        self.highs.note(batch, high_us, pending.accepted - before)
        if (high_us is not None and pending.clock_us - high_us >= LEAST_US) or (
            self._odd.behind.distances
        ):
            self._odd.look_at_times(batch, high_us, pending.clock_us)
        if doubt_us is not None:  # an earlier life had come so far, and promised it
            high_us = doubt_us if high_us is None else max(high_us, doubt_us)
        self.sources.advance(batch, high_us, stamped)
        is_again = pending.has_come_twice and self.sources.is_alone_with_times
        if is_again or self._odd.looks:
            self._to_look_at.append((batch if batch.clocks_us else batch.last(LOOKED_AT), is_again))

    def _begin(self, batch: Batch, now_us: int, doubt_us: int | None) -> PendingBatch:
        """Return the pending batch, ready for one more."""
        pending, clock_us = self._pending, self._clock.time_us(now_us)
        pending.doubt_us, pending.clock_us, pending.has_come_twice = doubt_us, clock_us, False
        if pending.since_us == NO_TIME:
            pending.since_us = now_us
        if clock_us + STAMP_AHEAD_US < self.progress.stamp_us:
            self._heal(clock_us)
        if batch.refused:
            for reason, count in batch.refused.items():
                pending.refuse(reason, count)
        return pending

    def refuse(self, batch: Batch) -> None:
        """Refuse all readings of a batch; its source goes on behind it."""
        self._pending.refuse("broken: the batch cannot be read", len(batch.values))
        self.sources.advance(batch, None, stamped=False)

    def low_us(self, now_us: int) -> int | None:
        """Return the time before which no source has more; None while that is unknown."""
        self._asked_us = now_us
        if self._clock.holds_back:
            return None
        if self.held_since_us is not None:
            now_us = min(now_us, self.held_since_us)  # they get their time when they are taken in
        clock_us = self._clock.time_us(now_us)
        return self.sources.low_us(clock_us, self._end_us, self._max_skew_us, now_us)

    def _end_us(self) -> int | None:
        """Return what a finished source promises: the end of the last window that has a reading.

        None before the first reading: an empty recording has no time. It is never less
        than was promised: where operators make windows shorter, others waited for a later end.
        """
        high_us = self.progress.high_us
        if high_us is None:
            return None
        end_us = max([window.end_of_last(high_us) for window in self._windows], default=high_us)
        if not self._panes.planned.regimes:
            return end_us
        return max(end_us, self._panes.planned.end_us(high_us), self.progress.promised_us)

    def join(self, store: StoreReader) -> None:
        """Bring the pending batch into panes, variables and counters."""
        pending, changes = self._pending, self._changes
        if not (pending.accepted or pending.counted):
            return
        self._pending = PendingBatch()
        windows = self._panes.planned.windows
        for pane in sorted(pending.samples, key=itemgetter(1, 2, 0)):  # as columns: by stream
            values, times_us = pending.samples[pane]
            if values:
                partial = windows[pane.stream].fold.lift_column(values, times_us)
                self._panes.change(pane, partial, pending.since_us, store)
        self._variables.record(pending.updates, self.progress.stamp_us)
        changes.identities.update(self.identities.take_changed())
        changes.readings += pending.readings
        # A reading comes before what takes it back: afterwards it is known, and a repeat.
        self.columns += sorted(pending.columns.values(), key=itemgetter(3))
        self.corrected += pending.corrected
        if pending.accepted:
            pending.counted["accepted"] = pending.accepted
        for name, count in (+pending.counted).items():
            self._counters.add(name, count)
        if pending.accepted and self.progress.high_us is not None:
            self._panes.advance(self.progress.high_us)
            changes.facts.add(self.progress.facts())

    def tick(self, now_us: int) -> None:
        while self._to_look_at:
            batch, is_again = self._to_look_at.popleft()
            self._guard.run("odd readings", self._odd.look, batch, is_again=is_again)
        self.sources.note_empty(now_us, self._notices)
        if self.peer_reports.waiting:
            self.peer_reports.catch_up(now_us)
        if self._clock.trusted:
            self._heal(self._clock.time_us(now_us))

    def _heal(self, clock_us: int) -> None:
        """Come back where the clock was ahead, and has gone back."""
        if self.progress.heal(clock_us, self._max_skew_us):
            self._panes.set_back(clock_us + self._max_skew_us)
            self._changes.facts.add(self.progress.facts())

    def recall(self, store: StoreKeeper, now_us: int) -> None:
        """Let the store delete what is older than the retention, by a clock that is trusted."""
        if self._prune.is_due(now_us) and self._clock.trusted:
            progress = self.progress
            progress.pruned_us = store.prune(progress.floor_us, progress.pruned_us)

    def take_changes(self) -> Changes | None:
        """Return identities, readings, progress and sources; panes give their own."""
        sources, highs = self.sources.take_changed(), self.highs.take_facts()
        if sources:
            self._changes.sources = sources
        if highs:
            self._changes.facts.add(highs)
        if not (sources or self._changes):
            return None
        taken, self._changes = self._changes, Changes()
        return taken

    def take_notes(self) -> Changes | None:
        """Return the greatest low watermark that was published."""
        if self.progress.promised_us == self._noted_us:
            return None
        self._noted_us = self.progress.promised_us
        return Changes(facts=Facts(promised_us=self._noted_us))

    def committed(self) -> None:
        """Let identities go, and acknowledge the readings to their sources."""
        self.identities.forget()
        taken_in, self._taken_in = self._taken_in, []
        for held in taken_in:
            if held.acknowledge is not None:
                held.acknowledge()
