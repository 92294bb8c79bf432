"""A tally: 64 bits that tell a state from others, kept up to date while the state is joined.

It is the sum of the hashes of a state's **marks** (`Lattice.marks`), so their order does not count.
Joining a delta changes few marks, and a state names those near a delta: what they summed up to
before the join is taken off, and what they sum up to after it is added. A join so costs what the
delta costs, however large the state is.

>>> from crdts import ORSet, Replica
>>> me, you = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> here, there = Tally(ORSet()), Tally(ORSet())
>>> milk, bread = here.state.add(me, "milk"), there.state.add(you, "bread")
>>> for delta in (milk, bread):
...     here.join(delta)
>>> for delta in (bread, milk, bread):
...     there.join(delta)
>>> here.total == there.total == tally(here.state)
True

Source: Mihir Bellare, Daniele Micciancio, "A New Paradigm for Collision-Free Hashing:
Incrementality at Reduced Cost", EUROCRYPT 1997 (AdHash: the sum of hashes).
"""

from hashlib import sha256
from typing import Final, Generic, TypeVar

from crdts.lattice import Lattice

State = TypeVar("State", bound=Lattice)

MODULUS: Final = 1 << 64


def tally(state: Lattice, near: Lattice | None = None) -> int:
    """Return the sum of the hashes of a state's marks, or of those that joining `near` may change.

    This is the definition; `Tally.total` is it, without looking at the whole state.
    """
    return sum(int.from_bytes(sha256(mark).digest()[:8]) for mark in state.marks(near)) % MODULUS


class Tally(Generic[State]):
    """A state and its tally. Nobody else may change the state.

    Attributes:
        state: what was joined.
        total: its tally.
    """

    __slots__ = ("state", "total")

    def __init__(self, state: State) -> None:
        self.state = state
        self.total = tally(state)

    def join(self, delta: State) -> None:
        """Join a delta into the state, in place."""
        before = tally(self.state, delta)
        self.state |= delta
        self.total = (self.total - before + tally(self.state, delta)) % MODULUS
