"""GSet: a set that only grows.

The join is the union, and an irreducible is one element: the lattice of which others are
variations.

Cost: an element and nothing more on the wire, 4 to 8 B beside them all, and nothing a replica; the
elements are what grows.

>>> from crdts import GSet, Replica
>>> me = Replica(1, 7, "kitchen")
>>> seen = GSet()
>>> seen |= seen.add(me, "pi-1")
>>> seen |= seen.add(me, "pi-2")
>>> seen |= seen.add(me, "pi-1")
>>> sorted(seen.value)
['pi-1', 'pi-2']

Source: Marc Shapiro, Nuno Preguiça, Carlos Baquero, Marek Zawirski, "A comprehensive study of
Convergent and Commutative Replicated Data Types", INRIA RR-7506, 2011, section 3.3.1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from crdts.incremental import IncrementalSet, MovedToken, Shadow
from crdts.mutator import mutator
from crdts.plain import encoded, need_element, need_tuple
from crdts.replica import Replica


@dataclass(slots=True)
class GSet(Shadow, IncrementalSet):
    """The elements ever added.

    >>> from crdts import GSet, Replica
    >>> here, there = Replica(1, 7, "a"), Replica(1, 9, "b")
    >>> both = GSet().add(here, "attic") | GSet().add(there, "cellar")
    >>> sorted(both.value)
    ['attic', 'cellar']
    """

    grows: ClassVar[bool] = True

    elements: set[Any] = field(default_factory=set)

    @property
    def value(self) -> frozenset[Any]:
        """The elements."""
        return frozenset(self.elements)

    @mutator
    def add(self, _replica: Replica, element: Any) -> Self:
        """Return the delta that adds `element`: bottom where it is in already.

        Raises:
            ValueError: `element` is not a valid element (see `crdts.plain`).
        """
        return type(self)({need_element(element)} - self.elements)

    def join_tokens(self, delta: Self) -> Iterator[MovedToken]:
        added = sorted(delta.elements - self.elements, key=encoded)
        self.elements.update(added)
        return ((element, element, 1) for element in added)

    def tokens(self) -> Iterator[tuple[Any, Any]]:
        return ((element, element) for element in self.elements)

    def shadow(self) -> Self:
        return self.copy()

    def live(self) -> Iterator[Any]:
        return iter(self.elements)

    def is_live(self, token: Any) -> bool:
        return token in self.elements

    def __contains__(self, element: object) -> bool:
        return element in self.elements

    def __iter__(self) -> Iterator[Any]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def __ior__(self, other: Self) -> Self:
        self.elements |= other.elements
        return self

    def __le__(self, other: Self) -> bool:
        return self.elements <= other.elements

    def __sub__(self, other: Self) -> Self:
        return type(self)(self.elements - other.elements)

    def marks(self, near: Self | None = None) -> Iterator[bytes]:
        return map(encoded, self.elements if near is None else self.elements & near.elements)

    def irreducibles(self) -> Iterator[Self]:
        return (type(self)({element}) for element in sorted(self.elements, key=encoded))

    def to_plain(self) -> tuple[Any, ...]:
        return tuple(sorted(self.elements, key=encoded))

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        return cls(set(map(need_element, need_tuple(plain, "a set"))))
