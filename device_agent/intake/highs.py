"""Highs: how far each source whose readings carry their own time has come, over all lives.

The device tells it to its peers and to the landers, and they tell it back to a replica that starts
on a lost store or an older image (`device_agent.fleet.fence`). Such a store does not know which
readings had been accepted: those at or below what was told are **doubtful**. They are refused and
counted, for to accept one that had counted already would count it twice. A doubt lasts as long as
such readings may come: below the floor they are too late anyway. What was accepted before that was
told may count twice: it is counted, too.

What this process accepts says nothing of what another one has accepted. So what another one told is
held against the number at the **end** of that process, as this store knows it: a store that is an
older image knows less than the process told, and of a source that it did not know by then, nothing.
Which of the readings that were accepted before that was told may count twice,
`device_agent.intake.lineage` finds out.

    >>> highs = Highs(Facts())
    >>> other = Teller(7, False, OtherLife(9))
    >>> highs.learn([SourceHigh(source_id("csv:a"), 60, 2)], other, most_us=100)
    >>> highs.doubt_us("csv:a"), highs.doubt_us("csv:b")
    (60, None)
    >>> highs.advance("csv:a", 80, 1)
    >>> highs.told()[0][1:]
    (80, 3)
"""

from collections.abc import Iterable
from itertools import chain
from typing import Final, NamedTuple

from crdts.replica import SEQS
from device_agent.facts import Facts
from device_agent.intake.batch import Batch
from device_agent.intake.lineage import Lineage, OtherLife, StoredLine
from lasp_edge.protocol.fencing import Line, SourceHigh, joined, source_id
from lasp_edge.protocol.limits import TIME_LIMIT_US

WAITED: Final = "readings that waited for the clock"
"""The source that they are: an older image of the store gives them again, as a file would. Their
own time is when they came."""


class Teller(NamedTuple):
    """A process of this device that told how far its sources had come.

    Attributes:
        incarnation: the last one of the process.
        is_known: the store knows that process: how far it had come, or some of that.
        life: which process that is, and which ones it follows.
    """

    incarnation: int
    is_known: bool
    life: OtherLife


_MOST_ENDS: Final = 16
"""Processes whose ends are remembered: what an earlier one sent may land late, or lie elsewhere."""


