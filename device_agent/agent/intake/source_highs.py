"""How far each source whose readings carry their own time has come, over all lives.

The device publishes it to its peers and to the landers, and they report it to a replica that starts
on a lost store or an older image (`device_agent.agent.fleet.fence`). Such a store does not know
which readings had been accepted: those at or below a reported time are **doubtful**. They are
refused and counted, for to accept one that had counted already would count it twice. A doubt lasts
as long as such readings may come: below the floor they are too late anyway. Readings that were
accepted before the report may count twice: they are counted, too.

The number of readings that another process reports is compared with the number at the **end** of
that process, as this store knows it: a store that is an older image knows less than the process
reported, and nothing of a source that it did not know by then. Of the readings that both accepted
after that end, the smaller number may count twice. Of a process that this store does not know, all
that it accepted may be the same readings: it may be another life that read the same file, or one
that went on with a copy of this store. So the number is an upper bound.

    >>> highs = SourceHighs(Facts())
    >>> other = Replica(7, 9, "pi-1")
    >>> highs.learn([SourceHigh(source_id("csv:a"), 60, 2)], other, most_us=100)
    >>> highs.doubt_us("csv:a"), highs.doubt_us("csv:b")
    (60, None)
    >>> highs.advance("csv:a", 80, 1)
    >>> highs.published()[0][1:]
    (80, 3)
"""

from collections.abc import Iterable
from itertools import chain
from typing import Final

from crdts import Replica
from device_agent.agent.changes import Facts
from device_agent.agent.intake.batch import Batch
from lasp_edge.protocol.fencing import SourceHigh, joined, source_id

WAITED: Final = "readings that waited for the clock"
"""The source that they are: an older image of the store gives them again, as a file would. Their
own time is when they came."""

_MOST_ENDS: Final = 16
"""Processes whose ends are remembered: frames of an earlier one may land late, or lie elsewhere."""
_MOST_OTHERS: Final = 16
"""Other processes whose reports are remembered; readings of more of them are counted again."""


