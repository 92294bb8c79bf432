"""IVar: a variable that is bound once, and then never changes.

It is what a dataflow program waits for: unbound it is bottom, bound it is final. Binding it again
to the same value changes nothing. Replicas that bind it to different values without knowing of each
other broke its contract; the join stays total all the same (the greater encoding wins everywhere),
and `conflict` reports it.

Cost: the value and 4 to 8 B, whoever binds it. Nothing grows.

>>> from crdts import IVar, Replica
>>> me = Replica(1, 7, "kitchen")
>>> site = IVar()
>>> site |= site.bind(me, "Utrecht")
>>> site.value
'Utrecht'
>>> site.bind(me, "Delft")
Traceback (most recent call last):
    ...
ValueError: a bound variable needs its value again, 'Utrecht', got 'Delft'

Source: Arvind, Rishiyur Nikhil, Keshav Pingali, "I-Structures: Data Structures for Parallel
Computing", TOPLAS 11(4), 1989; Lindsey Kuper, Ryan Newton, "LVars: Lattice-based Data Structures
for Deterministic Parallelism", FHPC 2013.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from crdts.lattice import Lattice
from crdts.mutator import mutator
from crdts.plain import encoded, need_tuple, need_value, outranks
from crdts.replica import Replica


@dataclass(slots=True)
class IVar(Lattice):
    """The value, alone in a tuple; the empty tuple before it is bound.

    >>> from crdts import IVar, Replica
    >>> IVar().bind(Replica(1, 7, "a"), 7).value
    7
    """

    held: tuple[Any, ...] = ()

    @property
    def is_bound(self) -> bool:
        """Whether the variable has its value, which may be None."""
        return self.held != ()

    @property
    def value(self) -> Any:
        """The value; None before it is bound."""
        return self.held[0] if self.held else None

    @mutator
    def bind(self, _replica: Replica, value: Any) -> Self:
        """Return the delta that binds the variable to `value`.

        Raises:
            ValueError: it is bound to another value, or `value` is not a plain value (see
                `crdts.plain`).
        """
        if self.held and encoded(need_value(value)) != encoded(self.value):
            raise ValueError(
                f"a bound variable needs its value again, {self.value!r}, got {value!r}"
            )
        return type(self)((need_value(value),))

    def __ior__(self, other: Self) -> Self:
        if other.held and (not self.held or outranks(other.value, self.value)):
            self.held = other.held
        return self

    def irreducibles(self) -> Iterator[Self]:
        if self.held:
            yield type(self)(self.held)

    def to_plain(self) -> tuple[Any, ...]:
        return self.held

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        held = need_tuple(plain, "a variable")
        if len(held) > 1:
            raise ValueError(f"a variable needs at most one value, got {len(held)}")
        return cls(tuple(map(need_value, held)))


def conflict(a: IVar, b: IVar) -> bool:
    """Return whether the two were bound to different values."""
    return a.is_bound and b.is_bound and encoded(a.value) != encoded(b.value)
