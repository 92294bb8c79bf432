"""What the docstrings of `crdts` claim that a type costs, held against what it does.

A claim is of bytes on the wire unless it says "in memory". Every type has some: what an element or
an entry costs, what a replica does, and what is left after many writes of one writer, which tells
what grows.
"""

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from crdts import (
    BoundedLWWSet,
    ControlEntry,
    ControlLog,
    ControlPlace,
    DerivedSet,
    DWFlag,
    EWFlag,
    Frontier,
    GCounter,
    GSet,
    IVar,
    Lattice,
    LWWRegister,
    Max,
    Membership,
    Min,
    MVRegister,
    ORMap,
    ORSet,
    OwnedMap,
    Pair,
    PNCounter,
    Product,
    Replica,
    TwoPSet,
    Version,
    encode,
)
from crdts.replica import INCARNATIONS, NONCES, SEQS
from simulations.benchmarks.crdts import HERE, SIZE, filled
from simulations.benchmarks.sizes import DAY_S, START_US, bounded

STARTS = 1_000
WRITES = 1_000
SEQ_B = 8
"""By so much the numbers of writes may get longer, and nothing else may."""
A_START_B = 16
LONGEST = Replica(INCARNATIONS - 1, NONCES - 1, "kitchen")
NAME_B = len("kitchen") + 1
NUMBERS = range(70_000, 70_000 + SIZE)  # 5 B each, as plain data

Write = Callable[[Any, Replica], Any]


class Claim(NamedTuple):
    """A cost that a docstring claims, in bytes, and what was measured."""

    kind: type[Lattice]
    what: str
    measured: float
    at_most: float


def claims() -> Iterator[Claim]:
    """Measure what the docstrings claim."""
    yield from _of_replicas()
    yield from _of_entries()
    yield from _of_bounded_lww_set()
    yield from _of_single_values()
    yield from _of_elements()
    yield from _of_memory()
    yield from _of_growth()


def size(state: Lattice) -> int:
    """Return the bytes of a state on the wire."""
    return len(encode(state))


def growth(state: Any, write: Write, writers: list[Replica]) -> float:
    """Return the bytes that `state` gains for each of `writers` when each writes once."""
    before = size(state)
    for writer in writers:
        state |= write(state, writer)
    return (size(state) - before) / len(writers)


def _of_replicas() -> Iterator[Claim]:
    """What each process start of one device leaves behind."""
    starts = [Replica(n, 123_456_789 + n, "kitchen") for n in range(1, STARTS + 1)]
    each: list[tuple[Lattice, Write]] = [
        (GCounter(), lambda s, r: s.increment(r)),
        (PNCounter(), lambda s, r: s.decrement(r)),
        (ORSet(), _added_and_removed),
        (MVRegister(), lambda s, r: s.write(r, 0)),
        (EWFlag(), lambda s, r: s.enable(r)),
        (DWFlag(), lambda s, r: s.disable(r)),
        (ORMap(ORSet()), _put_and_removed),
    ]
    for state, write in each:
        yield Claim(type(state), "a start", growth(state, write, starts), A_START_B)
    nothing: list[tuple[Lattice, Write]] = [
        (OwnedMap(), lambda s, r: s.put(r, 1, None)),
        (Frontier(), lambda s, r: s.promise(r, 1, START_US, START_US)),
        (Membership(), lambda s, r: s.retire(r.device, Version.of(r, 1))),
        (LWWRegister(), lambda s, r: s.write(r, 0, START_US)),
        (Max(), lambda s, r: s.record(r, 1)),
        (Min(), lambda s, r: s.record(r, 1)),
        (IVar(), lambda s, r: s.bind(r, 1)),
        (GSet(), lambda s, r: s.add(r, 1)),
        (TwoPSet(), lambda s, r: s.add(r, 1) | s.remove(r, 1)),
        (BoundedLWWSet(bound=1), lambda s, r: s.add(r, 1, START_US)),
    ]
    for state, write in nothing:
        state |= write(state, starts[0])  # noqa: PLW2901  # in place
        left = growth(state, write, starts[1:]) * len(starts[1:])
        yield Claim(type(state), "all later starts together", left, SEQ_B)


