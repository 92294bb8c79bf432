"""Max and Min: the greatest, or the least, integer that anybody recorded.

Integers are a chain, so the join is the greater (or the lesser) of two, and every state beside
bottom is its own only irreducible.

Cost: 4 to 13 B in all, whoever records. Nothing grows.

>>> from crdts import Max, Min, Replica
>>> me = Replica(1, 7, "kitchen")
>>> hottest, coldest = Max(), Min()
>>> for reading in (21, 24, 19):
...     hottest |= hottest.record(me, reading)
...     coldest |= coldest.record(me, reading)
>>> hottest.value, coldest.value, Max().value
(24, 19, None)

Source: Carlos Baquero, Paulo Sérgio Almeida, Alcino Cunha, Carla Ferreira, "Composition in
State-based Replicated Data Types", Bulletin of the EATCS 123, 2017 (chains).
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from crdts.lattice import Lattice
from crdts.mutator import mutator
from crdts.plain import INTEGERS, need_int
from crdts.replica import Replica


@dataclass(slots=True)
class Extremum(Lattice):
    """The winning integer; None before any was recorded."""

    held: int | None = None

    @staticmethod
    @abstractmethod
    def wins(number: int, known: int) -> bool:
        """Return whether `number` takes the place of `known`."""

    @property
    def value(self) -> int | None:
        """The winning integer; None before any was recorded."""
        return self.held

    @mutator
    def record(self, _replica: Replica, number: int) -> Self:
        """Return the delta that records `number`.

        Raises:
            ValueError: `number` is not an integer of 64 bits.
        """
        return type(self)(need_int(number, "an extremum", least=-INTEGERS))

    def __ior__(self, other: Self) -> Self:
        if other.held is not None and (self.held is None or self.wins(other.held, self.held)):
            self.held = other.held
        return self

    def irreducibles(self) -> Iterator[Self]:
        if self.held is not None:
            yield type(self)(self.held)

    def to_plain(self) -> int | None:
        return self.held

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        return cls(None if plain is None else need_int(plain, "an extremum", least=-INTEGERS))


@dataclass(slots=True)
class Max(Extremum):
    """The greatest integer recorded.

    >>> from crdts import Max
    >>> (Max(3) | Max(5)).value
    5
    """

    @staticmethod
    def wins(number: int, known: int) -> bool:
        return number > known


@dataclass(slots=True)
class Min(Extremum):
    """The least integer recorded.

    >>> from crdts import Min
    >>> (Min(3) | Min(5)).value
    3
    """

    @staticmethod
    def wins(number: int, known: int) -> bool:
        return number < known
