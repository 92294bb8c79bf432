"""Counters: numbers that any replica can raise (GCounter), and lower, too (PNCounter).

Each replica keeps its own total; a GCounter's value is the sum of the totals. The join takes the
greater total of each replica, so a total that arrives twice, late or after its successor changes
nothing. One entry is an irreducible. An absent replica has the total 0, which is never stored. A
PNCounter is two of them side by side, what was added and what was taken off: being a product it
needs no join, order or delta of its own.

Cost: 1 to 9 B a replica on the wire plus 6 to 10 B for its id (its device's name once per device),
which is also all that grows: one entry a process start that counted something; in a PNCounter one
for raising and one for lowering.

>>> from crdts import GCounter, PNCounter, Replica
>>> me, you = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> counter = GCounter()
>>> delta = counter.increment(me, 3)
>>> counter |= delta
>>> counter |= delta
>>> counter |= counter.increment(you)
>>> counter.value
4
>>> both = PNCounter()
>>> both |= both.increment(me, 5)
>>> both |= both.decrement(you, 2)
>>> both.value
3

Source: Marc Shapiro, Nuno Preguiça, Carlos Baquero, Marek Zawirski, "A comprehensive study of
Convergent and Commutative Replicated Data Types", INRIA RR-7506, 2011, sections 3.1 and 3.1.3.
"""

from typing import Any, Self

from crdts.chain_map import ChainMap
from crdts.mutator import mutator
from crdts.plain import INTEGERS, need_int
from crdts.product import Pair, need_states
from crdts.replica import Replica, by_device, from_devices


class GCounter(ChainMap[Replica, int]):
    """Replica -> its total; absent means 0. Each total is below 2**63.

    >>> from crdts import GCounter, Replica
    >>> here, there = Replica(1, 7, "a"), Replica(1, 9, "b")
    >>> (GCounter().increment(here, 2) | GCounter().increment(there, 5)).value
    7
    """

    __slots__ = ()

    @property
    def value(self) -> int:
        """The sum of all totals."""
        return sum(self.entries.values())

    @mutator
    def increment(self, replica: Replica, by: int = 1) -> Self:
        """Return the delta that raises the counter by `by`, which must not be negative.

        Raises:
            ValueError: `by` is negative, or the replica's total would reach 2**63.
        """
        total = self.entries.get(replica, 0)
        need_int(by, "an increment", below=INTEGERS - total)
        return type(self)({replica: total + by} if by else {})

    def restricted(self, device: str) -> Self:
        return type(self)({at: n for at, n in self.entries.items() if at.device == device})

    def to_plain(self) -> dict[str, tuple[int, ...]]:
        return by_device({replica: (total,) for replica, total in self.entries.items()})

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        columns = from_devices(plain, "a counter", width=1)
        return cls({at: need_int(total, "a total", least=1) for at, (total,) in columns.items()})


class PNCounter(Pair[GCounter, GCounter]):
    """The difference of two growing counters: `first` was added, `second` was taken off.

    >>> from crdts import Counter, Replica
    >>> here, there = Replica(1, 7, "a"), Replica(1, 9, "b")
    >>> (Counter().increment(here, 2) | Counter().decrement(there, 5)).value
    -3


    >>> from crdts import PNCounter, Replica
    >>> here, there = Replica(1, 7, "a"), Replica(1, 9, "b")
    >>> (PNCounter().increment(here, 2) | PNCounter().decrement(there, 5)).value
    -3
    """

    __slots__ = ()

    def __init__(self, added: GCounter | None = None, taken_off: GCounter | None = None) -> None:
        super().__init__(
            GCounter() if added is None else added,
            GCounter() if taken_off is None else taken_off,
        )

    @property
    def value(self) -> int:
        """The sum of all increments less that of all decrements."""
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
