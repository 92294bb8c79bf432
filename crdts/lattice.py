"""A lattice: states that only grow, and that any two replicas can always join.

Replicas write without asking each other and exchange what they have, in any order, as often as they
like. They agree as soon as each has received everything, if their states form a *join-semilattice*:

- `a | b`, the **join**, is the least state that knows all of `a` and all of `b`. It is
  associative, commutative and idempotent, so regrouped, reordered and repeated messages are
  harmless, and a lost one is healed by any later one that includes it.
- `a <= b`, the **order**: `b` already knows everything in `a`: `a | b == b`.
- `a.bottom()` is the least state; joining it changes nothing.
- `a.irreducibles()` are the smallest parts of a state: none is the join of lesser states, together
  they join to the state, and none can be left out.
- `b | (a - b) == a | b`, and nothing in `a - b` is known to `b`: the **delta** `a - b` is the least
  message that brings `b` up to date.
- `b.digest()` tells in bounded bytes what `b` knows: `b | a.delta_against(b.digest()) == a | b`.
- `a.pieces(n)` are states of some `n` bytes that join to `a`, so that any state fits into messages.
- `a.restricted(device)` is what only writes of `device` can have brought into `a`; restriction and
  join commute.

A type defines `|=`, `irreducibles`, `==` (which a dataclass has, and which is exact because states
are kept canonical) and its plain form. The rest is derived here, and is the oracle for every type
that overrides it with something faster.

States are mutable: `a |= delta` joins in place and costs what the delta costs, `a | b` is a new
value that shares nothing with either. So they are not hashable. Mutators change nothing: they
return a delta, which the caller joins.

>>> from crdts import GCounter, Replica
>>> kitchen, cellar = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> here, there = GCounter(), GCounter()
>>> here |= here.increment(kitchen, 2)
>>> there |= there.increment(cellar, 5)
>>> (here | there).value
7
>>> here - there <= here, here <= there
(True, False)
>>> there |= here - there
>>> here <= there
True

Source: Marc Shapiro, Nuno Preguiça, Carlos Baquero, Marek Zawirski, "Conflict-free Replicated Data
Types", SSS 2011. Vitor Enes, Paulo Sérgio Almeida, Carlos Baquero, João Leitão, "Efficient
Synchronization of State-based CRDTs", ICDE 2019, section III (irreducibles, minimal deltas).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final, Self

from crdts.plain import INTEGERS, encoded, need_column, need_int, need_tuple

MOST_SUMS: Final = 256
"""Numbers in a digest, at most: of 10,000 irreducibles 40 share one, and are sent together."""


class Lattice(ABC):
    """A state that only grows. A type defines the five abstract members; the rest follows.

    >>> from crdts import GCounter, Replica
    >>> here, there = GCounter(), GCounter()
    >>> here |= here.increment(Replica(1, 7, "kitchen"), 2)
    >>> there |= there.increment(Replica(1, 9, "cellar"), 5)
    >>> (here | there).value, here <= there
    (7, False)
    >>> there |= here - there  # the delta: what `there` lacks
    >>> here <= there
    True
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # a state that can change has no hash

    @abstractmethod
    def __ior__(self, other: Self) -> Self:
        """Join `other` into this state, in place, sharing nothing with it."""

    @abstractmethod
    def irreducibles(self) -> Iterator[Self]:
        """Yield the smallest parts of this state, in an order that equal states share."""

    @property
    @abstractmethod
    def value(self) -> Any:
        """What the state means to a reader."""

    @abstractmethod
    def to_plain(self) -> Any:
        """Return the state as plain data and states, in canonical order (see `crdts.wire`)."""

    @classmethod
    @abstractmethod
    def from_plain(cls, plain: Any) -> Self:
        """Return the state that `to_plain` gave.

        Raises:
            ValueError: `plain` came from a peer and is not the plain form of such a state.
        """

    def bottom(self) -> Self:
        """Return the least state of this kind; it keeps configuration, such as a bound."""
        return type(self)()

    def is_like(self, other: "Lattice") -> bool:
        """Return whether the two can be joined: of one type, and with one configuration."""
        return type(other) is type(self) and other.bottom() == self.bottom()

    def copy(self) -> Self:
        """Return an equal state that shares nothing with this one."""
        copied = self.bottom()
        copied |= self
        return copied

    def __or__(self, other: Self) -> Self:
        """Return the least state that knows all of `self` and all of `other`."""
        joined = self.copy()
        joined |= other
        return joined

    def __le__(self, other: Self) -> bool:
        """Return whether `other` already knows everything in `self`."""
        return self | other == other

    def __lt__(self, other: Self) -> bool:
        """Return whether `other` knows everything in `self`, and more."""
        return self <= other and self != other

    def __sub__(self, other: Self) -> Self:
        """Return the least state that brings `other` up to `self | other`."""
        return self._joined(part for part in self.irreducibles() if not part <= other)

    def _joined(self, parts: Iterable[Self]) -> Self:
        joined = self.bottom()
        for part in parts:
            joined |= part
        return joined

    def restricted(self, device: str) -> Self:  # noqa: ARG002 - nobody's name is in most states
        """Return the join of the irreducibles that only a write of `device` can have made.

        Where a state does not say who wrote it, that is bottom.
        """
        return self.bottom()

    def pieces(self, most_bytes: int) -> Iterator[Self]:
        """Yield states that join to this one, of about `most_bytes` encoded bytes at most.

        An irreducible is never cut, so a piece that is one may be larger.
        """
        piece, size = self.bottom(), 0
        for part in self.irreducibles():
            needed = len(encoded(part))
            if size and size + needed > most_bytes:
                yield piece
                piece, size = self.bottom(), 0
            piece |= part
            size += needed
        if size:
            yield piece

    def digest(self) -> tuple[Any, ...]:
        """Return a summary of the state for a peer, as plain data: 9 B an irreducible.

        Of more than `MOST_SUMS` irreducibles it is the sums of as many groups of them: a peer that
        lacks one is sent its group. So it takes 2.3 kB at most.
        """
        prints = sorted(part.fingerprint() for part in self.irreducibles())
        return (0, tuple(prints)) if len(prints) <= MOST_SUMS else (MOST_SUMS, _sums(prints))

    def delta_against(self, digest: Any) -> Self:
        """Return a delta that brings the state that gave `digest` up to this one.

        Raises:
            ValueError: `digest` came from a peer and is not the digest of such a state.
        """
        groups, column = need_tuple(digest, "a digest", 2)
        parts = [(part.fingerprint(), part) for part in self.irreducibles()]
        if groups == 0:
            known = set(need_column(column, "a digest"))
            return self._joined(part for at, part in parts if at not in known)
        theirs = need_column(column, "a digest", need_int(groups, "groups", below=MOST_SUMS + 1))
        ours = _sums([at for at, _ in parts])
        if len(theirs) != len(ours):
            raise ValueError(f"a digest needs {MOST_SUMS} sums, got {len(theirs)}")
        return self._joined(part for at, part in parts if ours[at % groups] != theirs[at % groups])

    def marks(self, near: Self | None = None) -> Iterator[bytes]:  # noqa: ARG002 - see below
        """Yield texts that, in any order, tell this state from any other (see `crdts.tally`).

        Args:
            near: a delta; only the marks that joining it may change, or has changed, are yielded.
                Here that is the only mark, of the whole state.
        """
        yield encoded(self)

    def fingerprint(self) -> int:
        """Return 63 bits that tell this state from any other."""
        return int.from_bytes(sha256(encoded(self)).digest()[:8]) >> 1


def _sums(prints: Iterable[int]) -> tuple[int, ...]:
    """Return the sums of the fingerprints of each group, modulo 2**63."""
    sums = [0] * MOST_SUMS
    for each in prints:
        sums[each % MOST_SUMS] += each
    return tuple([total % INTEGERS for total in sums])
