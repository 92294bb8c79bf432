"""The table that every law is run over: for each type, its states and its writes.

`states` draws any state at all, reachable or not, those of cloned devices included; `writes` draws
mutators with their arguments, as functions of a state and the replica that writes. A few replicas
and small numbers suffice, and make states meet.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from crdts import (
    NOBODY,
    BoundedLWWSet,
    CausalContext,
    ControlEntry,
    ControlLog,
    ControlPlace,
    DerivedSet,
    DWFlag,
    Entry,
    EWFlag,
    Frontier,
    GCounter,
    GSet,
    IVar,
    Lattice,
    LWWRegister,
    Max,
    Member,
    Membership,
    Min,
    MVRegister,
    ORMap,
    ORSet,
    OwnedMap,
    Pair,
    PNCounter,
    Product,
    Promise,
    Replica,
    TwoPSet,
    Version,
)
from crdts.bounded_state import WindowLimits
from crdts.causal_context import pack
from crdts.lwwregister import Written

Write = Callable[[Any, Replica], Any]

REPLICAS = (Replica(1, 7, "cellar"), Replica(1, 9, "kitchen"), Replica(2, 3, "kitchen"))
replicas = st.sampled_from(REPLICAS)
small = st.integers(0, 3)
ELEMENTS = (0, 1, "a", "b", b"a", None, ("a", 1))
elements = st.sampled_from(ELEMENTS)
values = st.one_of(
    elements, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text()
)

gcounters = st.dictionaries(replicas, st.integers(1, 4), max_size=3).map(GCounter)
versions = st.builds(Version, st.integers(1, 2), small, st.integers(1, 3))
devices = st.sampled_from(["cellar", "kitchen", "größe"])


members = st.builds(Member, st.integers(1, 3), st.booleans(), versions)


places = st.builds(
    ControlPlace, st.sampled_from(["above", "größe"]), st.sampled_from(["", "cellar"]), small
)
said_values = st.sampled_from([None, "", "30", "day"])
control_entries = st.builds(
    ControlEntry, st.integers(1, 3), st.sampled_from(["ann", "bob"]), said_values
)


def owned_maps(payloads):
    entries = st.builds(Entry, versions, payloads)
    return st.dictionaries(devices, entries, max_size=3).map(OwnedMap)


lows = st.none() | small
promises = st.builds(Promise, versions, lows, st.booleans(), small)


@st.composite
def bounded_lww_sets(draw):
    state = BoundedLWWSet(bound=2)
    state.limits = WindowLimits(draw(st.integers(0, 1)), 2, draw(st.sampled_from([0, 5])))
    state.replica = draw(st.sampled_from([NOBODY, *REPLICAS[1:]]))
    if state.replica > NOBODY:
        state.lo = draw(small)
        state.hi = state.lo + draw(small)
        samples = st.tuples(small, st.sampled_from([1, 2, "x"]), small)
        for seq in range(state.lo + 1, state.hi + 1):
            if draw(st.booleans()):
                state.items[seq] = draw(samples)
    return state


def _add_samples(samples, accepted_us):
    def write(state, me):
        if me < state.replica:
            return state.bottom()  # it has learnt of a later life of its device, and is silent
        return state.add_many(me, *zip(*samples, strict=True), accepted_us)

    return write


def _resize(bound):
    return lambda state, _me: state.resized(bound, state.control_version + 1)


def counting(kind, *names):
    return st.builds(
        lambda name, by: lambda state, me: getattr(kind, name)(state, me, by),
        st.sampled_from(names),
        small,
    )


def part_of(position, writes):
    """A write to one part of a product, with the others at bottom."""

    def of_part(write):
        def on_product(state, me):
            parts = list(state.bottom().parts)
            parts[position] = write(state.parts[position], me)
            return state.of(tuple(parts))

        return on_product

    return writes.map(of_part)


def calling(mutator, *arguments):
    """Calls of one mutator with any of these arguments."""
    return st.tuples(*arguments).map(lambda drawn: lambda state, me: mutator(state, me, *drawn))


@st.composite
def causal_states(draw, bottom, payload_of, *, cloned=False):
    """Each of a few dots unheard of, live or removed; a cloned device's has any payload."""
    live, heard = {}, []
    for at, replica in enumerate(REPLICAS):
        for seq in range(1, 4):
            rung = draw(st.integers(0, 2))
            written = draw(st.integers(0, 6)) if cloned else at + 2 * seq
            if rung:
                heard.append(pack(replica, seq))
            if rung == 2:
                live[heard[-1]] = payload_of(ELEMENTS[written % len(ELEMENTS)])
    return bottom().part(live, CausalContext.of(heard))


