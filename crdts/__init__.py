"""Values with a join: replicated without coordination, and equal once everything was heard.

- `lattice`: the contract that every type keeps, and all that follows from it
- `replica`: who writes; dots and versions
- `gcounter`, `pncounter`: counters that go up; up and down (`Counter` in programs)
- `product`: several states side by side
- `owned_map`: one entry a device, written by it alone
- `frontier`: the time before which nothing more will come
- `bounded_lww_set`: the last so many samples of one writer
- `plain`, `wire`: plain data, and the bytes of every state
"""

from crdts.bounded_lww_set import BoundedLWWSet
from crdts.frontier import Frontier
from crdts.gcounter import GCounter
from crdts.lattice import Lattice
from crdts.owned_map import Entry, OwnedMap
from crdts.pncounter import PNCounter
from crdts.product import Pair, Product
from crdts.replica import NOBODY, Dot, Replica, Version
from crdts.wire import decode, encode

Counter = PNCounter

__all__ = [
    "NOBODY",
    "BoundedLWWSet",
    "Counter",
    "Dot",
    "Entry",
    "Frontier",
    "GCounter",
    "Lattice",
    "OwnedMap",
    "PNCounter",
    "Pair",
    "Product",
    "Replica",
    "Version",
    "decode",
    "encode",
]
