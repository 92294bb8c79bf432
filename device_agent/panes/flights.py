"""Numbered frames in flight: each is acknowledged, or abandoned after a time-out.

Frames have numbers 1, 2, .. per replica, and at most `IN_FLIGHT` of them wait for their
acknowledgement. An abandoned frame's entries are sent again in another frame; its acknowledgement
still counts if it comes late. Lost frames, lost acknowledgements, full queues and broker crashes
are all healed by this.
"""

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from device_agent.changes import PaneId

IN_FLIGHT = 4
"""Frames that wait for their acknowledgement at the same time, at most: 4 * 16 KiB on the way."""
KEPT_ABANDONED = 2 * IN_FLIGHT
"""Abandoned frames that are remembered, so that a late acknowledgement still counts: the frames of
two time-outs."""
FIRST_TIMEOUT_US = 5_000_000
"""Microseconds until a frame is abandoned: five commits of a lander, which acknowledges each."""
LAST_TIMEOUT_US = 120_000_000
"""Microseconds, after repeated doubling: a lander that comes back is used within two minutes."""

Sent = list[tuple[PaneId, int]]
"""The entries of a frame, each with the seq that it had."""


class _Flight(NamedTuple):
    """A frame that is not acknowledged yet."""

    entries: Sent
    sent_us: int
    due_us: int

    def is_late(self, now_us: int) -> bool:
        """Return whether to wait no longer; a clock that was set back says nothing of waiting."""
        return not self.sent_us <= now_us < self.due_us


class Flights:
    """The frames that this replica has sent and that are not acknowledged.

    Args:
        jitter: spreads time-outs; seeded by the caller.
    """

    def __init__(self, jitter: Random) -> None:
        self._jitter = jitter
        self._flights: dict[int, _Flight] = {}
        self._abandoned: dict[int, _Flight] = {}
        self._seqs: dict[PaneId, int] = {}
        self._number = 0
        self._misses = 0

    @property
    def count(self) -> int:
        """How many frames wait for their acknowledgement."""
        return len(self._flights)

    @property
    def full(self) -> bool:
        """Whether no frame may leave before one is acknowledged or abandoned."""
        return len(self._flights) >= IN_FLIGHT

    @property
    def abandoned(self) -> int:
        """How many abandoned frames are remembered."""
        return len(self._abandoned)

    def seq_of(self, pane: PaneId) -> int | None:
        """Return the seq of an entry that is in flight; None where it is not."""
        return self._seqs.get(pane)

    def launch(self, entries: Sent, now_us: int) -> int:
        """Note that a frame leaves; return its number."""
        self._number += 1
        timeout_us = min(FIRST_TIMEOUT_US << min(self._misses, 10), LAST_TIMEOUT_US)
        due_us = now_us + round(timeout_us * self._jitter.uniform(0.75, 1.25))
        self._flights[self._number] = _Flight(entries, now_us, due_us)
        self._seqs.update(entries)
        return self._number

    def acknowledge(self, numbers: Iterable[int]) -> Sent:
        """Take note that these frames have landed; return their entries."""
        landed: Sent = []
        for number in numbers:
            flight = self._flights.pop(number, None) or self._abandoned.pop(number, None)
            if flight:
                self._misses = 0
                self._free(flight)
                landed += flight.entries
        return landed

    def cancel(self, number: int) -> list[PaneId]:
        """Take note that a frame did not leave; return the entries that are free again."""
        flight = self._flights.pop(number, None)
        return self._free(flight) if flight else []

    def abandon_late(self, now_us: int) -> list[PaneId]:
        """Abandon the frames whose time-out is over; return the entries that are free again."""
        late = [number for number, flight in self._flights.items() if flight.is_late(now_us)]
        self._misses += bool(late)
        return [pane for number in late for pane in self._abandon(number)]

    def abandon_all(self) -> list[PaneId]:
        """Abandon all frames; return the entries that are free again."""
        return [pane for number in list(self._flights) for pane in self._abandon(number)]

    def forget(self) -> None:
        """Forget all frames: late acknowledgements count no more."""
        self.abandon_all()
        self._abandoned.clear()

    def _abandon(self, number: int) -> list[PaneId]:
        flight = self._abandoned[number] = self._flights.pop(number)
        if len(self._abandoned) > KEPT_ABANDONED:
            del self._abandoned[next(iter(self._abandoned))]
        return self._free(flight)

    def _free(self, flight: _Flight) -> list[PaneId]:
        """Return the entries of a frame that are in flight in no newer one."""
        freed = [pane for pane, seq in flight.entries if self._seqs.get(pane) == seq]
        for pane in freed:
            del self._seqs[pane]
        return freed
