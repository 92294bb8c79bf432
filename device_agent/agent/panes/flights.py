"""Frames on their way to one sink: each is answered, or given up after a time-out.

A frame is in flight until the sink has answered for all its entries, and only a few are at a time.
One that is given up makes room for the next: its entries are sent again in another frame, and its
acknowledgement still counts if it comes late, because it names entries and not the frame. So
nothing is remembered of it. Lost frames, lost acknowledgements, full queues and broker crashes are
all healed by this, and however late answers come, every time-out lets other entries leave.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from device_agent.agent.stored_rows import EntryKey
from lasp_edge.protocol.acks import Seqs

IN_FLIGHT = 4
"""Frames that wait for a sink's answer at the same time, to begin with: 4 * 16 KiB on the way.
After each time-out without any answer it is one less, down to one: nobody may be there. Frames that
were on their way together are lost together: that is one time-out."""
MOST_IN_FLIGHT = 32
"""Frames, where answers are quick. Each quick one lets one frame more be on its way, each other one
frame fewer, down to `IN_FLIGHT`: so a backlog leaves as fast as link and sink can take it."""
FIRST_TIMEOUT_US = 5_000_000
"""Microseconds until a frame is given up: five commits of a lander, which acknowledges each."""
QUICK_US = FIRST_TIMEOUT_US // 2
"""Microseconds up to which an answer is quick: with more on the way it will still be in time."""
LAST_TIMEOUT_US = 120_000_000
"""Microseconds, after repeated doubling: a lander that comes back is used within two minutes."""


PROBES = 64
"""Entries of which it is remembered when they were sent, so that latency is known: one a frame."""


class _Flight(NamedTuple):
    """A frame that is not answered yet."""

    waiting: set[EntryKey]
    sent_us: int
    due_us: int

    def is_late(self, now_us: int) -> bool:
        """Return whether to wait no longer; a clock that was set back does not count as waiting."""
        return not self.sent_us <= now_us < self.due_us


class Flights:
    """The frames that one sink has not answered yet.

    Attributes:
        latency_us: how long the last answer took that came too late; 0 while they come in time.
    """

    def __init__(self) -> None:
        self._flights: dict[int, _Flight] = {}
        self._room = IN_FLIGHT
        self._misses = 0
        self._missed_us = -LAST_TIMEOUT_US
        self._probes: dict[EntryKey, int] = {}
        self._answered_us = 0
        self.latency_us = 0

    @property
    def count(self) -> int:
        """How many frames wait for their answer."""
        return len(self._flights)

    @property
    def full(self) -> bool:
        """Whether no frame may leave for this sink before one is answered or given up."""
        return len(self._flights) >= max(1, self._room - self._misses)

    @property
    def is_away(self) -> bool:
        """Whether the sink has left frames unanswered, and has answered nothing since."""
        return self._misses > 0

    def holds(self, entry: EntryKey) -> bool:
        """Return whether an entry is in flight."""
        if not self._flights:
            return False  # as it is most often, and it is asked of each entry
        return any(entry in flight.waiting for flight in self._flights.values())

    def launch(self, number: int, entries: Iterable[EntryKey], now_us: int, jitter: float) -> None:
        """Note that a frame leaves; `jitter` is a factor of its time-out."""
        timeout_us = min(FIRST_TIMEOUT_US << min(self._misses, 10), LAST_TIMEOUT_US)
        due_us = now_us + round(timeout_us * jitter)
        waiting = set(entries)
        self._flights[number] = _Flight(waiting, now_us, due_us)
        for entry in waiting:  # an answer might be to its earlier frame
            self._probes.pop(entry, None)
        self._probes[min(waiting)] = now_us
        if len(self._probes) > PROBES:
            del self._probes[next(iter(self._probes))]

    def answer(self, named: Collection[Seqs], now_us: int) -> None:
        """Take note that the sink has answered for these entries."""
        by_replica: dict[tuple[int, int], list[Seqs]] = {}
        for seqs in named:
            by_replica.setdefault((seqs.incarnation, seqs.nonce), []).append(seqs)

        def is_named(entry: EntryKey) -> bool:
            return any(entry.seq in seqs for seqs in by_replica.get(entry[:2], ()))

        if by_replica:
            self._misses, self._answered_us = 0, now_us
        for number, flight in list(self._flights.items()):
            waiting = flight.waiting
            waiting -= {entry for entry in waiting if is_named(entry)}
            if not waiting:
                del self._flights[number]
                self._adapt(now_us - flight.sent_us)
        for entry in [entry for entry in self._probes if is_named(entry)]:
            took_us = now_us - self._probes.pop(entry)
            self.latency_us = took_us if took_us > FIRST_TIMEOUT_US else 0

    def _adapt(self, took_us: int) -> None:
        """Let more or fewer frames be on their way, by how long the answer to one took."""
        step = 1 if 0 <= took_us <= QUICK_US else -1
        self._room = min(max(self._room + step, IN_FLIGHT), MOST_IN_FLIGHT)

    def cancel(self, number: int) -> None:
        """Take note that a frame did not leave."""
        self._flights.pop(number, None)

    def abandon_late(self, now_us: int) -> None:
        """Give up the frames whose time-out is over."""
        late = {
            number: flight for number, flight in self._flights.items() if flight.is_late(now_us)
        }
        if not late:
            return
        for number in late:
            del self._flights[number]
        self._room = IN_FLIGHT
        # Who takes long to answer, and answers, is there.
        is_slow = 0 <= now_us - self._answered_us < self.latency_us
        is_first = any(not flight.sent_us < self._missed_us <= now_us for flight in late.values())
        if is_first and not is_slow:
            self._misses, self._missed_us = self._misses + 1, now_us

    def abandon_all(self) -> set[EntryKey]:
        """Give up all frames; return their entries that were not answered."""
        entries = {entry for flight in self._flights.values() for entry in flight.waiting}
        self._flights.clear()
        self._room, self._misses = IN_FLIGHT, 0
        return entries
