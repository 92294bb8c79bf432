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
from typing import Any, NamedTuple, Self

from crdts.incremental import IncrementalSet, MovedToken, Shadow, need_write
from crdts.lattice import Lattice
from crdts.mutator import mutator
from crdts.plain import COLUMN_INTEGERS, need_int, need_tuple, need_value, outranks
from crdts.replica import NOBODY, SEQS, Replica
from crdts.samples import HeldSample, Sample, columns_of, items_of, need_time


class Limits(NamedTuple):
    """How much is kept; 0 is no limit of that sort. The greater `control_version` wins."""

    control_version: int
    bound: int
    max_age_us: int


class BoundedLWWSet(Shadow, IncrementalSet):  # noqa: PLW1641  # Lattice has taken the hash
    """The last `bound` samples of one writer, and of those the ones accepted in `max_age_s`.

    `items` is seq -> sample, in any order; `lo` and `hi` are of the replica that wrote last.
    """

    __slots__ = ("hi", "items", "limits", "lo", "replica")

    limits: Limits
    replica: Replica
    lo: int
    hi: int
    items: dict[int, HeldSample]

    def __init__(self, bound: int | None = None, max_age_s: float | None = None) -> None:
        self.limits = _need_limits(0, bound, max_age_s)
        self.replica = NOBODY
        self.lo = self.hi = 0
        self.items = {}

    def _part(
        self, replica: Replica, lo: int, hi: int, items: dict[int, HeldSample] | None = None
    ) -> Self:
        part = object.__new__(type(self))
        part.limits = self.limits
        part.replica = replica
        part.lo = lo
        part.hi = hi
        part.items = {} if items is None else items
        return part

    @property
    def bound(self) -> int | None:
        """How many samples are kept; None is no such limit."""
        return self.limits.bound or None

    @property
    def max_age_s(self) -> float | None:
        """How long after its acceptance a sample is kept; None is no such limit."""
        return self.limits.max_age_us / 1_000_000 or None

    @property
    def control_version(self) -> int:
        """The version of the limits."""
        return self.limits.control_version

    @property
    def complete(self) -> bool:
        """Whether every sample above `lo` is here, so that the state may be folded."""
        return len(self.items) == self.hi - self.lo

    def __len__(self) -> int:
        return len(self.items)

    def samples(self) -> list[HeldSample]:
        """Return the samples as (time_us, value, accepted_us), oldest (least seq) first."""
        items = self.items
        return [items[seq] for seq in sorted(items)]

    def values(self) -> list[Any]:
        """Return the samples' values, oldest (least seq) first."""
        return [value for _, value, _ in self.samples()]

    @property
    def value(self) -> tuple[Any, ...]:
        """The samples' values, oldest first."""
        return tuple(self.values())

    def bottom(self) -> Self:
        return self._part(NOBODY, 0, 0)

    @mutator
    def add(
        self, replica: Replica, value: Any, time_us: int, accepted_us: int | None = None
    ) -> Self:
        """Return the delta in which `replica` adds a sample and drops those beyond the limits.

        Args:
            replica: The writer. A new one first adopts what the earlier one kept.
            value: A plain value.
            time_us: The sample's own time, which places it nowhere in this set.
            accepted_us: When the writer took it; None is at `time_us`. Kept for `max_age_s` alone.

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

        The samples are numbered anew without gaps, so a missing one is not waited for any more.

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
        """Return the delta that drops what was accepted longer than `max_age_s` before `now_us`."""
        if not self.limits.max_age_us:
            return self.bottom()
        lo = self._aged_out(self.lo, self.hi, now_us, {})
        return self._part(self.replica, lo, lo) if lo > self.lo else self.bottom()

    def _aged_out(self, lo: int, hi: int, now_us: int, fresh: dict[int, HeldSample]) -> int:
        """Return `lo` raised past what is too old at `now_us`; `fresh` is not joined yet."""
        oldest_us = now_us - self.limits.max_age_us
        while lo < hi:
            sample = fresh.get(lo + 1) or self.items.get(lo + 1)
            if sample is not None and sample[2] >= oldest_us:
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
        limits = _need_limits(control_version, bound, max_age_s)
        lo = self.hi - limits.bound if limits.bound else 0
        delta = self._part(self.replica, lo, lo) if lo > self.lo else self.bottom()
        delta.limits = limits
        return delta

    def join_changes(self, delta: Self) -> tuple[list[HeldSample], list[HeldSample]]:
        """Join `delta` in place; return the samples that came and those that went, oldest first."""
        self.limits = max(self.limits, delta.limits)
        if delta.replica != self.replica:
            if delta.replica < self.replica:
                return [], []
            gone = self.samples()
            self.replica, self.lo, self.hi = delta.replica, delta.lo, delta.hi
            self.items = dict(delta.items)
            return self.samples(), gone
        gone = self._forget(delta.lo) if delta.lo > self.lo else []
        self.hi = max(self.hi, delta.hi)
        come = []
        items = self.items
        for seq in sorted(delta.items):
            sample = delta.items[seq]
            if seq > self.lo and _is_news(sample, items.get(seq)):
                if seq in items:
                    gone.append(items[seq])
                items[seq] = sample
                come.append(sample)
        return come, gone

    def _forget(self, lo: int) -> list[HeldSample]:
        items = self.items
        below: Sequence[int] = range(self.lo + 1, lo + 1)
        if len(below) > len(items):
            below = sorted(seq for seq in items if seq <= lo)
        self.lo = lo
        return [items.pop(seq) for seq in below if seq in items]

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

    def is_like(self, other: Lattice) -> bool:
        return type(other) is type(self)  # the limits are part of what is joined

    def __ior__(self, other: Self) -> Self:
        self.join_changes(other)
        return self

    def __le__(self, other: Self) -> bool:
        if self.limits > other.limits or self.replica != other.replica:
            return self.limits <= other.limits and self.replica < other.replica
        known = self.lo <= other.lo and self.hi <= other.hi
        return known and not self._news_to(other)

    def __sub__(self, other: Self) -> Self:
        if self.limits > other.limits or self.replica > other.replica:
            return self.copy()  # every part of this state carries the news
        if self.replica < other.replica:
            return self.bottom()
        items = self._news_to(other)
        lo = self.lo if self.lo > other.lo else 0
        hi = self.hi if self.hi > other.hi else max(items, default=lo)
        delta = self._part(self.replica, lo, hi, items)
        return delta if hi else self.bottom()

    def _news_to(self, other: Self) -> dict[int, HeldSample]:
        return {
            seq: sample
            for seq, sample in self.items.items()
            if seq > other.lo and _is_news(sample, other.items.get(seq))
        }

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BoundedLWWSet)
            and (self.replica, self.lo, self.hi) == (other.replica, other.lo, other.hi)
            and self.limits == other.limits
            and self.items == other.items
        )

    def __repr__(self) -> str:
        return (
            f"BoundedLWWSet({self.limits}, {self.replica}, "
            f"lo={self.lo}, hi={self.hi}, items={dict(sorted(self.items.items()))})"
        )

    def irreducibles(self) -> Iterator[Self]:
        for seq in sorted(self.items):
            yield self._part(self.replica, 0, seq, {seq: self.items[seq]})
        if self.lo:
            yield self._part(self.replica, self.lo, self.lo)
        said = self.lo if self.lo == self.hi else max(self.items, default=0)
        if self.hi > said or (self.hi == 0 and self.replica > NOBODY):
            yield self._part(self.replica, 0, self.hi)

    def to_plain(self) -> tuple[Any, ...]:
        columns = columns_of(self.items, complete=self.complete)
        return *self.limits, *self.replica, self.lo, self.hi, *columns

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        parts = need_tuple(plain, "a bounded set", 13)
        limits, (incarnation, nonce, device), (lo, hi) = parts[:3], parts[3:6], parts[6:8]
        state = object.__new__(cls)
        state.limits = _need_limits_us(*limits)
        state.replica = NOBODY if device == "" else Replica.checked(incarnation, nonce, device)
        state.lo = need_int(lo, "lo", below=SEQS)
        state.hi = need_int(hi, "hi", least=state.lo, below=SEQS)
        state.items = items_of(state.lo, state.hi, parts[8:])
        return state


def _is_news(sample: HeldSample, known: HeldSample | None) -> bool:
    # One writer gives a number to one sample; two samples mean that the device was cloned.
    return known is None or outranks(sample, known)


def _need_limits(control_version: int, bound: int | None, max_age_s: float | None) -> Limits:
    max_age_us = 0 if max_age_s is None else round(max_age_s * 1_000_000)
    if (bound is not None and bound < 1) or (max_age_s is not None and max_age_us < 1):
        raise ValueError(f"a bounded set needs positive limits, got {bound} and {max_age_s} s")
    return _need_limits_us(control_version, bound or 0, max_age_us)


def _need_limits_us(control_version: Any, bound: Any, max_age_us: Any) -> Limits:
    limits = Limits(
        need_int(control_version, "a control version"),
        need_int(bound, "a bound", below=SEQS),
        need_int(max_age_us, "an age", below=COLUMN_INTEGERS),
    )
    if not limits.bound and not limits.max_age_us:
        raise ValueError("a bounded set needs a bound, a max_age_s or both, got neither")
    return limits