class Kind(NamedTuple):
    """How to draw a type: any state, the state to start from, any write."""

    states: st.SearchStrategy[Lattice]
    bottom: Callable[[], Lattice]
    writes: st.SearchStrategy[Write]
    cloned: st.SearchStrategy[Lattice] | None = None  # states that only a cloned device can reach


def causal(bottom, payload_of, writes):
    return Kind(
        causal_states(bottom, payload_of),
        bottom,
        writes,
        causal_states(bottom, payload_of, cloned=True),
    )


def nothing(_element):
    return None


def itself(element):
    return element


def orset_map():
    return ORMap(ORSet())


orset_writes = st.one_of(
    calling(ORSet.add, elements),
    calling(ORSet.add, elements),
    calling(ORSet.add_many, st.lists(elements)),
    calling(ORSet.remove, elements),
    calling(ORSet.clear),
)
keys = st.sampled_from(["k", "l"])
gsets = st.sets(elements).map(GSet)
numbers = st.integers(-3, 3)
stamps = st.builds(Written, small, replicas, values)


gcounter_writes = counting(GCounter, "increment")
pncounter_writes = counting(PNCounter, "increment", "decrement")

KINDS: dict[type[Lattice], Kind] = {
    GCounter: Kind(gcounters, GCounter, gcounter_writes),
    PNCounter: Kind(st.builds(PNCounter, gcounters, gcounters), PNCounter, pncounter_writes),
    OwnedMap: Kind(
        owned_maps(values),
        OwnedMap,
        st.builds(
            lambda seq, payload: lambda s, me: s.put(me, seq, payload), st.integers(1, 9), values
        ),
    ),
    Frontier: Kind(
        st.dictionaries(devices, promises, max_size=3).map(Frontier),
        Frontier,
        st.builds(
            lambda seq, low, heard: lambda s, me: s.promise(me, seq, low, heard),
            st.integers(1, 9),
            lows,
            small,
        ),
    ),
    BoundedLWWSet: Kind(
        bounded_lww_sets(),
        lambda: BoundedLWWSet(bound=2, max_age_s=0.000_003),
        st.one_of(
            st.builds(
                _add_samples,
                st.lists(st.tuples(values, small), min_size=1, max_size=4),
                st.none() | small,
            ),
            st.integers(1, 3).map(_resize),
            small.map(lambda now_us: lambda state, _me: state.expire(now_us)),
        ),
    ),
    Membership: Kind(
        st.dictionaries(devices, members, max_size=3).map(Membership),
        Membership,
        st.one_of(
            st.builds(lambda at, version: lambda s, _me: s.retire(at, version), devices, versions),
            devices.map(lambda device: lambda s, _me: s.admit(device)),
        ),
    ),
    ControlLog: Kind(
        st.dictionaries(places, control_entries, max_size=3).map(ControlLog),
        ControlLog,
        st.builds(
            lambda at, value: lambda s, me: s.set(*at, value, me.device), places, said_values
        ),
    ),
    Pair: Kind(
        st.builds(Pair, gcounters, owned_maps(small)),
        lambda: Pair(GCounter(), OwnedMap()),
        part_of(0, gcounter_writes),
    ),
    Product: Kind(
        st.builds(Product, gcounters, gcounters, st.builds(PNCounter, gcounters, gcounters)),
        lambda: Product(GCounter(), GCounter(), PNCounter()),
        part_of(0, gcounter_writes) | part_of(2, pncounter_writes),
    ),
    Max: Kind(st.builds(Max, st.none() | numbers), Max, calling(Max.record, numbers)),
    Min: Kind(st.builds(Min, st.none() | numbers), Min, calling(Min.record, numbers)),
    LWWRegister: Kind(
        st.builds(LWWRegister, st.none() | stamps),
        LWWRegister,
        calling(LWWRegister.write, values, small),
    ),
    IVar: Kind(
        st.builds(IVar, st.just(()) | st.tuples(values)),
        IVar,
        values.map(
            lambda value: lambda state, me: IVar().bind(me, value)
        ),  # in ignorance of others
    ),
    GSet: Kind(gsets, GSet, calling(GSet.add, elements)),
    TwoPSet: Kind(
        st.builds(TwoPSet, gsets, gsets),
        TwoPSet,
        calling(TwoPSet.add, elements) | calling(TwoPSet.remove, elements),
    ),
    ORSet: causal(ORSet, itself, orset_writes),
    MVRegister: causal(MVRegister, itself, calling(MVRegister.write, values)),
    EWFlag: causal(EWFlag, nothing, calling(EWFlag.enable) | calling(EWFlag.disable)),
    DWFlag: causal(DWFlag, nothing, calling(DWFlag.enable) | calling(DWFlag.disable)),
    ORMap: causal(
        orset_map,
        lambda element: ("k" if element in (0, "a", None) else "l", element),
        st.one_of(
            calling(ORMap.update, keys, st.just(ORSet.add), elements),
            calling(ORMap.update, keys, st.just(ORSet.remove), elements),
            calling(ORMap.remove, keys),
        ),
    ),
}


