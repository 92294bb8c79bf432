"""Causal context: every dot that was ever received, in a few bytes.

A state that knows which writes it has received needs no tombstones: what is in the context and not
in the state was removed. Replicas number their dots without gaps, so a context is mostly a
**vector** (replica -> n: all of 1 .. n); the **cloud** holds the dots beyond, until the gap before
them closes.

A context is a set of dots and nothing else. That of a delta holds the delta's own dots: with its
sender's whole vector instead, a receiver would take every write that it has not got yet for
removed.

In memory a dot is one integer, `replica's index << 40 | seq`; indices are those of this process and
never leave it. On the wire a context is device -> (incarnation, nonce, runs), where runs are (gap,
length, ...): `(0, 57)` is 1 .. 57, `(56, 1)` is 57 alone.

Cost: some 12 B a replica, on the wire, and 1 to 6 B more for every gap; it grows with the number of
process starts, not with the number of writes.

>>> from crdts import Replica
>>> me = Replica(1, 7, "kitchen")
>>> one, two, three = (pack(me, seq) for seq in (1, 2, 3))
>>> context = CausalContext.of([one, three])
>>> one in context, two in context, len(context.cloud)
(True, False, 1)
>>> context |= CausalContext.of([two])
>>> len(context.cloud), context.to_plain()
(0, {'kitchen': (1, 7, (0, 3))})

Source: Paulo Sérgio Almeida, Ali Shoker, Carlos Baquero, "Delta State Replicated Data Types", JPDC
111, 2018, section 7; Dahlia Malkhi, Doug Terry, "Concise Version Vectors in WinFS", DISC 2005.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from crdts.plain import need_int, need_tuple
from crdts.replica import SEQS, Dot, Replica, by_device, from_devices

SEQ_BITS = SEQS.bit_length() - 1
SEQ_MASK = SEQS - 1
MAX_CLOUD = 1 << 18  # dots that a peer may have us list: a few bytes could ask for any number

_replicas: list[Replica] = []
_indices: dict[Replica, int] = {}


def index_of(replica: Replica) -> int:
    """Return the number that stands for `replica` in the dots of this process."""
    index = _indices.get(replica)
    if index is None:
        index = _indices[replica] = len(_replicas)
        _replicas.append(replica)
    return index


def pack(replica: Replica, seq: int) -> int:
    """Return the dot as one integer."""
    return index_of(replica) << SEQ_BITS | seq


def unpack(dot: int) -> Dot:
    """Return the dot that `pack` was given."""
    return Dot(_replicas[dot >> SEQ_BITS], dot & SEQ_MASK)


def in_order(dots: Iterable[int]) -> list[int]:
    """Return `dots` by device, replica and seq: the same order in every process."""
    ordered = sorted(dots)
    indices = {dot >> SEQ_BITS for dot in ordered}
    if len(indices) > 1:
        by_name = sorted(indices, key=lambda index: (_replicas[index].device, _replicas[index]))
        rank = {index: at for at, index in enumerate(by_name)}
        ordered.sort(key=lambda dot: rank[dot >> SEQ_BITS])
    return ordered


@dataclass(slots=True)
class CausalContext:
    """A set of dots: `vector` is index -> n for the dots 1 .. n, `cloud` has those beyond a gap.

    >>> from crdts import ORSet, Replica
    >>> kitchen = Replica(1, 7, "kitchen")
    >>> seen = ORSet().add(kitchen, "attic")
    >>> seen |= seen.remove(kitchen, "attic")
    >>> seen.value, seen.context.to_plain()  # the write is known, and what it added is gone
    (frozenset(), {'kitchen': (1, 7, (0, 1))})
    """

    vector: dict[int, int] = field(default_factory=dict)
    cloud: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, dots: Collection[int]) -> Self:
        """Return the context of these dots."""
        context = cls({}, set(dots))
        for dot in dots:
            if dot & SEQ_MASK == 1:
                context._close_gap(dot >> SEQ_BITS)
        return context

    def copy(self) -> Self:
        """Return an equal context that shares nothing with this one."""
        return type(self)(self.vector.copy(), self.cloud.copy())

    def restricted(self, device: str) -> Self:
        """Return the dots of one device's replicas."""
        vector = {at: n for at, n in self.vector.items() if _replicas[at].device == device}
        cloud = {dot for dot in self.cloud if _replicas[dot >> SEQ_BITS].device == device}
        return type(self)(vector, cloud)

    @classmethod
    def between(cls, first: int, last: int) -> Self:
        """Return the context of the dots from `first` to `last`, which are of one replica."""
        if first & SEQ_MASK == 1:
            return cls({first >> SEQ_BITS: last & SEQ_MASK}, set())
        return cls({}, set(range(first, last + 1)))

    def __contains__(self, dot: int) -> bool:
        return dot & SEQ_MASK <= self.vector.get(dot >> SEQ_BITS, 0) or dot in self.cloud

    def __len__(self) -> int:
        return sum(self.vector.values()) + len(self.cloud)

    def __iter__(self) -> Iterator[int]:
        for index, n in self.vector.items():
            yield from range((index << SEQ_BITS) + 1, (index << SEQ_BITS) + n + 1)
        yield from self.cloud

    def next_dot(self, replica: Replica) -> int:
        """Return the dot of `replica`'s next write."""
        index = index_of(replica)
        dot = (index << SEQ_BITS) + self.vector.get(index, 0) + 1
        while dot in self.cloud:
            dot += 1
        return dot

    def next_dots(self, replica: Replica) -> int:
        """Return the first of `replica`'s dots from which on all are free, also beyond gaps."""
        index = index_of(replica)
        beyond = (dot for dot in self.cloud if dot >> SEQ_BITS == index)
        return max(beyond, default=(index << SEQ_BITS) + self.vector.get(index, 0)) + 1

    def __ior__(self, other: Self) -> Self:
        vector, cloud = self.vector, self.cloud
        for index, n in other.vector.items():
            if n > vector.get(index, 0):
                vector[index] = n
                if cloud:
                    self._close_gap(index)
        for dot in other.cloud:
            index = dot >> SEQ_BITS
            beyond = (dot & SEQ_MASK) - vector.get(index, 0)
            if beyond == 1:
                vector[index] = dot & SEQ_MASK
                if cloud:
                    self._close_gap(index)
            elif beyond > 0:
                cloud.add(dot)
        return self

    def _close_gap(self, index: int) -> None:
        """Move dots that follow on the vector from the cloud into it; drop those that it covers."""
        first = index << SEQ_BITS
        n = self.vector.get(index, 0)
        while first + n + 1 in self.cloud:
            n += 1
        self.vector[index] = n
        covered = range(first + 1, first + n + 1)
        if len(covered) > len(self.cloud):
            self.cloud.difference_update([dot for dot in self.cloud if dot in covered])
        else:
            self.cloud.difference_update(covered)

    def __le__(self, other: Self) -> bool:
        known = other.vector
        return all(n <= known.get(index, 0) for index, n in self.vector.items()) and all(
            dot in other for dot in self.cloud
        )

    def beyond(self, other: Self) -> Iterator[int]:
        """Yield the dots of this context that `other` lacks, in O(what it lacks)."""
        for index, n in self.vector.items():
            first = index << SEQ_BITS
            for dot in range(first + other.vector.get(index, 0) + 1, first + n + 1):
                if dot not in other.cloud:
                    yield dot
        yield from (dot for dot in self.cloud if dot not in other)

    def ahead(self, other: Self) -> int:
        """Return by how many dots this vector is beyond that of `other`, in O(replicas)."""
        known = other.vector
        return sum([max(0, n - known.get(index, 0)) for index, n in self.vector.items()])

    def among(self, dots: Collection[int]) -> list[int]:
        """Return those of `dots` (a set, or keys) that are in this context, in O(the lesser)."""
        if len(self) < len(dots):
            return [dot for dot in self if dot in dots]
        upto, cloud = self.vector.get, self.cloud  # `dot in self`, without a call for each
        return [dot for dot in dots if dot & SEQ_MASK <= upto(dot >> SEQ_BITS, 0) or dot in cloud]

    def bounds(self, near: Self | None = None) -> Iterator[tuple[Replica, int]]:
        """Yield of each replica up to which seq there is no gap, and -seq of each dot beyond it.

        Args:
            near: only the replicas that it has dots of; None for all.
        """
        beside = None if near is None else near.vector.keys() | {d >> SEQ_BITS for d in near.cloud}
        for index in self.vector if beside is None else self.vector.keys() & beside:
            if self.vector[index]:
                yield _replicas[index], self.vector[index]
        for dot in self.cloud:
            if beside is None or dot >> SEQ_BITS in beside:
                yield _replicas[dot >> SEQ_BITS], -(dot & SEQ_MASK)

    def to_plain(self) -> dict[str, tuple[Any, ...]]:
        """Return device -> (incarnation, nonce, runs, ...)."""
        runs = {_replicas[index]: [0, n] for index, n in self.vector.items() if n}
        return _by_device(runs, self.cloud)

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        """Return the context that `to_plain` gave.

        Raises:
            ValueError: `plain` came from a peer and is not the plain form of a context.
        """
        context = cls()
        for replica, (runs,) in from_devices(plain, "a context", width=1).items():
            for start, end in _bounds(runs):
                if start == 1:
                    context.vector[index_of(replica)] = end - 1
                elif len(context.cloud) + end - start > MAX_CLOUD:
                    raise ValueError(f"a context needs at most {MAX_CLOUD} dots beyond gaps")
                else:
                    context.cloud.update(range(pack(replica, start), pack(replica, end)))
        return context


