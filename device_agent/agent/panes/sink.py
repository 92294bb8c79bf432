"""One sink of a device: its store, what it has answered, and for how long it has been silent."""

from device_agent.agent.changes import SinkRow
from device_agent.agent.panes.flights import Flights
from lasp_edge.protocol.sinks import LEFT_US

MOVES_AT_ONCE = 8
"""Times that a sink may name a store that was never known, and is believed at once."""
LONGEST_WAIT_US = 86_400_000_000
"""Microseconds, after repeated doubling of `LEFT_US`, until the next one is believed: a day. After
two days without such a move all may be believed at once again."""
FORMER_STORES = 16
"""Stores that a sink had before and that are remembered: of more, the first count as new."""
MUCH_LATER_S = 3_600
"""Seconds from one word of a sink to the next after which it is asked again: an hour, in which most
clocks drift by less than a second."""
KNOWN_SPEAKERS = 4
"""Processes of a sink that are remembered: a new one may take what the one before did not."""


class Sink:
    """One sink.

    Attributes:
        bit: stands for it in a pane entry.
        name: the sink's.
        store: the id of its store; empty before the first acknowledgement.
        former: ids of the stores that it had before.
        silent_us: for how long it has not answered.
        commit: the greatest of its store after which it has taken an entry.
        landed: the same of a lake (`AckFrame.commit`).
        ancestors: the stores from which its present one follows: their processes have ended, so
            what comes of them is late, whatever their clocks say.
        moves: to stores that were never known, lately.
        moved_us: how long ago the last of them was.
        spoken_s: the latest second at which its store spoke, by the lander; None if unknown.
        latest_s: the same of all stores of its name; 0 if unknown.
        answered: the latest entry that was answered, by incarnation, nonce and seq.
        is_much_later: whether it answered much later than the time before: it was silent for long,
            or its clock was set, and it may take now what was ahead of it.
        contested_us: for how long it still counts that a store spoke that was not believed.
        flights: the frames that it has not answered yet.
    """

    __slots__ = (
        "_speakers",
        "ancestors",
        "answered",
        "bit",
        "commit",
        "contested_us",
        "control",
        "flights",
        "former",
        "is_much_later",
        "landed",
        "latest_s",
        "moved_us",
        "moves",
        "name",
        "silent_us",
        "spoken_s",
        "store",
    )

    def __init__(self, place: int, row: SinkRow, flights: Flights) -> None:
        self.bit = 1 << place
        self.name, self.store, self.former, self.silent_us = row[:4]
        self.commit, self.landed, self.latest_s, self.ancestors = row[4:]
        self.contested_us = self.moves = self.moved_us = 0
        self.spoken_s: int | None = None
        self.is_much_later = False
        self.control, self.answered = 0, (0, 0, 0)
        self.flights = flights
        self._speakers: list[int] = []

    def row(self) -> SinkRow:
        """Return it as it is stored."""
        kept = (self.silent_us, self.commit, self.landed, self.latest_s, self.ancestors)
        return SinkRow(self.name, self.store, self.former, *kept)

    def is_new_speaker(self, nonce: int) -> bool:
        """Return whether a process of the sink answers for the first time."""
        if nonce in self._speakers:
            return False
        self._speakers = [*self._speakers, nonce][-KNOWN_SPEAKERS:]
        return True

    def hear(self, clock_s: int | None, *, is_new: bool) -> None:
        """Note a message of its store, which may be a recording of an older one."""
        if is_new:
            self.silent_us = 0
        self.latest_s = max(self.latest_s, clock_s or 0)
        self.is_much_later = False
        if clock_s is not None:
            self.is_much_later = (
                self.spoken_s is not None and clock_s > self.spoken_s + MUCH_LATER_S
            )
            self.spoken_s = max(clock_s, self.spoken_s or 0)

    def bound(self, own_s: int) -> None:
        """Let its clock have come no further than the device's own."""
        self.latest_s = min(self.latest_s, own_s)
        self.spoken_s = None if self.spoken_s is None else min(self.spoken_s, own_s)

    def is_late(self, clock_s: int | None) -> bool:
        """Return whether another store spoke before the present one did, and that one is alive."""
        if clock_s is None or self.spoken_s is None:
            return False
        return clock_s < self.spoken_s and self.silent_us < LEFT_US

    @property
    def believes_strangers(self) -> bool:
        """Whether a store that was never known may take the place of the present one."""
        beyond = self.moves - MOVES_AT_ONCE
        return beyond < 0 or self.moved_us >= min(LEFT_US << beyond, LONGEST_WAIT_US)

    def pass_time(self, passed_us: int) -> None:
        """Count that it was silent for some time more."""
        self.silent_us += passed_us
        self.contested_us = max(0, self.contested_us - passed_us)
        self.moved_us += passed_us
        if self.moved_us >= 2 * LONGEST_WAIT_US:
            self.moves = 0

    def adopt(self, store: str, *, follows: bool = False) -> None:
        """Deliver to another store from now on, which has all of the present one if it follows."""
        self.commit = self.landed = 0
        if self.store and store not in self.former and not follows:
            self.moves, self.moved_us = self.moves + 1, 0
        left = [each for each in (*self.former, self.store) if each not in {"", store}]
        self.former = tuple(left[-FORMER_STORES:])
        self.ancestors = ()
        self.store, self.contested_us, self.spoken_s = store, 0, None
        self.flights.abandon_all()
