"""Pane entries on their way to the sinks: dirty for each until it has acknowledged their seq.

They leave in frames that reach all sinks (`device_agent.agent.panes.sender`). An acknowledgement
names entries: those that are taken are clean for the sink, and those that are not stay dirty, are
sent again ever less often, and hold nothing else. It counts whenever it comes, and whether the
entry is in memory or in the store alone.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, Protocol

from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes
from device_agent.agent.panes.cache import PaneCache
from device_agent.agent.panes.panes import NEVER_US, Panes
from device_agent.agent.panes.sender import PaneSender
from device_agent.agent.panes.sink import Sink
from device_agent.agent.panes.sinks import Sinks
from device_agent.agent.panes.undelivered import undelivered_by_sink
from device_agent.agent.parts import Handler, Part, StoreKeeper
from device_agent.agent.stored_rows import StoreWide
from lasp_edge.protocol.acks import AckFrame, Seqs
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import SourceHigh
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.sinks import SinkLow, store_tag
from lasp_edge.units import SECOND_US


class ReadSources(Protocol):
    """The sources of a device."""

    @property
    def finished(self) -> bool:
        """Whether nothing more will be read."""

    @property
    def silent_source(self) -> str:
        """The source that is silent, and that held the last promise; "" for none."""

    @property
    def ended(self) -> list[str]:
        """The sources that gave all they have."""

    def is_beginning(self, now_us: int) -> bool:
        """Return whether a source that never gave anything has only now begun to be read."""


class Decided(Protocol):
    """What operators have decided, as far as this device knows."""

    control: int
    """The mark of the log of parameters."""

    @property
    def retired(self) -> Container[str]:
        """The devices that count no more."""


class PaneDelivery(Part):
    """Sends dirty pane entries until they have landed in every sink.

    Args:
        agent: what all parts share.
        memory: the entries in memory.
        sinks: to which they are delivered.
        cache: chooses which entries are in memory.
        sources: know whether all of them are finished: then entries need not be due.
        low_us: returns the time before which no source has more, and no stream has another row;
            None while that is unknown.
        highs: returns how far the sources have come.
        operators: know what was decided on devices, and the mark of the log of parameters.

    Attributes:
        memory, sinks, cache: see above.
    """

    name = "panes"

    def __init__(
        self,
        agent: Agent,
        memory: Panes,
        sinks: Sinks,
        cache: PaneCache,
        sources: ReadSources,
        low_us: Callable[[int], int | None],
        highs: Callable[[], tuple[SourceHigh, ...]],
        operators: Decided,
    ) -> None:
        self._agent = agent
        self.memory, self.sinks, self.cache = memory, sinks, cache
        self._sources, self._low_us, self._operators = sources, low_us, operators
        self._sender = PaneSender(
            agent, memory, sinks, low_us, highs, lambda: agent.replica.device in operators.retired
        )
        self._streams = agent.facts.streams
        self._asks_store = False

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {AckFrame: self.acknowledged, CommandFrame: self._admitted}

    def acknowledged(self, frame: AckFrame, now_us: int) -> None:
        """Note the entries that a sink has taken, and those that it has refused."""
        if frame.about != self._agent.replica.device:
            return
        clock = self._agent.clock
        own_s = clock.time_us(now_us) // SECOND_US if clock.tells else None
        sink = self.sinks.hear(frame, own_s)
        dirtied = self.sinks.take_dirtied()
        if dirtied:
            self._change_bits(dirtied)
        if sink is None:
            return
        if sink.is_new_speaker(frame.sender.nonce) or sink.is_much_later:
            self._send_all_again(sink.bit)
            self._sender.hasten(now_us)  # whom it was sent to is gone, and its answer, too
        was_away, was_slow = sink.flights.is_away, _is_slow(self.sinks)
        sink.flights.answer([*frame.taken, *(seqs for _, seqs in frame.not_taken)], now_us)
        if (was_away and not sink.flights.is_away) or (was_slow and not _is_slow(self.sinks)):
            self._sender.hasten(now_us)
        for seqs in frame.taken:
            self._taken(sink, seqs)
        for reason, seqs in frame.not_taken:
            self._not_taken(sink, reason, seqs, now_us)
        self._hear_control(sink, frame.control)

    def _hear_control(self, sink: Sink, control: int) -> None:
        """Send refused entries again, once a sink has the operators' entries."""
        if sink.control != control == self._operators.control:
            self._send_all_again(sink.bit)
        sink.control = control

    def _admitted(self, frame: CommandFrame, _now_us: int) -> None:
        """Let refused entries be due where a command admits this device again."""
        me = self._agent.replica.device
        if frame.subject == (me,) and me not in frame.commands().membership.retired:
            self._send_all_again(self.sinks.bits)

    def _send_all_again(self, bits: int) -> None:
        """Let everything be due that is not in flight: who answers now may take it."""
        dirty, is_in_flight = self.memory.dirty, self.sinks.is_in_flight
        in_flight = {pane for pane in dirty if is_in_flight(self.memory.key(pane))}
        self._sender.send_again(dirty - in_flight, bits, in_flight)
        self.cache.sweep_again()

    def _taken(self, sink: Sink, seqs: Seqs) -> None:
        here = self.memory.named(seqs)
        self._sender.answered(here, sink.bit)
        landed = self.memory.landed(here, sink.bit)
        self.memory.unlanded.landed(sink.bit, seqs)
        self.cache.answered(StoreWide(sink.bit, 0, seqs), landed)

    def _not_taken(self, sink: Sink, reason: int, seqs: Seqs, now_us: int) -> None:
        here = self.memory.named(seqs)
        self._sender.answered(here, sink.bit)
        for pane in here:
            if self.memory.refused(pane, sink.bit, reason):
                self._sender.refused(pane, now_us)
        self.cache.answered(StoreWide(sink.bit, reason, seqs), len(here))

    def _change_bits(self, dirtied: int) -> None:
        """Deliver to the sinks that are known now, and everything to some of them."""
        self.memory.change_bits(self.sinks.bits, dirtied)
        self.cache.ask_again()

    def tick(self, now_us: int) -> None:
        if self.sinks.tick(now_us):
            self._change_bits(0)
        self._asks_store = self.cache.wants_answer(now_us)

    def connected(self, now_us: int) -> None:
        """Send what was in flight again: the broker may have lost it; and soon what was before."""
        for sink in self.sinks:
            lost = sink.flights.abandon_all()
            again = [pane for pane in self.memory.dirty if self.memory.key(pane) in lost]
            self._sender.send_again(again, sink.bit)
        self._sender.hasten(now_us)

    def unsent(self, publication: Publication) -> None:
        if publication.pane_frame:
            self._sender.take_back(publication.pane_frame)

    def succeed(self) -> None:
        self.memory.seq = 0  # all entries of the replica before it are frozen
        # A lander that knows a later life takes, and answers, nothing that left as the earlier one.
        for sink in self.sinks:
            sink.flights.abandon_all()
        self._send_all_again(self.sinks.bits)

    def take_changes(self) -> Changes | None:
        """Return the entries that changed, and the sinks if they did."""
        # The store is asked only where it has no more of an entry than memory knows.
        panes = self.memory.take_changes(with_answers=self._asks_store)
        changes, self.sinks.changes = self.sinks.changes, None
        if self.memory.planned.is_new:
            self.memory.planned.is_new = False
            streams = tuple(sorted(self.memory.planned.spans_us))
            if streams != self._streams:
                changes = changes or Changes()
                changes.facts.streams = self._streams = streams
        if changes is None or panes is None:
            changes = changes or panes
        else:
            changes.add(panes)
        if changes is not None and self.sinks.has_commits:
            changes.facts.add(self.sinks.take_commits())
        return changes

    def take_notes(self) -> Changes | None:
        notes, answered = self.sinks.take_notes(), self.memory.answered
        if answered:
            notes, self.memory.answered = notes or Changes(), {}
            notes.add(Changes(panes=answered))
            if self.sinks.has_commits:
                notes.facts.add(self.sinks.take_commits())
        return notes

    def committed(self) -> None:
        self.sinks.unstored = Changes()
        if len(self.memory.entries) > self.cache.most:
            self.cache.evict()

    def recall(self, store: StoreKeeper, now_us: int) -> None:
        """Take back dirty entries that are to be sent."""
        if self._asks_store:
            self._asks_store = False
            self.cache.add_answer(store.undelivered())
        self.cache.recall(store, now_us)

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Yield frames of due entries while few are in flight for some sink that waits for them."""
        for frame in self._sender.frames(now_us, everything=self._sources.finished):
            yield Publication.of(frame, self._agent.topics)

    def lows(self, now_us: int) -> tuple[SinkLow, ...]:
        """Return what may be promised to each sink.

        A low watermark is at most the time of the oldest reading that may not have landed there
        (`device_agent.agent.panes.unlanded`), so it goes back where a late reading came or another
        store must be filled. Sources that begin may give any time: a device that promises nothing
        would not be waited for, so until they were read it promises the time before all readings.
        """
        lows: list[SinkLow] = []
        source_us, clock_us = self._low_us(now_us), self._agent.clock.time_us(now_us)
        if source_us is None and self._sources.is_beginning(now_us):
            source_us = EARLIEST_PANE_US
        for sink in self.sinks:
            oldest_us, low_us = self.cache.oldest_dirty_us(sink.bit, clock_us), source_us
            if source_us is not None and oldest_us is not None:
                low_us = None if oldest_us == NEVER_US else min(source_us, oldest_us)
            lows.append(SinkLow(sink.name, store_tag(sink.store), low_us, sink.landed))
        return tuple(lows)

    def report(self) -> dict[str, Any]:
        known = undelivered_by_sink(
            self.sinks.rows(), self.cache.waiting(), self.memory.planned.spans_us
        )
        contested = [sink.name for sink in self.sinks if sink.contested_us]
        sent = {"dirty": self.cache.count, "sinks": known, "contested_sinks": contested}
        sources = {"silent_source": self._sources.silent_source, "ended": self._sources.ended}
        return sent | sources


def _is_slow(sinks: Sinks) -> bool:
    """Return whether a sink takes long to answer."""
    return any(sink.flights.latency_us for sink in sinks)
