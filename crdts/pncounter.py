"""PNCounter: a number that any replica can raise and lower.

Two GCounters side by side: what was added, and what was taken off. Being a product it needs no
join, order or delta of its own.

Cost: that of two GCounters, one entry each for a replica that raises and lowers; nothing else
grows.

>>> from crdts import PNCounter, Replica
>>> me, you = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> counter = PNCounter()
>>> counter |= counter.increment(me, 5)
>>> counter |= counter.decrement(you, 2)
>>> counter.value
3

Source: Marc Shapiro, Nuno Preguiça, Carlos Baquero, Marek Zawirski, "A comprehensive study of
Convergent and Commutative Replicated Data Types", INRIA RR-7506, 2011, section 3.1.3.
"""

from typing import Any, Self

from crdts.gcounter import GCounter
from crdts.mutator import mutator
from crdts.product import Pair, need_states
from crdts.replica import Replica


class PNCounter(Pair[GCounter, GCounter]):
    """The difference of two growing counters: `first` was added, `second` was taken off."""

    __slots__ = ()

    def __init__(self, added: GCounter | None = None, taken_off: GCounter | None = None) -> None:
        super().__init__(
            GCounter() if added is None else added,
            GCounter() if taken_off is None else taken_off,
        )

    @property
    def value(self) -> int:
        """What was added less what was taken off."""
        return self.first.value - self.second.value

    @mutator
    def increment(self, replica: Replica, by: int = 1) -> Self:
        """Return the delta that raises the counter by `by`, or lowers it where `by` is negative."""
        if by < 0:
            return self.decrement(replica, -by)
        return type(self)(self.first.increment(replica, by), GCounter())

    @mutator
    def decrement(self, replica: Replica, by: int = 1) -> Self:
        """Return the delta that lowers the counter by `by`, or raises it where `by` is negative."""
        if by < 0:
            return self.increment(replica, -by)
        return type(self)(GCounter(), self.second.increment(replica, by))

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        return cls.of(need_states(plain, "a counter", GCounter, GCounter))
