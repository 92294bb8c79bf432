"""LWWRegister: a value that anybody writes; the last writer wins.

Last is by (time, replica), a total order: of two writes at one time the later replica's wins, on
every device alike. Were ties settled by the order of arrival, replicas would differ for ever. Only
a cloned device writes twice under one stamp; then the greater encoding wins.

Clocks differ, so the last may not be the latest. Where that matters keep both: `MVRegister`.

Cost: the value, its writer's name and 12 to 25 B. Nothing grows.

>>> from crdts import LWWRegister, Replica
>>> kitchen, cellar = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> register = LWWRegister()
>>> here, there = register.write(kitchen, "warm", 5), register.write(cellar, "cold", 5)
>>> (here | there).value, (there | here).value
('cold', 'cold')

Source: Paul Johnson, Robert Thomas, "The Maintenance of Duplicate Databases", RFC 677, 1975; Marc
Shapiro, Nuno Preguiça, Carlos Baquero, Marek Zawirski, "A comprehensive study of Convergent and
Commutative Replicated Data Types", INRIA RR-7506, 2011, section 3.2.1.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from crdts.lattice import Lattice
from crdts.mutator import mutator
from crdts.plain import INTEGERS, need_int, need_tuple, need_value, outranks
from crdts.replica import Replica


class Written(NamedTuple):
    """One write; of two, the one with the greater (time, replica) is the last."""

    time_us: int
    replica: Replica
    value: Any

    def is_after(self, other: "Written") -> bool:
        """Return whether this write wins over `other`, wherever the two meet."""
        if self[:2] != other[:2]:
            return self[:2] > other[:2]
        return outranks(self.value, other.value)


@dataclass(slots=True)
class LWWRegister(Lattice):
    """The last write; None before any.

    >>> from crdts import LWWRegister, Replica
    >>> here, there = Replica(1, 7, "a"), Replica(1, 9, "b")
    >>> (LWWRegister().write(here, "on", 5) | LWWRegister().write(there, "off", 9)).value
    'off'
    """

    last: Written | None = None

    @property
    def value(self) -> Any:
        """The value written last; None before any was."""
        return None if self.last is None else self.last.value

    @mutator
    def write(self, replica: Replica, value: Any, time_us: int) -> Self:
        """Return the delta in which `replica` writes `value` at `time_us`.

        Raises:
            ValueError: `value` is not a plain value (see `crdts.plain`), or `time_us` not
                an integer of 64 bits.
        """
        need_int(time_us, "a time in µs", least=-INTEGERS)
        return type(self)(Written(time_us, replica, need_value(value)))

    def __ior__(self, other: Self) -> Self:
        if other.last is not None and (self.last is None or other.last.is_after(self.last)):
            self.last = other.last
        return self

    def irreducibles(self) -> Iterator[Self]:
        if self.last is not None:
            yield type(self)(self.last)

    def to_plain(self) -> tuple[Any, ...] | None:
        return self.last and (self.last.time_us, *self.last.replica, self.last.value)

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        if plain is None:
            return cls()
        time_us, incarnation, nonce, device, value = need_tuple(plain, "a register", 5)
        return cls().write(Replica.checked(incarnation, nonce, device), value, time_us)