def _added_and_removed(state: ORSet, replica: Replica) -> Lattice:
    added = state.add(replica, 1)
    return added | (state | added).remove(replica, 1)


def _put_and_removed(state: ORMap, replica: Replica) -> Lattice:
    put = state.update(replica, "hall", ORSet.add, 1)
    return put | (state | put).remove(replica, "hall")


def _of_entries() -> Iterator[Claim]:
    """An entry a device, beside its name."""
    devices = [Replica(1, 123_456_789 + n, f"pi-{n:04}") for n in range(STARTS)]

    def mean(state: Any, replica: Replica) -> Any:
        return state.put(replica, 1_000, (100, 215_000))

    yield Claim(OwnedMap, "a mean's entry, name and all", growth(OwnedMap(), mean, devices), 30)
    last = SEQS - 1
    longest: list[tuple[Lattice, Write, int]] = [
        (OwnedMap(), lambda s, r: s.put(r, last, None), 20 + 1),
        (Frontier(), lambda s, r: s.promise(r, last, START_US, START_US), 40),
        (Membership(), lambda s, r: s.retire(r.device, Version.of(r, last)), 22),
        (GCounter(), lambda s, r: s.increment(r, 2**63 - 1), 9 + 10 + 1),
    ]
    for state, write, bound in longest:
        for device in devices[:5]:
            state |= write(state, device)  # noqa: PLW2901  # in place
        entry = growth(state, write, [LONGEST]) - NAME_B
        yield Claim(type(state), "the longest entry, beside the name", entry, bound)
    log = ControlLog()
    log |= log.set("above", "", START_US, "0", "ann")
    yield Claim(ControlLog, "a place", growth(log, _said_next, devices[:200]), 40)
    yield Claim(Pair, "beside its parts", size(Pair(GSet(), GSet())) - 2 * size(GSet()), 6)
    parts = [GSet() for _ in range(10)]
    yield Claim(Product, "a part, beside it", size(Product(*parts)) / 10 - size(GSet()), 3)


def _said_next(log: Any, _replica: Replica) -> Any:
    return log.set("above", "", START_US + len(log.entries) * 10**9, "28.75", "ann")


def _of_bounded_lww_set() -> Iterator[Claim]:
    alone, kept = size(bounded(0, 100)), size(bounded(DAY_S, 100))
    yield Claim(BoundedLWWSet, "no samples", alone, 40)
    yield Claim(BoundedLWWSet, "a sample", (kept - alone) / 100, 9)


def _of_single_values() -> Iterator[Claim]:
    """What holds one value, at its longest."""
    yield Claim(Max, "in all", size(Max().record(HERE, 2**62)), 13)
    yield Claim(Min, "in all", size(Min().record(HERE, -(2**62))), 13)
    register = LWWRegister().write(LONGEST, None, START_US)
    yield Claim(LWWRegister, "beside value and name", size(register) - NAME_B - 1, 25)
    yield Claim(IVar, "beside the value", size(IVar().bind(HERE, "milk")) - len("milk") - 1, 4)
    states: list[Lattice] = [MVRegister().write(HERE, None), EWFlag().enable(HERE)]
    for state in [*states, DWFlag().disable(HERE)]:
        per_device = size(state) - size(type(state)())
        yield Claim(type(state), "one write, with its context and name", per_device, 2 * 20)


