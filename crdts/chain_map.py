"""ChainMap: key -> the greatest value received for it; every map with a join by key is one.

The values of a key form a **chain**: of any two, one is the greater. The join takes the greater
value of each key, so an entry that arrives twice, late or after its successor changes nothing. The
state is the pointwise order of such maps, and one entry is an irreducible. An absent key is below
every value.

A type says what its keys and values are, how they are read, and their form on the wire; join,
order, delta and irreducibles are here, once. A value's order is its `>`: integers have one, tuples
have one, and a named tuple may define another.

Cost: an entry of a dictionary a key. An entry is replaced, never added to, so nothing grows but the
number of keys.

>>> from crdts import GCounter, Replica
>>> kitchen, cellar = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> here, there = GCounter({kitchen: 3}), GCounter({kitchen: 2, cellar: 5})
>>> [replica.device for replica in (there - here).entries]
['cellar']
>>> (here | there).value
8

Source: Carlos Baquero, Paulo Sérgio Almeida, Alcino Cunha, Carla Ferreira, "Composition in
State-based Replicated Data Types", Bulletin of the EATCS 123, 2017, section 3 (maps to a chain).
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from crdts.lattice import Lattice
from crdts.plain import encoded, need_text
from crdts.replica import DEVICE_BYTES


class Chain(Protocol):
    """A value that is comparable to every other of its kind."""

    def __gt__(self, other: Any, /) -> bool:
        """Return whether this value replaces `other`, wherever the two meet."""


K = TypeVar("K")
V = TypeVar("V", bound=Chain)


@dataclass(slots=True)
class ChainMap(Lattice, Generic[K, V]):
    """Key -> its greatest value.

    >>> from crdts import GCounter, Replica
    >>> kitchen, cellar = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
    >>> here, there = GCounter({kitchen: 3}), GCounter({kitchen: 2, cellar: 5})
    >>> isinstance(here, ChainMap), (here | there).entries == {kitchen: 3, cellar: 5}
    (True, True)
    """

    entries: dict[K, V] = field(default_factory=dict)

    def copy(self) -> Self:
        return type(self)(dict(self.entries))

    def __ior__(self, other: Self) -> Self:
        entries = self.entries
        get = entries.get
        for key, value in other.entries.items():
            mine = get(key)
            if mine is None or value > mine:
                entries[key] = value
        return self

    def __le__(self, other: Self) -> bool:
        get = other.entries.get
        for key, value in self.entries.items():
            known = get(key)
            if known is None or value > known:
                return False
        return True

    def __sub__(self, other: Self) -> Self:
        get = other.entries.get
        return type(self)(
            {
                key: value
                for key, value in self.entries.items()
                if (known := get(key)) is None or value > known
            }
        )

    def marks(self, near: Self | None = None) -> Iterator[bytes]:
        entries = self.entries
        for key in entries if near is None else entries.keys() & near.entries.keys():
            yield encoded(type(self)({key: entries[key]}))

    def irreducibles(self) -> Iterator[Self]:
        entries: Any = self.entries
        return (type(self)({key: entries[key]}) for key in sorted(entries))


@dataclass(slots=True)
class DeviceMap(ChainMap[str, V]):
    """Device -> its greatest value, which is a row of plain values on the wire."""

    what: ClassVar[str]

    @staticmethod
    @abstractmethod
    def row(value: V) -> tuple[Any, ...]:
        """Return a value as plain values."""

    @staticmethod
    @abstractmethod
    def value_of(row: Any) -> V:
        """Return the value that `row` gave.

        Raises:
            ValueError: `row` came from a peer and is not the row of a value.
        """

    def to_plain(self) -> dict[str, tuple[Any, ...]]:
        return {device: self.row(self.entries[device]) for device in sorted(self.entries)}

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        if type(plain) is not dict:
            raise ValueError(f"{cls.what} needs a map by device, got {type(plain).__name__}")
        return cls(
            {
                need_text(device, "a device name", DEVICE_BYTES): cls.value_of(row)
                for device, row in plain.items()
            }
        )