def dots_to_plain(dots: Iterable[int]) -> dict[str, tuple[Any, ...]]:
    """Return these dots in the form of a context."""
    return _by_device({}, dots)


def dots_from_plain(plain: Any, count: int) -> list[int]:
    """Return the `count` dots that `dots_to_plain` was given, in order.

    Raises:
        ValueError: `plain` came from a peer and is not the plain form of `count` dots.
    """
    dots: list[int] = []
    for replica, (runs,) in from_devices(plain, "a set of dots", width=1).items():
        for start, end in _bounds(runs):
            if len(dots) + end - start > count:
                raise ValueError(f"a state needs {count} dots, got more")
            dots.extend(range(pack(replica, start), pack(replica, end)))
    if len(dots) != count:
        raise ValueError(f"a state needs {count} dots, got {len(dots)}")
    return dots


def _by_device(runs: dict[Replica, list[int]], dots: Iterable[int]) -> dict[str, tuple[Any, ...]]:
    """Add `dots` to `runs` (each the gaps and lengths of one replica) and return the plain form."""
    ends = {replica: n for replica, (_, n) in runs.items()}
    for dot in in_order(dots):
        replica, seq = unpack(dot)
        run = runs.setdefault(replica, [])
        gap = seq - ends.get(replica, 0) - 1
        if run and not gap:
            run[-1] += 1
        else:
            run += [gap, 1]
        ends[replica] = seq
    return by_device({replica: (tuple(run),) for replica, run in runs.items()})


def _bounds(runs: Any) -> Iterator[tuple[int, int]]:
    """Yield each run as its first seq and the one after its last."""
    end = 1
    flat = need_tuple(runs, "runs")
    if not flat or len(flat) % 2:
        raise ValueError(f"runs need gaps and lengths in pairs, got {len(flat)} integers")
    for gap, length in zip(flat[::2], flat[1::2], strict=True):
        start = end + need_int(gap, "a gap", below=SEQS)
        end = start + need_int(length, "a length", least=1, below=SEQS)
        need_int(end - 1, "a seq", below=SEQS)
        yield start, end