def _of_elements() -> Iterator[Claim]:
    """An element of 5 B, among many."""
    yield Claim(GSet, "an element of 5 B", size(GSet(set(NUMBERS))) / SIZE, 5.1)
    both = TwoPSet(GSet(set(NUMBERS)), GSet(set(NUMBERS)))
    yield Claim(TwoPSet, "an element of 5 B, added and removed", size(both) / SIZE, 10.1)
    state = filled(HERE, NUMBERS[0])
    yield Claim(ORSet, "an element of 5 B", size(state) / SIZE, 5.1)
    for number in NUMBERS[::2]:
        state |= state.remove(HERE, number)
    yield Claim(ORSet, "one of 5 B in a state full of gaps", size(state) * 2 / SIZE, 5 + 4)
    pairs = [(element, frozenset({("in", token)})) for token, element in state.tokens()]
    derived, shadow = DerivedSet({"in": state.shadow()}, pairs), DerivedSet({"in": state.shadow()})
    beside = (size(derived) - size(shadow)) / len(pairs)
    yield Claim(DerivedSet, "an element of 5 B, with a term of one write", beside, 5 + 30)
    rooms: ORMap = ORMap(ORSet())
    for number in NUMBERS[:WRITES]:
        rooms |= rooms.update(HERE, "hall", ORSet.add, number)
    yield Claim(ORMap, "an element of 5 B and its key", size(rooms) / WRITES, 5 + 5 + 2)


def _of_memory() -> Iterator[Claim]:
    """What an element or entry holds on to in this process."""
    held: list[tuple[Callable[[], Lattice], int]] = [
        (lambda: bounded(SIZE, SIZE), 200),
        (lambda: filled(HERE, NUMBERS[0]), 150),
        (_all_retired, 300),
        (_all_said, 300),
    ]
    for build, bound in held:
        yield Claim(type(build()), "one in memory", held_bytes(build) / SIZE, bound)


def _all_retired() -> Membership:
    state = Membership()
    for number in range(SIZE):
        state |= state.retire(f"pi-{number:04}", Version(1, 123_456_789 + number, 1_000 + number))
    return state


def _all_said() -> ControlLog:
    places = (ControlPlace("above", "", START_US + number) for number in range(SIZE))
    return ControlLog(
        {at: ControlEntry(number, "ann", str(number)) for number, at in enumerate(places, 1_000)}
    )


def held_bytes(build: Callable[[], Any]) -> float:
    """Return the memory that what `build` gives holds on to."""
    tracemalloc.start()
    built = build()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del built
    return held


def _of_growth() -> Iterator[Claim]:
    """What many writes of one writer leave, beside what its first ones did."""
    writes: list[tuple[Lattice, Callable[[Any, int], Any]]] = [
        (GCounter(), lambda s, _: s.increment(HERE)),
        (PNCounter(), lambda s, n: s.increment(HERE) if n % 2 else s.decrement(HERE)),
        (OwnedMap(), lambda s, n: s.put(HERE, n, n)),
        (Frontier(), lambda s, n: s.promise(HERE, n, START_US + n, START_US + n)),
        (Membership(), lambda s, n: s.admit("pi") if n % 2 else s.retire("pi", Version(1, 1, n))),
        (ControlLog(), lambda s, n: s.set("above", "", START_US, str(n), "ann")),
        (Max(), lambda s, n: s.record(HERE, n)),
        (Min(), lambda s, n: s.record(HERE, -n)),
        (LWWRegister(), lambda s, n: s.write(HERE, n, START_US + n)),
        (MVRegister(), lambda s, n: s.write(HERE, n)),
        (EWFlag(), lambda s, n: s.enable(HERE) if n % 2 else s.disable(HERE)),
        (DWFlag(), lambda s, n: s.disable(HERE) if n % 2 else s.enable(HERE)),
        (ORSet(), lambda s, n: s.add(HERE, n // 2) if n % 2 == 0 else s.remove(HERE, n // 2)),
        (ORMap(GCounter()), lambda s, _: s.update(HERE, "door", GCounter.increment)),
        (BoundedLWWSet(bound=1), lambda s, n: s.add(HERE, 2_150 + n % 7, START_US + n)),
    ]
    for state, write in writes:
        sizes = []
        for number in range(1, WRITES + 1):
            state |= write(state, number)  # noqa: PLW2901  # in place
            sizes.append(size(state))
        left = max(sizes[WRITES // 2 :]) - max(sizes[:10])
        yield Claim(type(state), f"{WRITES:,} writes of one writer leave", left, SEQ_B)
