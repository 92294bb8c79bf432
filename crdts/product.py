"""Product and Pair: several states side by side, joined part by part.

Join, order, bottom and delta are those of the parts, so a type that is made of others writes none
of them. An irreducible is one part's irreducible with every other part at bottom.

A product tears: a delta may carry one part without the others. What is only right together (the
count and total of a mean) belongs into one versioned payload of an `OwnedMap` instead.

Cost: that of the parts, and 1 to 3 B a part on the wire. Nothing grows but the parts.

>>> from crdts import GCounter, Pair, Replica
>>> me = Replica(1, 7, "kitchen")
>>> doors = Pair(GCounter(), GCounter())
>>> doors |= Pair(doors.first.increment(me, 2), doors.second)
>>> doors.value
(2, 0)

Source: Carlos Baquero, Paulo Sérgio Almeida, Alcino Cunha, Carla Ferreira, "Composition in
State-based Replicated Data Types", Bulletin of the EATCS 123, 2017 (product and its irreducibles).
"""

from collections.abc import Iterator
from typing import Any, Generic, Self, TypeVar

from crdts.lattice import Lattice
from crdts.plain import encoded, need_tuple

First = TypeVar("First", bound=Lattice)
Second = TypeVar("Second", bound=Lattice)


class Product(Lattice):  # noqa: PLW1641  # Lattice has taken the hash
    """States side by side. It owns its parts: give it states that nothing else changes.

    >>> from crdts import Max, Min, Product
    >>> (Product(Max(3), Min(3)) | Product(Max(5), Min(5))).value
    (5, 3)
    """

    __slots__ = ("parts",)

    def __init__(self, *parts: Lattice) -> None:
        self.parts = parts

    @property
    def value(self) -> Any:
        """The values of the parts, in their order."""
        return tuple(part.value for part in self.parts)

    @classmethod
    def of(cls, parts: tuple[Lattice, ...]) -> Self:
        """Return the product of `parts`, whatever the constructor of the type asks for."""
        made = cls.__new__(cls)
        made.parts = parts
        return made

    def bottom(self) -> Self:
        return self.of(tuple(part.bottom() for part in self.parts))

    def copy(self) -> Self:
        return self.of(tuple(part.copy() for part in self.parts))

    def __ior__(self, other: Self) -> Self:
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine |= theirs  # noqa: PLW2901  # in place: the part itself has grown
        return self

    def __le__(self, other: Self) -> bool:
        return all(a <= b for a, b in zip(self.parts, other.parts, strict=True))

    def __sub__(self, other: Self) -> Self:
        return self.of(tuple(a - b for a, b in zip(self.parts, other.parts, strict=True)))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.parts == other.parts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.parts))})"

    def marks(self, near: Self | None = None) -> Iterator[bytes]:
        deltas = (None,) * len(self.parts) if near is None else near.parts
        for at, (part, delta) in enumerate(zip(self.parts, deltas, strict=True)):
            place = encoded(at)
            for mark in part.marks(delta):
                yield place + b":" + mark

    def irreducibles(self) -> Iterator[Self]:
        for at, part in enumerate(self.parts):
            for least in part.irreducibles():
                yield self._alone(at, least)

    def _alone(self, at: int, part: Lattice) -> Self:
        """Return the product that has one part and is bottom beside it."""
        beside = self.bottom().parts
        return self.of((*beside[:at], part, *beside[at + 1 :]))

    def restricted(self, device: str) -> Self:
        return self.of(tuple(part.restricted(device) for part in self.parts))

    def pieces(self, most_bytes: int) -> Iterator[Self]:
        for at, part in enumerate(self.parts):
            for piece in part.pieces(most_bytes):
                yield self._alone(at, piece)

    def digest(self) -> tuple[Any, ...]:
        return tuple(part.digest() for part in self.parts)

    def delta_against(self, digest: Any) -> Self:
        digests = need_tuple(digest, "a digest", len(self.parts))
        pairs = zip(self.parts, digests, strict=True)
        return self.of(tuple(part.delta_against(known) for part, known in pairs))

    def to_plain(self) -> tuple[Lattice, ...]:
        return self.parts

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        return cls.of(need_states(plain, "a product"))


class Pair(Product, Generic[First, Second]):
    """Two states side by side.

    >>> from crdts import Max, Min, Pair
    >>> (Pair(Max(3), Min(3)) | Pair(Max(5), Min(5))).value
    (5, 3)
    """

    __slots__ = ()

    def __init__(self, first: First, second: Second) -> None:
        super().__init__(first, second)

    @property
    def first(self) -> First:
        """The left part."""
        return self.parts[0]  # type: ignore[return-value]  # __init__ put a First here

    @property
    def second(self) -> Second:
        """The right part."""
        return self.parts[1]  # type: ignore[return-value]  # __init__ put a Second here

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        return cls.of(need_states(plain, "a pair", Lattice, Lattice))


def need_states(plain: Any, what: str, *kinds: type[Any]) -> tuple[Lattice, ...]:
    """Return `plain` if it is a tuple of states, of these `kinds` where they are given.

    Raises:
        ValueError: it is something else.
    """
    parts = need_tuple(plain, what, len(kinds) or None)
    wanted: tuple[type[Any], ...] = kinds or (Lattice,) * len(parts)
    for part, kind in zip(parts, wanted, strict=True):
        if not isinstance(part, kind):
            given = type(part).__name__
            raise ValueError(f"{what} needs a {kind.__name__}, got {given}")  # a peer sent it
    return parts
