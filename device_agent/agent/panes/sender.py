"""Which pane entries leave, and when: in frames of bounded size, a few at a time for each sink.

An entry that was not sent yet is due when its pane is over, or when its readings have waited for
`Panes.patience_us`; a cell of items, which no window waits for, only then. What would be due within
an interval goes along, since a frame costs more than what is in it. An entry that was sent is due
again after a while that doubles with each time: what the sinks have not answered soon, what all of
them refused seldom. What was sent least often leaves first, so that answers which come late hold
nothing up: while they are on their way, other entries leave.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from random import Random

from device_agent.agent.agent import Agent
from device_agent.agent.panes.flights import LAST_TIMEOUT_US
from device_agent.agent.panes.panes import NEVER_US, PaneEntry, Panes
from device_agent.agent.panes.sinks import Sinks
from device_agent.agent.stored_rows import EntryKey, PaneId, is_of_retired, waits_for
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.fencing import SourceHigh
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.sizes import BLOCK_OVERHEAD_BYTES, FRAME_OVERHEAD_BYTES, entry_bytes
from lasp_edge.timers import is_time

FRAME_BYTES = 16_384
"""Bytes of a frame, at most, unless one entry is larger: some hundred entries, and a second on the
slowest link that is of use (128 kbit/s)."""
FIRST_REFUSAL_US = 60_000_000
"""Microseconds until an entry that was not taken is sent again; doubled each time."""
LAST_REFUSAL_US = 3_600_000_000
"""Microseconds, after repeated doubling: an hour. A new process of a sink is tried at once."""


class PaneSender:
    """Makes frames of the entries that are due.

    Args:
        agent: what all parts share.
        panes: the entries in memory.
        sinks: to which they are delivered.
        low_us: returns the time before which no source has more; None while that is unknown.
        highs: returns how far the sources have come.
        is_retired: returns whether this device counts no more, as far as it knows.
    """

    def __init__(
        self,
        agent: Agent,
        panes: Panes,
        sinks: Sinks,
        low_us: Callable[[int], int | None],
        highs: Callable[[], tuple[SourceHigh, ...]],
        is_retired: Callable[[], bool],
    ) -> None:
        self._agent = agent
        self._panes = panes
        self._sinks = sinks
        self._low_us, self._highs, self._is_retired = low_us, highs, is_retired
        self._jitter = Random(agent.replica.nonce)
        self._number = 0
        self._sent: list[PaneId] = []
        self._asked_again: dict[PaneId, int] = {}

    def frames(self, now_us: int, *, everything: bool) -> Iterator[PaneFrame]:
        """Yield frames of due entries while few are in flight for some sink that waits for them.

        Args:
            now_us: the time.
            everything: all that were not sent yet are due.
        """
        for sink in self._sinks:
            sink.flights.abandon_late(now_us)
        entries = self._panes.entries
        if not (self._panes.dirty and self._hungry()):
            return
        due = self._due(now_us, everything=everything)
        while due:
            hungry = self._hungry()
            due = [pane for pane in due if entries[pane].dirty & hungry]
            if due:
                together, due = self._split(due)
                yield self._frame(together, now_us)

    def _hungry(self) -> int:
        """Return the bits of the sinks for which a frame may leave."""
        return sum(sink.bit for sink in self._sinks if not sink.flights.full)

    def _split(self, due: list[PaneId]) -> tuple[list[PaneId], list[PaneId]]:
        """Split off as many entries as surely fit into one frame; at least one."""
        size = FRAME_OVERHEAD_BYTES
        groups: set[tuple[int, int, int]] = set()
        for index, pane in enumerate(due):
            group = (pane.stream, pane.incarnation, pane.nonce)
            partial = self._panes.entries[pane].partial
            binary = sum([len(part) for part in partial if isinstance(part, bytes)])
            size += entry_bytes(pane.key, len(partial), binary)
            size += 0 if group in groups else BLOCK_OVERHEAD_BYTES
            groups.add(group)
            if index and size > FRAME_BYTES:
                return due[:index], due[index:]
        return due, []

    def _frame(self, panes: list[PaneId], now_us: int) -> PaneFrame:
        """Return a frame of these entries, which is then in flight."""
        entries = self._panes.entries
        groups: dict[tuple[int, int, int, int], list[PaneId]] = {}
        for pane in sorted(panes):
            span_us = entries[pane].end_us - pane.pane_us
            group = (pane.stream, span_us, pane.incarnation, pane.nonce)
            groups.setdefault(group, []).append(pane)
        streams = {stream for stream, *_ in groups}
        self._number += 1
        self._sent = panes
        frame = PaneFrame(
            self._agent.replica,
            self._number,
            tuple([self._block(group, members) for group, members in groups.items()]),
            self._highs() if any(map(self._panes.planned.has_readings, panes)) else (),
            tuple([each for each in sorted(self._panes.begun.items()) if each[0] in streams]),
        )
        self._launch(panes, now_us)
        return frame

    def _launch(self, panes: Sequence[PaneId], now_us: int) -> None:
        dirty: dict[EntryKey, int] = {}
        first_us, low_us = self._sinks.first_retry_us(), self._low_us(now_us)
        unlanded = self._panes.unlanded
        unlanded.keep(self._may_grow)
        for pane in panes:
            entry = self._panes.entries[pane]
            if low_us is not None and entry.end_us > self._panes.high_us:
                unlanded.sent(pane, entry.seq, low_us)
            if self._waits(pane, entry):
                longest_us = max(LAST_TIMEOUT_US, first_us)
                entry.due_us = self._later(now_us, first_us, entry.tries, longest_us)
            else:
                entry.due_us = self._refused_due_us(entry, now_us)
            entry.tries, entry.sent_us = entry.tries + 1, now_us
            dirty[self._panes.key(pane)] = entry.dirty
        jitter = self._jitter.uniform(0.75, 1.25)
        for sink in self._sinks:
            waiting = [entry for entry, bits in dirty.items() if bits & sink.bit]
            if waiting and not sink.flights.full:
                sink.flights.launch(self._number, waiting, now_us, jitter)

    def _may_grow(self, pane: PaneId) -> bool:
        """Return whether an entry is here, and may be dirty for a while yet."""
        entry = self._panes.entries.get(pane)
        return entry is not None and (entry.dirty > 0 or entry.end_us > self._panes.high_us)

    def _block(self, group: tuple[int, int, int, int], panes: list[PaneId]) -> PaneEntries:
        stream, span_us, incarnation, nonce = group
        entries = [self._panes.entries[pane] for pane in panes]
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

    def _due(self, now_us: int, *, everything: bool) -> list[PaneId]:
        """Return the dirty entries that are due, those that were sent least often first."""
        entries, patience_us = self._panes.entries, self._panes.patience_us
        soon_us = now_us + self._agent.settings.interval_us

        planned, high_us = self._panes.planned, self._panes.high_us

        def is_due(entry: PaneEntry, stream: int) -> bool:
            if entry.tries:  # a clock that was set back does not count as waiting
                return not entry.sent_us <= now_us < entry.due_us
            is_over = everything or (entry.end_us <= high_us and stream not in planned.patient)
            return is_over or is_time(now_us, entry.due_us, planned.waits_us(stream, patience_us))

        found = {pane for pane in self._panes.dirty if is_due(entries[pane], pane.stream)}
        if found:
            along = [pane for pane in self._panes.dirty if not entries[pane].tries]
            found.update(pane for pane in along if entries[pane].due_us <= soon_us)
        return sorted(found, key=lambda pane: (entries[pane].tries, pane))

    def send_again(
        self, panes: Collection[PaneId], bits: int, in_flight: Iterable[PaneId] = ()
    ) -> None:
        """Let entries be due at once, and wait for an answer as if no sink had refused them.

        Args:
            panes: of these entries.
            bits: of the sinks that may have refused them, and are asked again.
            in_flight: others, which wait for an answer, but are not due at once.
        """
        asked = {pane: of for pane, of in self._asked_again.items() if pane in self._panes.dirty}
        for pane in (*panes, *in_flight):
            asked[pane] = asked.get(pane, 0) | bits
        self._asked_again = asked
        for pane in panes:
            self._panes.entries[pane].due_us = NEVER_US

    def answered(self, panes: Iterable[PaneId], bit: int) -> None:
        """Note that a sink has answered entries: if it refused them before, it refuses them now."""
        asked = self._asked_again
        for pane in asked.keys() & panes if asked else ():
            asked[pane] &= ~bit

    def hasten(self, now_us: int) -> None:
        """Wait no longer for answers than after the first time that something was sent."""
        due_us = now_us + self._sinks.first_retry_us()
        for pane in self._panes.dirty:
            entry = self._panes.entries[pane]
            if entry.tries and self._waits(pane, entry):
                entry.due_us = min(entry.due_us, due_us)

    def _waits(self, pane: PaneId, entry: PaneEntry) -> bool:
        """Return whether a sink's answer is waited for: it has not refused, or is asked again.

        Who refused because the device was retired, and has not heard or had not when it answered
        that it is so no more, takes it soon.
        """
        asked = self._asked_again.get(pane, 0)
        if is_of_retired(entry.refused) and not self._is_retired():
            return True
        return bool(waits_for(entry.dirty, entry.refused) or asked & entry.dirty)

    def refused(self, pane: PaneId, now_us: int) -> None:
        """Let an entry be due late that a sink has not taken, if no sink's answer is waited for."""
        entry = self._panes.entries[pane]
        if not self._waits(pane, entry):
            entry.sent_us, entry.due_us = now_us, self._refused_due_us(entry, now_us)

    def _refused_due_us(self, entry: PaneEntry, now_us: int) -> int:
        """Return when an entry that no sink takes is due again."""
        return self._later(now_us, FIRST_REFUSAL_US, entry.tries, LAST_REFUSAL_US)

    def _later(self, now_us: int, first_us: int, tries: int, last_us: int) -> int:
        wait_us = min(first_us << min(tries, 10), last_us)
        return now_us + round(wait_us * self._jitter.uniform(0.75, 1.25))

    def take_back(self, number: int) -> None:
        """Take note that the last frame did not leave, if it has this number."""
        if number != self._number:
            return
        for sink in self._sinks:
            sink.flights.cancel(number)
        for pane in self._sent:
            entry = self._panes.entries.get(pane)
            if entry is not None and entry.tries:
                entry.tries, entry.due_us = entry.tries - 1, NEVER_US
        self._sent = []
