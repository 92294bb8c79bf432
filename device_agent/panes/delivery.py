"""Pane entries on their way to the sinks: dirty for each until it has acknowledged their seq.

Due entries leave in frames of bounded size, a few frames at a time for each sink; a frame reaches
all sinks. An acknowledgement names entries: those that are taken are clean for the sink, and those
that are not stay dirty, are sent again ever less often, and hold nothing else. It counts whenever
it comes, and whether the entry is in memory or in the store alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from random import Random
from typing import Any

from device_agent.agent import Agent
from device_agent.changes import Changes, EntryKey, PaneId, StoreWide, waits_for
from device_agent.panes.cache import PaneCache
from device_agent.panes.flights import FIRST_TIMEOUT_US, LAST_TIMEOUT_US
from device_agent.panes.panes import NEVER_US, Panes
from device_agent.panes.sinks import Sink, Sinks
from device_agent.panes.standing import standing
from device_agent.parts import Handler, Part, Publication
from lasp_edge.protocol.acks import AckFrame, Seqs
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.sinks import SinkLow, store_tag
from lasp_edge.protocol.sizes import BLOCK_OVERHEAD_BYTES, FRAME_OVERHEAD_BYTES, entry_bytes

FRAME_BYTES = 16_384
"""Bytes of a frame, at most, unless one entry is larger: some hundred entries, and a second on the
slowest link that is of use (128 kbit/s)."""
FIRST_REFUSAL_US = 60_000_000
"""Microseconds until an entry that was not taken is sent again; doubled each time."""
LAST_REFUSAL_US = 3_600_000_000
"""Microseconds, after repeated doubling: an hour. A new process of the sink is tried at once."""


class PaneDelivery(Part):
    """Sends dirty pane entries until they have landed in every sink.

    Args:
        agent: what all parts share.
        panes: the entries in memory.
        is_finished: tells whether all sources are finished: then entries need not be due.

    Attributes:
        memory: the entries in memory.
        cache: chooses which entries are in memory.
        sinks: to which they are delivered.
    """

    name = "panes"

    def __init__(self, agent: Agent, panes: Panes, is_finished: Callable[[], bool]) -> None:
        self._agent = agent
        self.memory = panes
        self.sinks = Sinks(agent.facts.sinks, agent.settings.retain_us, agent.counters)
        panes.bits = self.sinks.bits
        self.cache = PaneCache(panes, self._is_in_flight)
        self._is_finished = is_finished
        self._jitter = Random(agent.replica.nonce)
        self._number = 0
        self._sent: list[PaneId] = []
        streams = tuple(sorted(panes.streams))
        self._new_streams = None if streams == agent.facts.streams else streams

    def _is_in_flight(self, entry: EntryKey) -> bool:
        return any(sink.flights.holds(entry) for sink in self.sinks)

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {AckFrame: self.acknowledged}

    def acknowledged(self, frame: AckFrame, now_us: int) -> None:
        """Take note of what a sink has taken, and of what it has not."""
        if frame.about != self._agent.replica.device:
            return
        sink = self.sinks.hear(frame)
        dirtied = self.sinks.take_dirtied()
        if dirtied:
            self._change_bits(dirtied)
        if sink is None:
            return
        if sink.is_new_speaker(frame.sender.nonce):
            self._send_all_again()
        sink.flights.answer([*frame.taken, *(seqs for _, seqs in frame.not_taken)])
        for seqs in frame.taken:
            self._taken(sink, seqs)
        for reason, seqs in frame.not_taken:
            self._not_taken(sink, reason, seqs, now_us)

    def _send_all_again(self) -> None:
        """Let everything be due that is not in flight: who answers now may take it."""
        self.memory.send_again(
            [pane for pane in self.memory.dirty if not self._is_in_flight(self.memory.key(pane))]
        )
        self.cache.sweep_again()

    def _taken(self, sink: Sink, seqs: Seqs) -> None:
        here = self.memory.named(seqs)
        landed = self.memory.landed(here, sink.bit)
        self._tell_store(StoreWide(sink.bit, 0, seqs), landed)
        self.cache.landed(landed)

    def _not_taken(self, sink: Sink, reason: int, seqs: Seqs, now_us: int) -> None:
        here = self.memory.named(seqs)
        for pane in here:
            wait_us = FIRST_REFUSAL_US << min(self.memory.entries[pane].tries, 10)
            due_us = self._later(now_us, wait_us, LAST_REFUSAL_US)
            self.memory.refused(pane, sink.bit, reason, due_us)
        self._tell_store(StoreWide(sink.bit, reason, seqs), len(here))
        self.cache.landed(0)

    def _tell_store(self, answer: StoreWide, found: int) -> None:
        """Note what was said of entries that are in the store alone, if there may be some."""
        if not self.cache.is_complete and found < answer.seqs.total():
            self.sinks.answer(answer)

    def _later(self, now_us: int, wait_us: int, longest_us: int) -> int:
        return now_us + round(min(wait_us, longest_us) * self._jitter.uniform(0.75, 1.25))

    def _change_bits(self, dirtied: int) -> None:
        """Deliver to the sinks that are known now, and everything to some of them."""
        self.memory.change_bits(self.sinks.bits, dirtied)
        self.cache.ask_again()

    def tick(self, now_us: int) -> None:
        if self.sinks.tick(now_us):
            self._change_bits(0)

    def connected(self, _now_us: int) -> None:
        """Send what was in flight again: the broker may have lost it."""
        lost = set(chain.from_iterable([sink.flights.abandon_all() for sink in self.sinks]))
        self.memory.send_again([p for p in self.memory.dirty if self.memory.key(p) in lost])

    def unsent(self, publication: Publication) -> None:
        if publication.pane_frame == self._number and self._sent:
            for sink in self.sinks:
                sink.flights.cancel(self._number)
            self.memory.not_sent(self._sent)
            self._sent = []

    def succeed(self) -> None:
        self.memory.seq = 0  # all entries of the replica before it are frozen

    def take_changes(self) -> Changes | None:
        """Return the entries that changed, and the sinks if they did."""
        changes, panes = self.sinks.take_changes(), self.memory.take_changes()
        if self._new_streams is not None:
            changes = changes or Changes()
            changes.facts.streams, self._new_streams = self._new_streams, None
        if changes is None or panes is None:
            return changes or panes
        changes.add(panes)
        return changes

    def take_notes(self) -> Changes | None:
        return self.sinks.take_notes()

    def committed(self) -> None:
        self.cache.evict()

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Yield frames of due entries while few are in flight for some sink that waits for them."""
        for frame in self._frames(now_us):
            yield Publication.of(frame, self._agent.topics)

    def _frames(self, now_us: int) -> Iterator[PaneFrame]:
        for sink in self.sinks:
            sink.flights.abandon_late(now_us)
        entries = self.memory.entries
        if not (self.memory.dirty and self._hungry()):
            return
        due = self.memory.due(now_us, everything=self._is_finished())
        while due:
            hungry = self._hungry()
            due = [pane for pane in due if entries[pane].dirty & hungry]
            if due:
                together, due = self._split(due)
                yield self._frame(together, now_us)

    def _hungry(self) -> int:
        """Return the bits of the sinks for which a frame may leave."""
        return sum(sink.bit for sink in self.sinks if not sink.flights.full)

    def _split(self, due: list[PaneId]) -> tuple[list[PaneId], list[PaneId]]:
        """Split off as many entries as surely fit into one frame; at least one."""
        size = FRAME_OVERHEAD_BYTES
        groups: set[tuple[int, int, int]] = set()
        for index, pane in enumerate(due):
            group = (pane.stream, pane.incarnation, pane.nonce)
            partial = self.memory.entries[pane].partial
            binary = sum([len(part) for part in partial if isinstance(part, bytes)])
            size += entry_bytes(pane.key, len(partial), binary)
            size += 0 if group in groups else BLOCK_OVERHEAD_BYTES
            groups.add(group)
            if index and size > FRAME_BYTES:
                return due[:index], due[index:]
        return due, []

    def _frame(self, panes: list[PaneId], now_us: int) -> PaneFrame:
        """Return a frame of these entries, which is then in flight."""
        entries = self.memory.entries
        groups: dict[tuple[int, int, int, int], list[PaneId]] = {}
        for pane in sorted(panes):
            span_us = entries[pane].end_us - pane.pane_us
            group = (pane.stream, span_us, pane.incarnation, pane.nonce)
            groups.setdefault(group, []).append(pane)
        self._number += 1
        self._sent = panes
        frame = PaneFrame(
            self._agent.replica,
            self._number,
            tuple([self._block(group, members) for group, members in groups.items()]),
        )
        self._launch(panes, now_us)
        return frame

    def _launch(self, panes: Sequence[PaneId], now_us: int) -> None:
        dirty: dict[EntryKey, int] = {}
        for pane in panes:
            entry = self.memory.entries[pane]
            if waits_for(entry.dirty, entry.refused):
                first_us, last_us = FIRST_TIMEOUT_US, LAST_TIMEOUT_US
            else:
                first_us, last_us = FIRST_REFUSAL_US, LAST_REFUSAL_US
            due_us = self._later(now_us, first_us << min(entry.tries, 10), last_us)
            dirty[self.memory.was_sent(pane, due_us)] = entry.dirty
        jitter = self._jitter.uniform(0.75, 1.25)
        for sink in self.sinks:
            waiting = [entry for entry, bits in dirty.items() if bits & sink.bit]
            if waiting and not sink.flights.full:
                sink.flights.launch(self._number, waiting, now_us, jitter)

    def _block(self, group: tuple[int, int, int, int], panes: list[PaneId]) -> PaneEntries:
        stream, span_us, incarnation, nonce = group
        entries = [self.memory.entries[pane] for pane in panes]
        return PaneEntries(
            stream,
            span_us,
            incarnation,
            nonce,
            tuple(zip(*[entry.partial for entry in entries], strict=True)),
            tuple([pane.key for pane in panes]),
            tuple([pane.pane_us for pane in panes]),
            tuple([entry.seq for entry in entries]),
        )

    def lows(self, source_us: int | None) -> tuple[SinkLow, ...]:
        """Return what may be promised to each sink.

        A low watermark is at most the start of the oldest pane that has not landed there, so it
        goes back where a late reading came or another store must be filled.

        Args:
            source_us: the time before which no source has more; None while that is unknown.
        """
        return tuple([self._low(sink, source_us) for sink in self.sinks])

    def _low(self, sink: Sink, source_us: int | None) -> SinkLow:
        oldest_us = self.cache.oldest_dirty_us(sink.bit)
        low_us = source_us
        if source_us is not None and oldest_us is not None:
            low_us = None if oldest_us == NEVER_US else min(source_us, oldest_us)
        return SinkLow(sink.name, store_tag(sink.store), low_us)

    def report(self) -> dict[str, Any]:
        known = standing(self.sinks.rows(), self.cache.waiting(), self.memory.streams)
        contested = [sink.name for sink in self.sinks if sink.contested_us]
        return {"dirty": self.cache.count, "sinks": known, "contested_sinks": contested}
