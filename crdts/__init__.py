"""Values with a join: replicated without coordination, and equal once everything was received.

- `lattice`: the contract that every type keeps, and all that follows from it
- `replica`: who writes; dots and versions
- `counters`: counters that go up; up and down (`Counter` in programs)
- `extrema`: the greatest, the least
- `gset`, `twopset`, `orset`: sets that grow; that forget for good; that forget and add again
- `ivar`, `lwwregister`, `mvregister`: bound once; the last write wins; concurrent writes are kept
- `flags`: switches on which on, or off, wins
- `ormap`: a map of CRDTs of any kind
- `causal`, `causal_context`, `labelled`: what all that forgets is made of
- `product`: several states side by side
- `owned_map`: one entry a device, written by it alone
- `membership`: which devices were retired, and up to which of their writes they count
- `frontier`: how far every device has come
- `control_log`: the values that operators gave to parameters, and from when on
- `chain_map`: what all of these, and the counters, are made of: the greatest value of each key
- `bounded_lww_set`: the last samples of one writer; made of `bounded_state` (join, order,
  columns on the wire)
- `mutator`: the mark of the methods by which programs write
- `tally`: 64 bits that tell a state from others, kept up to date while it is joined
- `incremental`: what sets tell those who keep something up to date with them
- `derived_set`: a set that follows from others, as a state
- `plain`, `wire`: plain data and its bytes, and the bytes of every state
"""

from crdts.bounded_lww_set import BoundedLWWSet
from crdts.bounded_state import Sample
from crdts.causal_context import CausalContext
from crdts.chain_map import ChainMap
from crdts.control_log import ControlEntry, ControlLog, ControlPlace
from crdts.counters import GCounter, PNCounter
from crdts.derived_set import DerivedSet
from crdts.extrema import Max, Min
from crdts.flags import DWFlag, EWFlag
from crdts.frontier import Frontier, Promise
from crdts.gset import GSet
from crdts.incremental import IncrementalSet, Shadow
from crdts.ivar import IVar
from crdts.lattice import Lattice
from crdts.lwwregister import LWWRegister
from crdts.membership import Member, Membership
from crdts.mutator import mutator
from crdts.mvregister import MVRegister
from crdts.ormap import ORMap
from crdts.orset import ORSet
from crdts.owned_map import Entry, OwnedMap
from crdts.product import Pair, Product
from crdts.replica import NOBODY, Dot, Replica, Version
from crdts.twopset import TwoPSet
from crdts.wire import decode, encode

Counter = PNCounter

__all__ = [
    "NOBODY",
    "BoundedLWWSet",
    "CausalContext",
    "ChainMap",
    "ControlEntry",
    "ControlLog",
    "ControlPlace",
    "Counter",
    "DWFlag",
    "DerivedSet",
    "Dot",
    "EWFlag",
    "Entry",
    "Frontier",
    "GCounter",
    "GSet",
    "IVar",
    "IncrementalSet",
    "LWWRegister",
    "Lattice",
    "MVRegister",
    "Max",
    "Member",
    "Membership",
    "Min",
    "ORMap",
    "ORSet",
    "OwnedMap",
    "PNCounter",
    "Pair",
    "Product",
    "Promise",
    "Replica",
    "Sample",
    "Shadow",
    "TwoPSet",
    "Version",
    "decode",
    "encode",
    "mutator",
]
