"""The state of a bounded set: the samples `lo < seq <= hi` of the writer that wrote last.

Join, order, delta and wire form, as `crdts.bounded_lww_set` states them. How a writer adds and
drops samples, and how a reader learns of them, is there too.

On the wire samples are columns. Times are packed as second differences and integers as differences,
so samples at a steady pace need two bytes each.

>>> columns = columns_of({1: (100, 7, 100), 2: (200, 8, 200)}, complete=True)
>>> columns
(None, (100, 0), None, True, (7, 1))
>>> items_of(0, 2, columns)
{1: (100, 7, 100), 2: (200, 8, 200)}
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import index
from typing import Any, NamedTuple, Self, SupportsIndex

from crdts.lattice import Lattice
from crdts.plain import (
    COLUMN_INTEGERS,
    differences,
    need_column,
    need_int,
    need_tuple,
    need_value,
    outranks,
    sums,
)
from crdts.replica import NOBODY, SEQS, Replica

HeldSample = tuple[int, Any, int]
"""(time_us, value, accepted_us), as a set holds it: a plain tuple, since it is made often."""


class Sample(NamedTuple):
    """A sample as an element of its set; `seq` tells equal ones apart.

    >>> from crdts import BoundedLWWSet, Replica
    >>> last = BoundedLWWSet(bound=2)
    >>> for time_us, value in ((10, 21), (20, 22), (30, 22)):
    ...     last |= last.add(Replica(1, 7, "kitchen"), value, time_us)
    >>> [(sample.time_us, sample.value) for _, sample in last.tokens()]
    [(20, 22), (30, 22)]
    """

    seq: int
    time_us: int
    value: Any


def need_time(number: Any) -> int:
    """Return `number` if it is a time whose second differences have 64 bits.

    Raises:
        ValueError: it is something else.
    """
    return need_int(number, "a time in µs", least=-COLUMN_INTEGERS, below=COLUMN_INTEGERS)


class WindowLimits(NamedTuple):
    """How much is kept; 0 means without limit. The greater `control_version` wins."""

    control_version: int
    bound: int
    max_age_us: int


class BoundedState(Lattice):  # noqa: PLW1641  # Lattice has taken the hash
    """The samples of one writer, numbered; some may be missing.

    `items` is seq -> sample, in any order; `lo` and `hi` are of the replica that wrote last.
    `given` is the bound as somebody wrote it, for whoever declares a variable with this state: a
    number, or what stands for one. A state that was made from another one has none.
    """

    __slots__ = ("given", "hi", "items", "limits", "lo", "replica")

    given: SupportsIndex | None
    limits: WindowLimits
    replica: Replica
    lo: int
    hi: int
    items: dict[int, HeldSample]

    def __init__(self, bound: SupportsIndex | None = None, max_age_s: float | None = None) -> None:
        self.given = bound
        if bound is not None and not isinstance(bound, int | float):
            if not hasattr(bound, "__index__"):
                raise ValueError(f"a bounded set needs a number, such as bound=5, not {bound!r}")
            bound = index(bound)
        self.limits = need_limits(0, bound, max_age_s)
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

    def bottom(self) -> Self:
        return self._part(NOBODY, 0, 0)

    @property
    def complete(self) -> bool:
        """Whether every sample above `lo` is here, so that the state may be folded."""
        return len(self.items) == self.hi - self.lo

    def __len__(self) -> int:
        return len(self.items)

    def samples(self) -> list[HeldSample]:
        """Return the samples as (time_us, value, accepted_us), oldest (least seq) first."""
        items = self.items
        return list(map(items.__getitem__, sorted(items)))

    def join_changes(self, delta: Self) -> tuple[list[HeldSample], list[HeldSample]]:
        """Join `delta` in place; return the added and the removed samples, oldest first."""
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
            isinstance(other, BoundedState)
            and (self.replica, self.lo, self.hi) == (other.replica, other.lo, other.hi)
            and self.limits == other.limits
            and self.items == other.items
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.limits}, {self.replica}, "
            f"lo={self.lo}, hi={self.hi}, items={dict(sorted(self.items.items()))})"
        )

    def irreducibles(self) -> Iterator[Self]:
        for seq in sorted(self.items):
            yield self._part(self.replica, 0, seq, {seq: self.items[seq]})
        if self.lo:
            yield self._part(self.replica, self.lo, self.lo)
        implied = self.lo if self.lo == self.hi else max(self.items, default=0)
        if self.hi > implied or (self.hi == 0 and self.replica > NOBODY):
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


def need_limits(control_version: int, bound: int | None, max_age_s: float | None) -> WindowLimits:
    """Return limits as they are stored.

    Raises:
        ValueError: a limit is not positive, or neither is given.
    """
    max_age_us = 0 if max_age_s is None else round(max_age_s * 1_000_000)
    if (bound is not None and bound < 1) or (max_age_s is not None and max_age_us < 1):
        raise ValueError(
            f"a bounded set needs limits above 0, not bound={bound!r} and max_age_s={max_age_s!r}"
        )
    return _need_limits_us(control_version, bound or 0, max_age_us)


def _need_limits_us(control_version: Any, bound: Any, max_age_us: Any) -> WindowLimits:
    limits = WindowLimits(
        need_int(control_version, "a control version"),
        need_int(bound, "a bound", below=SEQS),
        need_int(max_age_us, "an age", below=COLUMN_INTEGERS),
    )
    if not limits.bound and not limits.max_age_us:
        raise ValueError("a bounded set needs a bound, a max_age_s or both, got neither")
    return limits


def columns_of(items: Mapping[int, HeldSample], *, complete: bool) -> tuple[Any, ...]:
    """Return samples by seq as columns: seqs, times, delays, whether all are integers, values.

    Where they are `complete` no seq is missing, so that none need be written.
    """
    seqs = sorted(items)
    samples = [items[seq] for seq in seqs]
    times = [time_us for time_us, _, _ in samples]
    delays = [accepted_us - time_us for time_us, _, accepted_us in samples]
    values = tuple(value for _, value, _ in samples)
    numbers = all(type(value) is int and abs(value) < COLUMN_INTEGERS for value in values)
    return (
        None if complete else differences(seqs),
        differences(differences(times)),
        differences(delays) if any(delays) else None,
        numbers,
        differences(values) if numbers else values,
    )


def items_of(lo: int, hi: int, columns: Sequence[Any]) -> dict[int, HeldSample]:
    """Return what `columns_of` was given, of which every seq is above `lo` and at most `hi`.

    Raises:
        ValueError: `columns` came from a peer and are not such columns.
    """
    seqs, times, delays, numbers, values = columns
    times = sums(sums(need_column(times, "the times")))
    size = len(times)
    delays = (0,) * size if delays is None else sums(need_column(delays, "the delays", size))
    if numbers:
        values = sums(need_column(values, "the values", size))
    else:
        values = tuple(map(need_value, need_tuple(values, "the values", size)))
    numbered = range(lo + 1, hi + 1) if seqs is None else sums(need_column(seqs, "the seqs"))
    if len(numbered) != size or any(seq <= lo or seq > hi for seq in numbered):
        raise ValueError(f"{size} samples need as many numbers from {lo + 1} to {hi}")
    stamps = tuple(time_us + delay for time_us, delay in zip(times, delays, strict=True))
    for column in (times, stamps, values if numbers else ()):
        for number in column:
            need_time(number)
    return dict(zip(numbered, zip(times, values, stamps, strict=True), strict=True))
