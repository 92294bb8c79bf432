"""BoundedLWWSet: the last samples of one writer, limited by number, by age or by both.

The writer numbers its samples. A state holds those with `lo < seq <= hi`; when one too many is
there or the oldest is too old, the writer raises `lo`. So `lo` is the tombstone of everything that
ever was below it: one integer, where the talk's set kept a growing heap of removed samples.

- *Last* means last accepted by the writer: order is by its numbers, never by a clock. Age counts
  from the acceptance stamp, since a sample's own time may be as late or as early as it likes.
- Join: the greater replica replaces the lesser one's state whole (its writer adopted what it kept);
  of one replica, `lo` and `hi` are the greater ones, and samples above `lo` come from both sides.
- A state is **complete** if it holds all `hi - lo` samples. An incomplete one (some delta has not
  arrived) is joined like any other, but must not be folded: it would be a window with a hole.
- The limits are configuration with a control version of its own; the greater version wins. A reader
  that learns of a smaller bound drops nothing: the writer does, by raising `lo`.

Cost: 2 to 9 B a sample on the wire (times are packed as second differences and integer values as
differences, so a steady 1 Hz needs 2 B) and some 200 B in memory, for at most `bound` samples,
beside some 40 B in all. Nothing grows: not with time, not with process starts.

>>> from crdts import BoundedLWWSet, Replica
>>> me = Replica(1, 7, "kitchen")
>>> samples = BoundedLWWSet(bound=2)
>>> for value in (1, 2, 3):
...     samples |= samples.add(me, value, time_us=value * 1_000_000)
>>> samples.values(), samples.lo, samples.complete
([2, 3], 1, True)
>>> samples.join_changes(samples.add(me, 4, time_us=4_000_000))
([(4000000, 4, 4000000)], [(2000000, 2, 2000000)])

Source: Christopher Meiklejohn, Seyed Hossein Haeri, Peter Van Roy, "Declarative, Sliding Window
Aggregations for Computations at the Edge", EdgeCom 2016 (the set; slides 56 to 59 of its talk);
Paulo Sérgio Almeida, Ali Shoker, Carlos Baquero, "Delta State Replicated Data Types", JPDC 111,
2018.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Self

from crdts.bounded_state import BoundedState, HeldSample, Sample, need_limits, need_time
from crdts.incremental import IncrementalSet, MovedToken, Shadow, need_write
from crdts.mutator import mutator
from crdts.plain import COLUMN_INTEGERS, need_int, need_value
from crdts.replica import SEQS, Replica


class BoundedLWWSet(BoundedState, Shadow, IncrementalSet):
    """The last `bound` samples of one writer, and of those the ones accepted in `max_age_s`.

    To readers (`crdts.incremental`) a token is (replica, seq). Its element is the sample with its
    number, so that two equal readings are two elements. The set is its own shadow.

    >>> from crdts import BoundedLWWSet, Replica
    >>> last = BoundedLWWSet(bound=2)
    >>> for time_us in (1, 2, 3):
    ...     last |= last.add(Replica(1, 7, "a"), 10 * time_us, time_us)
    >>> last.value
    (20, 30)
    """

    __slots__ = ()

    @property
    def bound(self) -> int | None:
        """How many samples are kept; None means without limit."""
        return self.limits.bound or None

    @property
    def max_age_s(self) -> float | None:
        """How long after its acceptance a sample is kept; None means without limit."""
        return self.limits.max_age_us / 1_000_000 or None

    @property
    def control_version(self) -> int:
        """The version of the limits."""
        return self.limits.control_version

    def values(self) -> list[Any]:
        """Return the samples' values, oldest (least seq) first."""
        return [value for _, value, _ in self.samples()]

    @property
    def value(self) -> tuple[Any, ...]:
        """The samples' values, oldest first."""
        return tuple(self.values())

    @mutator
    def add(
        self, replica: Replica, value: Any, time_us: int, accepted_us: int | None = None
    ) -> Self:
        """Return the delta in which `replica` adds a sample and drops those beyond the limits.

        A new replica first adopts what the earlier one kept. A sample's own time places it nowhere;
        `accepted_us`, by default the same, counts for `max_age_s` alone.

        Raises:
            ValueError: a newer replica has written, or an argument is not as described above.
        """
        return self.add_many(replica, (value,), (time_us,), accepted_us)

    def add_many(
        self,
        replica: Replica,
        values: Sequence[Any],
        times_us: Sequence[int],
        accepted_us: int | None = None,
    ) -> Self:
        """Return the delta of adding these samples one after the other, all accepted together.

        It costs what the last `bound` of them cost, unless there is an age: then, what all cost.

        Raises:
            ValueError: as for `add`, or the columns differ in length.
        """
        if len(values) != len(times_us):
            raise ValueError(
                f"columns need one length, got {len(values)} values, {len(times_us)} times"
            )
        if not values:
            return self.bottom()
        if accepted_us is not None:
            need_time(accepted_us)
        if replica != self.replica:
            adopted = self.adopt(replica)
            return adopted | adopted.add_many(replica, values, times_us, accepted_us)
        bound, max_age_us = self.limits.bound or SEQS, self.limits.max_age_us
        lo, hi = self.lo, self.hi + len(values)
        items: dict[int, HeldSample] = {}
        for seq in range((self.hi if max_age_us else max(self.hi, hi - bound)) + 1, hi + 1):
            at = seq - hi - 1
            time_us = need_time(times_us[at])
            stamp_us = time_us if accepted_us is None or not max_age_us else accepted_us
            items[seq] = (time_us, need_value(values[at]), stamp_us)
            if max_age_us:
                lo = self._aged_out(max(lo, seq - bound), seq, stamp_us, items)
        lo = max(lo, hi - bound)
        kept = {seq: sample for seq, sample in items.items() if seq > lo} if max_age_us else items
        return self._part(replica, lo if lo > self.lo else 0, hi, kept)

    def adopt(self, replica: Replica) -> Self:
        """Return this state under the name of `replica`, a later life of its writer.

        The samples are renumbered without gaps, so a missing one is not waited for any more.

        Raises:
            ValueError: `replica` is not later than the one that wrote last.
        """
        if replica <= self.replica:
            raise ValueError(
                f"an adopting writer needs to be later than {self.replica}, got {replica}"
            )
        lo = self.hi - len(self.items)
        return self._part(replica, lo, self.hi, dict(enumerate(self.samples(), start=lo + 1)))

    def expire(self, now_us: int) -> Self:
        """Return the delta that drops what was accepted longer than `max_age_s` before `now_us`.

        What was accepted longer than that after `now_us` was stamped by a clock that was ahead:
        nobody knows its age, and behind it nothing would ever be too old. It goes, too.
        """
        if not self.limits.max_age_us:
            return self.bottom()
        last_us = now_us + self.limits.max_age_us
        lo = self._aged_out(self.lo, self.hi, now_us, {}, last_us)
        return self._part(self.replica, lo, lo) if lo > self.lo else self.bottom()

    def _aged_out(
        self,
        lo: int,
        hi: int,
        now_us: int,
        fresh: dict[int, HeldSample],
        last_us: int = COLUMN_INTEGERS,
    ) -> int:
        """Return `lo` raised past what is too old at `now_us`, or stamped later than `last_us`.

        `fresh` is not joined yet.
        """
        oldest_us = now_us - self.limits.max_age_us
        while lo < hi:
            sample = fresh.get(lo + 1) or self.items.get(lo + 1)
            if sample is not None and oldest_us <= sample[2] <= last_us:
                break
            lo += 1
        return lo

    def resized(
        self, bound: int | None, control_version: int, max_age_s: float | None = None
    ) -> Self:
        """Return the delta in which the writer takes new limits and drops what is beyond the bound.

        What is beyond the age is dropped by the next `add` or `expire`.

        Raises:
            ValueError: `control_version` is not greater than the present one.
        """
        need_int(control_version, "a control version", least=self.control_version + 1)
        limits = need_limits(control_version, bound, max_age_s)
        lo = self.hi - limits.bound if limits.bound else 0
        delta = self._part(self.replica, lo, lo) if lo > self.lo else self.bottom()
        delta.limits = limits
        return delta

    def join_tokens(self, delta: Self) -> Iterator[MovedToken]:
        before = dict(self._near(delta))
        self.join_changes(delta)
        after = dict(self._near(delta))
        after.update((token, self._at(token)) for token in before if token not in after)
        for token, sample in before.items():
            if sample is not None and sample != after[token]:
                yield token, sample, -1
        for token, sample in after.items():
            if sample is not None and sample != before.get(token):
                yield token, sample, 1

    def _near(self, delta: Self) -> Iterator[tuple[Any, Sample | None]]:
        """Yield all tokens that `delta` can move, with what they stand for now."""
        if self.replica != delta.replica:
            yield from self.tokens()
            return
        aged = range(self.lo + 1, delta.lo + 1)
        kept = aged if len(aged) <= len(self.items) else sorted(self.items)
        for seq in dict.fromkeys((*kept, *sorted(delta.items))):
            yield (self.replica, seq), self._at((self.replica, seq))

    def _at(self, token: tuple[Replica, int]) -> Sample | None:
        replica, seq = token
        held = self.items.get(seq) if replica == self.replica else None
        return None if held is None else Sample(seq, held[0], held[1])

    def tokens(self) -> Iterator[tuple[Any, Any]]:
        return (((self.replica, seq), self._at((self.replica, seq))) for seq in self.items)

    def shadow(self) -> Self:
        return self.copy()

    def live(self) -> Iterator[Any]:
        return ((self.replica, seq) for seq in self.items)

    def is_live(self, token: Any) -> bool:
        return self._at(token) is not None

    @staticmethod
    def token_to_plain(token: Any) -> Any:
        replica, seq = token
        return *replica, seq

    token_from_plain = staticmethod(need_write)