@st.composite
def derived_sets(draw):
    """Any state over three leaves: each token unheard of, live or gone, in any terms."""
    shadows = {
        "a": draw(KINDS[EWFlag].states),
        "b": draw(KINDS[GSet].states),
        "c": draw(KINDS[TwoPSet].states),
    }
    tokens = [("a", dot) for dot in shadows["a"].dots]
    tokens += [("b", element) for element in shadows["b"]]
    tokens += [("c", element) for element in shadows["c"].value]
    if not tokens:
        return DerivedSet(shadows)
    ordered = st.sampled_from(sorted(tokens, key=repr))
    terms = st.frozensets(ordered, min_size=1, max_size=2)
    pairs = draw(st.lists(st.tuples(st.sampled_from([0, "x", (1, 2)]), terms), max_size=4))
    return DerivedSet(shadows, pairs)


def _derive_one(element):
    """Write to an input, and derive one element from that write."""

    def write(state, me):
        delta = state.shadows.get("a", EWFlag()).enable(me)
        (dot,) = delta.dots
        return DerivedSet({"a": delta}, [(element, frozenset({("a", dot)}))])

    return write


KINDS[DerivedSet] = Kind(derived_sets(), DerivedSet, elements.map(_derive_one))


@st.composite
def compositions(draw, depth=3):
    """A kind made at random of others: pairs of maps of maps of sets ..., and of counters."""
    if draw(st.booleans()):
        first = draw(leaves)
        second = draw(leaves | compositions(depth - 1) if depth else leaves)
        return Kind(
            st.builds(Pair, first.states, second.states),
            lambda: Pair(first.bottom(), second.bottom()),
            part_of(0, first.writes) | part_of(1, second.writes),
        )
    return draw(maps(depth))


@st.composite
def maps(draw, depth):
    """A map of what a map can hold: causal states, other maps, and lattices that forget nothing."""
    below = draw(embedded | maps(depth - 1) if depth else embedded)
    return Kind(
        st.nothing(),
        lambda: ORMap(below.bottom()),
        st.one_of(
            st.tuples(keys, below.writes).map(
                lambda drawn: lambda state, me: state.update(me, *drawn)
            ),
            calling(ORMap.remove, keys),
        ),
    )


EMBEDDED = (ORSet, MVRegister, EWFlag, DWFlag, ORMap, GCounter, PNCounter, GSet, Max, Pair, Product)
embedded = st.sampled_from(EMBEDDED).map(KINDS.__getitem__)
leaves = st.sampled_from([kind for kind in KINDS if kind is not BoundedLWWSet]).map(
    KINDS.__getitem__
)