class SourceHighs:
    """How far this device's sources have come, and up to where their readings are doubtful.

    Args:
        facts: what the store holds of them.
        lives: (incarnation, nonce) of the processes of the store before this one.

    Attributes:
        doubts: id of a source -> up to which own time its readings are doubtful.
        maybe_twice: readings that were accepted before others reported how far they had come, may
            count twice, and that are not in the counters yet.
    """

    __slots__ = (
        "_changed",
        "_come",
        "_ends",
        "_highs",
        "_ids",
        "_is_twice_stored",
        "_lives",
        "_others",
        "_own",
        "_published",
        "_twice",
        "doubts",
        "maybe_twice",
    )

    def __init__(self, facts: Facts, lives: Iterable[tuple[int, int]] = ()) -> None:
        self._lives = sorted(lives)
        self._highs: dict[int, SourceHigh] = {}
        self._published: tuple[SourceHigh, ...] | None = None
        self._own: dict[int, int] = {}  # accepted by the processes of this store
        self._ends: dict[int, dict[int, int]] = {}  # incarnation -> accepted
        for source, (high_us, accepted, own, *ends) in (facts.highs or {}).items():
            at = int(source)
            self._highs[at], self._own[at] = SourceHigh(at, high_us, accepted), own
            pairs = ends[len(ends) % 2 :]  # a former release wrote one number before them
            self._ends[at] = dict(zip(pairs[::2], pairs[1::2], strict=True))
            self._note_ends(at, accepted)
        self._twice: dict[int, int] = {}  # readings that may count twice
        self._others: dict[int, dict[int, int]] = {}  # nonce -> accepted, as reported
        for source, (twice, *others) in (facts.twice or {}).items():
            self._twice[int(source)] = twice
            self._others[int(source)] = dict(zip(others[::2], others[1::2], strict=True))
        self._is_twice_stored = True
        self.doubts = {int(source): high_us for source, high_us in (facts.doubts or {}).items()}
        self._ids: dict[str, int] = {}
        self._changed = False
        self._come: dict[
            str, tuple[int, int]
        ] = {}  # accepted since `_settle`: greatest time, number
        self.maybe_twice = 0

    def _id(self, source: str) -> int:
        found = self._ids.get(source)
        if found is None:
            found = self._ids[source] = source_id(source)
        return found

    def doubt_us(self, source: str) -> int | None:
        """Return up to which own time a source's readings are doubtful; None: not doubtful."""
        return self.doubts.get(self._id(source)) if self.doubts else None

    def advance(self, source: str, high_us: int, accepted: int) -> None:
        """Note that readings of a source were accepted.

        Args:
            source: its name.
            high_us: the greatest of their own times.
            accepted: how many they are.
        """
        known = self._come.get(source)
        if known is None:
            self._come[source] = (high_us, accepted)
        else:
            before_us, before = known
            furthest_us = before_us if high_us < before_us else high_us  # noqa: FURB136 - hot
            self._come[source] = (furthest_us, before + accepted)

    def _settle(self) -> None:
        """Take what was accepted since the last look at it."""
        come, self._come = self._come, {}
        for source, (high_us, accepted) in come.items():
            self._advance(self._id(source), high_us, accepted)

    def _advance(self, at: int, high_us: int, accepted: int) -> None:
        known = self._highs.get(at)
        if known is None:
            self._note_ends(at, 0)
            known = SourceHigh(at, high_us, 0)
        _, before_us, before = known
        furthest = SourceHigh(at, max(before_us, high_us), before + accepted)
        self._highs[at], self._published = furthest, None
        self._own[at] = self._own.get(at, 0) + accepted
        self._changed = True

    def note(self, batch: Batch, high_us: int | None, accepted: int) -> None:
        """Note what was accepted of a batch.

        Args:
            batch: the batch.
            high_us: the greatest of the own times that were accepted; None: all were stamped.
            accepted: how many readings.
        """
        if high_us is not None:
            self.advance(batch.source, high_us, accepted)
        if batch.dated_us is not None:
            waited = min(accepted, batch.times_us.count(None))
            if waited:
                self.advance(WAITED, batch.dated_us + waited - 1, waited)

    def published(self) -> tuple[SourceHigh, ...]:
        """Return how far each source has come, as it is published."""
        if self._come:
            self._settle()
        if self._published is None:  # it is asked for in each round
            self._published = joined(self._highs.values())
        return self._published

    def learn(
        self,
        reported: Iterable[SourceHigh],
        reporter: Replica,
        *,
        most_us: int,
    ) -> None:
        """Take how far the sources have come by another process of this device.

        Args:
            reported: how far they had come.
            reporter: the newest replica of that process.
            most_us: no source can have come further: a high beyond it counts as this.
        """
        self._settle()
        for high in reported:
            at, high_us = high.source, min(high.high_us, most_us)
            known = self._highs.get(at)
            if known is None:
                self._note_ends(at, 0)
                known = SourceHigh(at, high_us, 0)
            is_ours = self._is_of_this_store(reporter)
            shared = self._sure(at, reporter.incarnation) if is_ours else 0
            shared = max(shared, self._others.get(at, {}).get(reporter.nonce, 0))
            if is_ours and high.accepted <= shared:
                continue
            self._take(known, SourceHigh(at, high_us, high.accepted))
            if high.accepted > shared:
                self._note_other(at, reporter.nonce, high.accepted)
                self._count_maybe_twice(at, min(known.accepted, high.accepted) - shared)

    def _take(self, known: SourceHigh, reported: SourceHigh) -> None:
        """Become as far as another process was; its readings are doubtful."""
        at, high_us = reported.source, reported.high_us
        furthest = SourceHigh(at, *map(max, known[1:], reported[1:]))
        doubt_us = max(high_us, self.doubts.get(at, high_us))
        if self._highs.get(at) != furthest or self.doubts.get(at) != doubt_us:
            self._highs[at], self.doubts[at] = furthest, doubt_us
            self._published, self._changed = None, True

    def _is_of_this_store(self, reporter: Replica) -> bool:
        """Return whether this store knows a process; nonce 0: it is not known which one it is."""
        if reporter.nonce:
            return reporter[:2] in self._lives
        return any(incarnation == reporter.incarnation for incarnation, _ in self._lives)

    def _note_ends(self, source: int, accepted: int) -> None:
        """Note how many readings of a source were known at the ends that are not noted yet.

        The processes after the last one that is noted ended with what the store holds now.
        """
        ends = self._ends.setdefault(source, {})
        newest = next((each for each, _ in reversed(self._lives) if each in ends), -1)
        for incarnation, _ in self._lives[-_MOST_ENDS:]:
            if incarnation > newest:
                self._note_end(source, incarnation, accepted)

    def _note_end(self, source: int, incarnation: int, accepted: int) -> None:
        """Note how many readings of a source a process knew of in the end."""
        ends = self._ends.setdefault(source, {})
        ends[incarnation] = max(accepted, ends.get(incarnation, 0))
        if len(ends) > _MOST_ENDS:
            del ends[min(ends)]

    def _sure(self, source: int, incarnation: int) -> int:
        """Return how many readings of a source a process can have reported, if all are known.

        That is what it had at its end; where that is forgotten, what the next one had.
        """
        ends = self._ends.get(source, {})
        later = [each for each in ends if each >= incarnation]
        return ends[min(later)] if later else max(ends.values(), default=0)

    def _note_other(self, source: int, nonce: int, accepted: int) -> None:
        """Note how many readings of a source another process reported."""
        others = self._others.setdefault(source, {})
        others.pop(nonce, None)
        others[nonce] = accepted
        if len(others) > _MOST_OTHERS:
            del others[next(iter(others))]
        self._changed, self._is_twice_stored = True, False

    def _count_maybe_twice(self, source: int, more: int) -> None:
        """Count more readings of a source, up to all that this store accepted."""
        before = self._twice.get(source, 0)
        found = min(before + more, self._own.get(source, 0))
        if found > before:
            self._twice[source] = found
            self.maybe_twice += found - before
            self._changed, self._is_twice_stored = True, False

    def learn_of_lost_life(self) -> None:
        """Note that there was a process whose accepted readings nobody knows."""
        self._settle()
        for source, own in self._own.items():
            self._count_maybe_twice(source, own)

    def furthest_doubt_us(self) -> int | None:
        """Return the greatest own time that some life of this device surely had accepted."""
        return max(self.doubts.values(), default=None)

    def take_facts(self) -> Facts | None:
        """Return what is to be stored; None if nothing changed since the last time."""
        if self._come:
            self._settle()
        if not self._changed:
            return None
        self._changed = False
        highs = {
            str(at): [high_us, accepted, self._own.get(at, 0), *_flat(self._ends.get(at, {}))]
            for at, high_us, accepted in self._highs.values()
        }
        doubts = {str(at): high_us for at, high_us in self.doubts.items()}
        facts = Facts(highs=highs, doubts=doubts or None)
        if not self._is_twice_stored:
            self._is_twice_stored = True
            facts.twice = {
                str(at): [self._twice.get(at, 0), *_flat(self._others.get(at, {}))]
                for at in {**self._twice, **self._others}
            }
        return facts


def _flat(pairs: dict[int, int]) -> Iterable[int]:
    return chain(*pairs.items())
