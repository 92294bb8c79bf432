"""TwoPSet: a set to which an element is added, and from which it is removed for good.

Two growing sets side by side: what was added and what was removed. Being a product it needs no
join, order or delta of its own. An element that was removed is never in again; where that is not
wanted, and where tombstones must not pile up, use `ORSet`.

Cost: an element for each one added, and again for each one removed, whoever did it; 8 to 16 B
beside them. Both grow for ever: it is here for sets whose elements are used once, such as session
ids, and as the simplest case of removal.

>>> from crdts import Replica, TwoPSet
>>> me = Replica(1, 7, "kitchen")
>>> sessions = TwoPSet()
>>> sessions |= sessions.add(me, 17)
>>> sessions |= sessions.remove(me, 17)
>>> sessions |= sessions.add(me, 17)
>>> sessions.value
frozenset()

Source: Marc Shapiro, Nuno Preguiça, Carlos Baquero, Marek Zawirski, "A comprehensive study of
Convergent and Commutative Replicated Data Types", INRIA RR-7506, 2011, section 3.3.2.
"""

from collections.abc import Iterator
from typing import Any, Self

from crdts.gset import GSet
from crdts.incremental import IncrementalSet, MovedToken, Shadow
from crdts.mutator import mutator
from crdts.plain import encoded
from crdts.product import Pair, need_states
from crdts.replica import Replica


class TwoPSet(Pair[GSet, GSet], Shadow, IncrementalSet):
    """The added elements (`first`) without the removed ones (`second`).

    >>> from crdts import Replica, TwoPSet
    >>> here, there = Replica(1, 7, "a"), Replica(1, 9, "b")
    >>> added = TwoPSet().add(here, "attic")
    >>> (added | added.remove(there, "attic")).value
    frozenset()
    """

    __slots__ = ()

    def __init__(self, added: GSet | None = None, removed: GSet | None = None) -> None:
        super().__init__(GSet() if added is None else added, GSet() if removed is None else removed)

    @property
    def value(self) -> frozenset[Any]:
        """The elements."""
        return self.first.value - self.second.value

    @mutator
    def add(self, replica: Replica, element: Any) -> Self:
        """Return the delta that adds `element`, which has no effect once it was removed.

        Raises:
            ValueError: `element` is not a valid element (see `crdts.plain`).
        """
        return type(self)(self.first.add(replica, element), GSet())

    @mutator
    def remove(self, replica: Replica, element: Any) -> Self:
        """Return the delta that removes `element` for ever, even if it is yet to be added.

        Raises:
            ValueError: `element` is not a valid element (see `crdts.plain`).
        """
        return type(self)(GSet(), self.second.add(replica, element))

    def join_tokens(self, delta: Self) -> Iterator[MovedToken]:
        moved = [*delta.first, *delta.second]
        before = {element: element in self for element in sorted(set(moved), key=encoded)}
        added, removed = self.parts
        added |= delta.first
        removed |= delta.second
        for element, was_in in before.items():
            if was_in != (element in self):
                yield element, element, -1 if was_in else 1

    def tokens(self) -> Iterator[tuple[Any, Any]]:
        return ((element, element) for element in self.value)

    def shadow(self) -> Self:
        return self.copy()

    def live(self) -> Iterator[Any]:
        return iter(self.value)

    def is_live(self, token: Any) -> bool:
        return token in self

    def __contains__(self, element: object) -> bool:
        return element in self.first and element not in self.second

    def __len__(self) -> int:
        return len(self.value)

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        return cls.of(need_states(plain, "a two-phase set", GSet, GSet))