class Highs:
    """What is told of this device's sources, and up to where their readings are doubtful.

    Args:
        facts: what the store holds of them.
        lives: (incarnation, nonce) of the processes of the store before this one.
        me: the nonce of this process.

    Attributes:
        maybe_twice: readings that were accepted before it was told that they might be doubtful, and
            that are still to be counted as such.
    """

    __slots__ = (
        "_changed",
        "_doubts",
        "_ends",
        "_highs",
        "_ids",
        "_is_line_stored",
        "_lineage",
        "_lives",
        "_told",
        "maybe_twice",
    )

    def __init__(self, facts: Facts, lives: Iterable[tuple[int, int]] = (), me: int = 0) -> None:
        ordered = sorted(lives)
        self._lives = [incarnation for incarnation, _ in ordered][-_MOST_ENDS:]
        self._highs: dict[int, SourceHigh] = {}
        self._told: tuple[SourceHigh, ...] | None = None
        self._ends: dict[int, dict[int, int]] = {}  # incarnation -> accepted
        stored: dict[int, StoredLine] = {}
        for source, (high_us, accepted, held, least_us, *rest) in (facts.highs or {}).items():
            at = int(source)
            self._highs[at] = SourceHigh(at, high_us, accepted)
            self._ends[at] = dict(zip(rest[::2], rest[1::2], strict=True))
            self._note_ends(at, accepted)
            ends, said = (facts.lines or {}).get(source, ([], []))
            stored[at] = StoredLine(held, least_us, ends, said)
        self._lineage = Lineage(stored, [nonce for _, nonce in ordered], me)
        self._is_line_stored = False
        self._doubts = {int(source): high_us for source, high_us in (facts.doubts or {}).items()}
        self._ids: dict[str, int] = {}
        self._changed = False
        self.maybe_twice = 0

    def _id(self, source: str) -> int:
        found = self._ids.get(source)
        if found is None:
            found = self._ids[source] = source_id(source)
        return found

    def doubt_us(self, source: str) -> int | None:
        """Return up to which own time a source's readings are doubtful; None: not doubtful."""
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
        self._highs[at], self._told = SourceHigh(at, furthest, before + accepted), None
        if known is None:
            self._is_line_stored = False
            self._note_ends(at, 0)
        self._lineage.advance(at, accepted, low_us)
        self._changed = True

    def note(self, batch: Batch, high_us: int | None, accepted: int) -> None:
        """Note what was accepted of a batch.

        Args:
            batch: the batch.
            high_us: the greatest of the own times that were accepted; None: all were stamped.
            accepted: how many readings.
        """
        if high_us is not None:
            doubt_us = self._doubts.get(self._id(batch.source), -TIME_LIMIT_US)
            own = [at for at in batch.times_us if type(at) is int and at > doubt_us]
            least_us = min(own, default=high_us)
            self.advance(batch.source, high_us, accepted, least_us)
        waited = 0 if batch.came_us is None else min(accepted, batch.times_us.count(None))
        if waited and batch.came_us is not None:
            self.advance(WAITED, batch.came_us + waited - 1, waited, batch.came_us)

    def told(self) -> tuple[SourceHigh, ...]:
        """Return what is told to others."""
        if self._told is None:  # it is asked for in each round
            self._told = joined(self._highs.values())
        return self._told

    def learn(
        self,
        told: Iterable[SourceHigh],
        teller: Teller,
        *,
        most_us: int,
    ) -> None:
        """Take what another process of this device told of its sources.

        Args:
            told: how far they had come.
            teller: that process.
            most_us: no source can have come further: a high beyond it counts as this.
        """
        for high in told:
            at, high_us = high.source, min(high.high_us, most_us)
            known = self._highs.get(at)
            if (
                known is not None
                and teller.is_known
                and high.accepted <= self._sure(at, teller.incarnation)
            ):
                continue
            if known is None:
                self._note_ends(at, 0)
            before = 0 if known is None else known.accepted
            furthest = high_us if known is None else max(high_us, known.high_us)
            self._highs[at] = SourceHigh(at, furthest, max(before, high.accepted))
            self._told = None
            self._note_end(at, teller.incarnation, high.accepted)
            self._changed = True
            if high_us > self._doubts.get(at, high_us - 1):
                self._doubts[at] = high_us
            self._count_maybe_twice(at, teller.life, high.accepted, high_us)

    def _note_ends(self, source: int, accepted: int) -> None:
        """Note how many readings of a source were known at the ends that are not noted yet.

        The processes after the last one that is noted ended with what the store holds now.
        """
        ends = self._ends.setdefault(source, {})
        newest = max((each for each in self._lives if each in ends), default=-1)
        for incarnation in self._lives:
            if incarnation > newest:
                self._note_end(source, incarnation, accepted)

    def _note_end(self, source: int, incarnation: int, accepted: int) -> None:
        """Note how many readings of a source a process knew of in the end."""
        ends = self._ends.setdefault(source, {})
        ends[incarnation] = max(accepted, ends.get(incarnation, 0))
        if len(ends) > _MOST_ENDS:
            del ends[min(ends)]

    def _sure(self, source: int, incarnation: int) -> int:
        """Return how many readings of a source a process can have told, if all of them are known.

        That is what it had at its end; where that is forgotten, what the next one had.
        """
        ends = self._ends.get(source, {})
        later = [each for each in ends if each >= incarnation]
        return ends[min(later)] if later else max(ends.values(), default=0)

    def _count_maybe_twice(self, at: int, life: OtherLife, accepted: int, high_us: int) -> None:
        """Count what was accepted of a source that another life may have accepted, too."""
        found = self._lineage.new_twice(at, life, accepted, high_us)
        if found:
            self.maybe_twice += found
            self._changed, self._is_line_stored = True, False

    def learn_of_lost_life(self, life: OtherLife) -> None:
        """Note that there was a life of which nobody knows what it accepted."""
        for at in self._highs:
            self._count_maybe_twice(at, life, SEQS, TIME_LIMIT_US)

    def line(self) -> Line:
        """Return which processes this one follows, for others to know; see `HelloFrame`."""
        return self._lineage.line()

    def furthest_doubt_us(self) -> int | None:
        """Return the greatest own time that some life of this device surely had accepted."""
        return max(self._doubts.values(), default=None)

    def take_facts(self) -> Facts | None:
        """Return what is to be stored; None if nothing changed since the last time."""
        if not self._changed:
            return None
        self._changed = False
        highs = {
            str(at): [
                high_us,
                accepted,
                *self._lineage.now(at),
                *chain(*self._ends.get(at, {}).items()),
            ]
            for at, high_us, accepted in self._highs.values()
        }
        doubts = {str(at): high_us for at, high_us in self._doubts.items()}
        facts = Facts(highs=highs, doubts=doubts or None)
        if not self._is_line_stored:
            self._is_line_stored = True
            facts.lines = {str(at): self._lineage.past(at) for at in self._highs}
        return facts
