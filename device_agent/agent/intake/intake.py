"""The way in: from a batch of readings to what a commit stores.

1. `wanted` names the blocks of identities and the pane entries that the store must give back first.
2. `handle_batch` accepts readings, by whole columns (`by_column`) where no function of the user's
   must see them, else one after the other (`one_by_one`, the definition of both).
3. What they bring to panes and variables waits in the `PendingBatch`.
4. `join`, once a commit, brings it there; `take_changes` returns all the rest of it.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple, cast

from device_agent.agent.agent import Agent
from device_agent.agent.changes import BLOCK_US, BlockId, Changes, PaneId, Restored
from device_agent.agent.facts import Facts
from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.by_column import ByColumn
from device_agent.agent.intake.highs import Highs
from device_agent.agent.intake.identities import KEPT_STREAMS, Identities, block_numbers
from device_agent.agent.intake.one_by_one import OneByOne
from device_agent.agent.intake.pending import ControlledReading, PendingBatch, StreamItem
from device_agent.agent.intake.progress import (
    NO_TIME,
    STAMP_AHEAD_US,
    IntakeProgress,
    SourceProgress,
)
from device_agent.agent.intake.recall import OldReading, PaneRecall
from device_agent.agent.intake.routes import Route, first_us
from device_agent.agent.intake.tellings import Tellings
from device_agent.agent.panes.panes import Panes
from device_agent.agent.parts import Part
from device_agent.agent.variables.variables import Variables

COLUMN_LEAST = 8
"""Readings in a batch from which on columns are faster than one after the other: measured."""


class Wanted(NamedTuple):
    """What a batch needs from the store: blocks of identities, and own pane entries."""

    blocks: list[BlockId]
    panes: list[PaneId]


NOTHING = Wanted([], [])


class Intake(Part):
    """Accepts readings.

    Args:
        agent: what all parts share.
        restored: what the store holds.
        panes, variables: what readings change.

    Attributes:
        identities: which readings are known.
        sources: how far each source has been read.
        progress: how far the readings have come.
        highs: how far each source with own times has come, and which readings are doubtful.
        tellings: takes what others know of that.
        read_us: when the last reading came, taken in or held.
        held_since_us: when the first reading came that waits for a commit; None: nothing waits.
        column_least: batches of fewer readings are taken one by one.
        controlled: readings that windows with parameters are made from, joined and not taken yet.
        also_end_us: gives the end of the last window with parameters that a time lies in.
    """

    name = "intake"

    def __init__(  # noqa: PLR0915 - what it is made of
        self, agent: Agent, restored: Restored, panes: Panes, variables: Variables
    ) -> None:
        plan, settings = agent.plan, agent.settings
        self._clock = agent.clock
        self._panes, self._variables, self._counters = panes, variables, agent.counters
        self._max_skew_us = settings.max_skew_us
        self.sources = SourceProgress(restored.sources, settings.lateness_us)
        first = first_us(window.span_us for window in plan.windows.values())
        self.progress = progress = IntakeProgress(settings.retain_us, first, restored.facts)
        self._noted_us = progress.promised_us
        self.highs = Highs(restored.facts, restored.replicas)
        found_by = (self.highs, progress, agent.clock, agent.counters)
        self.tellings = Tellings(*found_by, settings.max_skew_us)
        self.held_since_us: int | None = None
        self.read_us = 0
        newest = restored.last_blocks[:KEPT_STREAMS]
        complete = len(restored.last_blocks) <= KEPT_STREAMS
        self.identities = Identities(reversed(newest), complete=complete)
        self._routes = {name: Route(plan, event) for name, event in plan.events.items()}
        self._windows = [each.window for route in self._routes.values() for each in route.targets]
        self._text_of = self.identities.text_of
        found = (agent, self._routes, progress, self.identities, panes)
        self._recall = PaneRecall(agent, self._routes, panes)
        self._by_column = ByColumn(*found)
        self._one_by_one = OneByOne(*found, variables, self._recall)
        self.column_least = COLUMN_LEAST
        self._pending, self._changes = PendingBatch(), Changes()
        self._items: list[StreamItem] = []
        self.controlled: list[ControlledReading] = []
        self.also_end_us: Callable[[int], int] | None = None

    def wanted(self, batch: Batch, now_us: int) -> Wanted:
        """Return what must be in memory before the batch is handled, and is in the store alone."""
        if self._clock.holds_back and batch.came_us is None:
            return NOTHING
        self._join_before(batch)
        evicted = self._panes.evicted_us // BLOCK_US
        if len(batch.times_us) == 1 and self._is_near(batch, evicted):
            return NOTHING
        blocks: list[BlockId] = []
        old: set[int] = set()
        for event, tags, number in self._places(batch, now_us):
            if number > evicted and self.identities.is_at(event, tags, number):
                continue  # most often, readings lie where the last one did
            block = BlockId(event, tags, number)
            if self.identities.wanted(block):
                blocks.append(block)
            if number <= evicted:
                old.add(number)
        panes = self._recall.wanted(self._readings(batch, now_us, old)) if old else []
        return Wanted(blocks, panes) if blocks or panes else NOTHING

    def _join_before(self, batch: Batch) -> None:
        """Join what is pending before whole columns, which are checked against panes as they are.

        This comes before it is asked what the store must give back. Joining tells how far each
        stream's identities go, and so which blocks the store may hold.
        """
        if len(batch.names) >= self.column_least and self._pending.builders:
            self.join()

    def _is_near(self, batch: Batch, evicted: int) -> bool:
        """Return whether a single reading lies in the block that the last one of its stream did."""
        time_us = batch.times_us[0]
        if time_us is None:
            return False
        number, text = time_us // BLOCK_US, self._text_of(batch.tags[0])
        return number > evicted and self.identities.is_at(batch.names[0], text, number)

    def _places(self, batch: Batch, now_us: int) -> Iterable[tuple[str, str, int]]:
        """Return event, tags and block of the readings of a batch, in the order they come in."""
        clock_us = self._clock.time_us(now_us)
        first_us, last_us = self.progress.floor_us, clock_us + self._max_skew_us
        if batch.is_uniform and batch.has_own_times:
            name, text = batch.names[0], self._text_of(batch.tags[0])
            first, last = first_us // BLOCK_US, last_us // BLOCK_US
            known = name in self._routes
            numbers = block_numbers(cast("list[int]", batch.times_us))
            return [(name, text, n) for n in numbers if known and first <= n <= last]
        stamp_us = self._first_stamp_us(batch, now_us)
        where: dict[tuple[str, str, int], None] = {}
        for name, time_us, tags in zip(batch.names, batch.times_us, batch.tags, strict=True):
            if time_us is None:
                where[name, "", stamp_us // BLOCK_US] = None
                stamp_us += 1
            elif first_us <= time_us <= last_us:
                where[name, self._text_of(tags), time_us // BLOCK_US] = None
        return [place for place in where if place[0] in self._routes]

    def _first_stamp_us(self, batch: Batch, now_us: int) -> int:
        """Return the time of the first reading that has none of its own."""
        if batch.came_us is not None:
            return batch.came_us
        return self.progress.next_stamp_us(self._clock.time_us(now_us))

    def _readings(self, batch: Batch, now_us: int, numbers: set[int]) -> Iterator[OldReading]:
        """Yield the readings of known events in these two minutes."""
        stamp_us = self._first_stamp_us(batch, now_us)
        columns = (batch.names, batch.times_us, batch.values, batch.tags)
        for name, own_us, value, tags in zip(*columns, strict=True):
            time_us = stamp_us if own_us is None else own_us
            stamp_us += own_us is None
            if time_us // BLOCK_US in numbers and name in self._routes:
                yield OldReading(name, time_us, value, tags)

    def handle_batch(self, batch: Batch, now_us: int) -> None:
        """Accept what is acceptable of a batch; it waits for the next `join`.

        Raises:
            ValueError: the columns are not equally long; nothing was accepted.
        """
        if not len(batch) == len(batch.times_us) == len(batch.values) == len(batch.tags):
            raise ValueError("names, times, values and tags of one length are needed")
        batch = self.tellings.without_placed(batch, now_us)
        doubt_us = self._doubt_us(batch, now_us)
        by_column = len(batch.names) >= self.column_least and doubt_us is None
        self._join_before(batch)
        pending = self._pending
        pending.doubt_us = doubt_us
        pending.clock_us = self._clock.time_us(now_us)
        if pending.since_us == NO_TIME:
            pending.since_us = now_us
        if pending.clock_us + STAMP_AHEAD_US < self.progress.stamp_us:
            self._heal(pending.clock_us)
        for reason, count in batch.refused.items():
            pending.refuse(reason, count)
        before = pending.accepted
        accepted = self._by_column.accept(batch, pending) if by_column else None
        if accepted is None:
            accepted = self._one_by_one.accept(batch, pending)
        high_us, stamped = accepted
        self.highs.note(batch, high_us, pending.accepted - before)
        if doubt_us is not None:  # an earlier life had come so far, and promised it
            high_us = doubt_us if high_us is None else max(high_us, doubt_us)
        self.sources.advance(batch, high_us, stamped)

    def _doubt_us(self, batch: Batch, now_us: int) -> int | None:
        """Return up to which own time this batch's readings are doubtful; None if they are not."""
        self.tellings.catch_up(now_us)
        doubt_us = self.highs.doubt_us(batch.source)
        if doubt_us is None:
            return None
        doubtful = any(type(at) is int and at <= doubt_us for at in batch.times_us)
        return doubt_us if doubtful else None

    def refuse(self, batch: Batch) -> None:
        """Refuse all readings of a batch; its source goes on behind it."""
        self._pending.refuse("broken: the batch cannot be read", len(batch.values))
        self.sources.advance(batch, None, stamped=False)

    def low_us(self, now_us: int) -> int | None:
        """Return the time before which no source has more; None while that is unknown."""
        if self._clock.holds_back:
            return None
        if self.held_since_us is not None:
            now_us = min(now_us, self.held_since_us)  # they get their time when they are taken in
        clock_us = self._clock.time_us(now_us)
        return self.sources.low_us(clock_us, self._end_us, self._max_skew_us)

    def _end_us(self) -> int | None:
        """Return what a finished source promises: the end of the last window that has a reading.

        None before the first reading: an empty recording says nothing of its time. It is never less
        than was promised: where operators make windows shorter, others waited for a later end.
        """
        high_us = self.progress.high_us
        if high_us is None:
            return None
        end_us = max([window.end_of_last(high_us) for window in self._windows], default=high_us)
        if self.also_end_us is None:
            return end_us
        return max(end_us, self.also_end_us(high_us), self.progress.promised_us)

    def join(self) -> None:
        """Bring the pending batch into panes, variables and counters."""
        pending, changes = self._pending, self._changes
        if not pending:
            return
        self._pending = PendingBatch()
        for where, builder in sorted(pending.builders.items(), key=itemgetter(0)):
            if not builder.values:
                continue
            pane = self._panes.own(*where)
            partial = builder.partial() if builder.prechecked else builder.joined
            self._panes.fold_in(pane, partial, pending.since_us, joined=not builder.prechecked)
        self._variables.record(pending.updates, self.progress.stamp_us)
        changes.identities.update(self.identities.take_changed())
        changes.readings += pending.readings
        self._items += pending.items
        self.controlled += pending.controlled
        if pending.accepted:
            pending.counted["accepted"] = pending.accepted
        for name, count in (+pending.counted).items():
            self._counters.add(name, count)
        if pending.accepted and self.progress.high_us is not None:
            self._panes.advance(self.progress.high_us)
            changes.facts.add(self.progress.facts())

    def take_items(self) -> list[StreamItem]:
        """Return the readings that streams are made from, joined since the last time."""
        taken, self._items = self._items, []
        return taken

    def tick(self, now_us: int) -> None:
        """Join, so that the parts after this one see every reading."""
        self.join()
        self.tellings.catch_up(now_us)
        if self._clock.trusted:
            self._heal(self._clock.time_us(now_us))

    def _heal(self, clock_us: int) -> None:
        """Come back where the clock was ahead, and has gone back."""
        if self.progress.heal(clock_us, self._max_skew_us):
            self._panes.set_back(clock_us + self._max_skew_us)
            self._changes.facts.add(self.progress.facts())

    def prunable_us(self) -> int | None:
        """Return below which time the store may forget; None while no clock is trusted."""
        return self.progress.floor_us if self._clock.trusted else None

    def take_changes(self) -> Changes | None:
        """Join, and return identities, readings, progress and sources; panes give their own."""
        self.join()
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
        self.identities.forget()
