"""Highs: how far each source whose readings carry their own time has come, over all lives.

The device tells it to its peers and to the landers, and they tell it back to a replica that starts
on a lost store or an older image (`device_agent.fleet.fence`). Such a store does not know which
readings had been accepted: those at or below what was told are **doubtful**. They are refused and
counted, for to accept one that had counted already would count it twice. A doubt lasts as long as
such readings may come: below the floor they are too late anyway. What was accepted before that was
told may count twice: it is counted, too.

A lander hears all that lands, so its word is final. What is accepted before one has answered is not
**confirmed**: its number must not hide what another life has accepted.

    >>> highs = Highs(Facts())
    >>> highs.learn([SourceHigh(source_id("csv:a"), 60, 2)], Knows.NOTHING, most_us=100)
    >>> highs.doubt_us("csv:a"), highs.doubt_us("csv:b")
    (60, None)
    >>> highs.advance("csv:a", 80, 1)
    >>> highs.told()[0][1:]
    (80, 3)
"""

from collections.abc import Iterable
from enum import Enum, auto

from device_agent.facts import Facts
from lasp_edge.protocol.fencing import SourceHigh, joined, source_id
from lasp_edge.protocol.limits import TIME_LIMIT_US

_NOTHING = (0, 0)


class Knows(Enum):
    """How well the store knows the readings of a process that is told of."""

    NOTHING = auto()  # it never heard of that process
    CONFIRMED = auto()  # surely those that a lander has confirmed
    ALL = auto()  # all that were accepted before the present process, unless it is older


class Highs:
    """What is told of this device's sources, and up to where their readings are doubtful.

    Args:
        facts: what the store holds of them.

    Attributes:
        is_alone: no lander has told this process what earlier lives have accepted.
        maybe_twice: readings that were accepted before it was told that they might be doubtful, and
            that are still to be counted as such.
    """

    __slots__ = (
        "_changed",
        "_confirmed",
        "_doubts",
        "_highs",
        "_ids",
        "_started",
        "_unconfirmed",
        "is_alone",
        "maybe_twice",
    )

    def __init__(self, facts: Facts) -> None:
        self._highs: dict[int, SourceHigh] = {}
        # How many, and the least own time; of the confirmed ones those of this process.
        self._unconfirmed: dict[int, tuple[int, int]] = {}
        self._confirmed: dict[int, tuple[int, int]] = {}
        for source, (high_us, accepted, *rest) in (facts.highs or {}).items():
            self._highs[int(source)] = SourceHigh(int(source), high_us, accepted)
            if rest:
                self._unconfirmed[int(source)] = (rest[0], rest[1])
        self._doubts = {int(source): high_us for source, high_us in (facts.doubts or {}).items()}
        self._started = {at: high.accepted for at, high in self._highs.items()}
        self._ids: dict[str, int] = {}
        self._changed = False
        self.is_alone = False
        self.maybe_twice = 0

    def _id(self, source: str) -> int:
        found = self._ids.get(source)
        if found is None:
            found = self._ids[source] = source_id(source)
        return found

    def doubt_us(self, source: str) -> int | None:
        """Return up to which own time a source's readings are doubtful; None: none are."""
        return self._doubts.get(self._id(source)) if self._doubts else None

    def advance(self, source: str, high_us: int, accepted: int, low_us: int = 0) -> None:
        """Note that readings of a source were accepted.

        Args:
            source: its name.
            high_us: the greatest of their own times.
            accepted: how many they are.
            low_us: the least of their own times.
        """
        at = self._id(source)
        known = self._highs.get(at)
        furthest = high_us if known is None else max(high_us, known.high_us)
        before = 0 if known is None else known.accepted
        self._highs[at] = SourceHigh(at, furthest, before + accepted)
        self._changed = True
        lately = self._unconfirmed if self.is_alone else self._confirmed
        count, least_us = lately.get(at, (0, low_us))
        lately[at] = (count + accepted, min(least_us, low_us))

    def told(self) -> tuple[SourceHigh, ...]:
        """Return what is told to others."""
        return joined(self._highs.values()) if self._highs else ()

    def learn(self, told: Iterable[SourceHigh], knows: Knows, *, most_us: int) -> None:
        """Take what another process of this device told of its sources.

        Args:
            told: how far they had come.
            knows: how well the store knows what that process had accepted.
            most_us: no source can have come further: a high beyond it counts as this.
        """
        for high in told:
            at, high_us = high.source, min(high.high_us, most_us)
            known = self._highs.get(at)
            if known is not None and high.accepted <= self._accepted(known, knows):
                continue
            before = 0 if known is None else known.accepted
            furthest = high_us if known is None else max(high_us, known.high_us)
            self._highs[at] = SourceHigh(at, furthest, max(before, high.accepted))
            self._started[at] = max(high.accepted, self._started.get(at, 0))
            self._changed = True
            if high_us > self._doubts.get(at, high_us - 1):
                self._doubts[at] = high_us
                self._count_maybe_twice(at, high_us)

    def _accepted(self, known: SourceHigh, knows: Knows) -> int:
        """Return how many readings of a source that process can have told, if all are known."""
        if knows is Knows.NOTHING:
            return -1
        if knows is Knows.ALL:
            return self._started.get(known.source, 0)
        return known.accepted - self._unconfirmed.get(known.source, _NOTHING)[0]

    def _count_maybe_twice(self, source: int, most_us: int) -> None:
        """Count what was accepted of a source before it was told of a doubt up to this time."""
        for lately in (self._unconfirmed, self._confirmed):
            count, least_us = lately.get(source, _NOTHING)
            if count and least_us <= most_us:
                self.maybe_twice += count
                del lately[source]
                self._changed = True

    def learn_of_lost_life(self) -> None:
        """Note that there was a life of which nobody knows what it accepted."""
        for source in {*self._unconfirmed, *self._confirmed}:
            self._count_maybe_twice(source, TIME_LIMIT_US)

    def confirm(self) -> None:
        """Note that a lander has answered, and that no earlier life is heard by it any more."""
        self.is_alone = False
        self._changed |= bool(self._unconfirmed)
        self._unconfirmed.clear()

    def furthest_doubt_us(self) -> int | None:
        """Return the greatest own time that some life of this device surely had accepted."""
        return max(self._doubts.values(), default=None)

    def take_facts(self) -> Facts | None:
        """Return what is to be stored; None if nothing changed since the last time."""
        if not self._changed:
            return None
        self._changed = False
        highs = {
            str(at): [high_us, accepted, *self._unconfirmed.get(at, ())]
            for at, high_us, accepted in self._highs.values()
        }
        doubts = {str(at): high_us for at, high_us in self._doubts.items()}
        return Facts(highs=highs, doubts=doubts or None)
