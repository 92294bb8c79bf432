"""What the ORSet costs in CPU, beside pycrdt, the Erlang reference and a bare Python loop.

Run: `python -m simulations.benchmarks crdts`. The bare loop is Python's own set, which cannot be
replicated: what is lost to it is the price of the CRDT. The elements are integers; text costs about
the same. A delta is joined as a state in memory; what it costs from its bytes on, checked as a
stranger's, is a line of its own, for pycrdt takes nothing but bytes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from crdts import Lattice, ORSet, Replica, decode, encode
from simulations.benchmarks.crdt_peers import BRING, PYCRDT, REFERENCE, of_pycrdt, of_reference
from simulations.benchmarks.measure import OURS, Line, cpu_s, missing, rates, times

HERE, THERE = Replica(1, 123_456_789, "kitchen"), Replica(1, 987_654_321, "cellar")
SIZE = 10_000
DELTAS = 20_000
BARE = "bare set"
ADDS_GOAL, DELTAS_GOAL, JOIN_GOAL_S = 1e6, 700e3, 0.007

PeerCosts = Mapping[str, Mapping[str, float] | None]


def filled(replica: Replica, first: int, size: int = SIZE) -> ORSet:
    """Return a set of `size` integers from `first` on, added in one batch."""
    state = ORSet()
    state |= state.add_many(replica, range(first, first + size))
    return state


def one_element_deltas() -> list[ORSet]:
    """Return deltas that each add one element to a set of `SIZE`."""
    state, deltas = filled(HERE, 0), []
    for number in range(SIZE, SIZE + DELTAS):
        deltas.append(state.add(HERE, number))
        state |= deltas[-1]
    return deltas


def join_all(state: Any, deltas: list[Any]) -> None:
    """Join every delta into `state`."""
    for delta in deltas:
        state |= delta


def decode_and_join_all(state: Lattice, deltas: list[bytes]) -> None:
    """Join every delta into `state`, from its bytes on."""
    for delta in deltas:
        state |= decode(delta)


def add_one_by_one(state: ORSet) -> None:
    """Add `SIZE` elements, each by its own delta."""
    for number in range(SIZE):
        state |= state.add(HERE, number)


def add_many(state: ORSet) -> None:
    """Add `SIZE` elements by one delta."""
    state |= state.add_many(HERE, range(SIZE))


def bare_adds(state: set[int]) -> None:
    """Add `SIZE` elements to Python's own set."""
    for number in range(SIZE):
        state.add(number)


def bare_deltas(state: set[int]) -> None:
    """Join `DELTAS` sets of one element."""
    for number in range(SIZE, SIZE + DELTAS):
        state |= {number}


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    rounds = 2 if quick else 7
    peers = {PYCRDT: of_pycrdt(SIZE, DELTAS, rounds), REFERENCE: of_reference(SIZE)}
    yield from _adds(peers, rounds)
    yield from _joins(peers, rounds)
    yield from _deltas(peers, rounds)


def beside(peers: PeerCosts, name: str, ours: float, **others: float) -> dict[str, float]:
    """Return our figure, and under `name` those of the peers that have one."""
    theirs = {way: costs[name] for way, costs in peers.items() if costs and name in costs}
    return {OURS: ours, **theirs, **others}


def absent(peers: PeerCosts, what: str) -> Iterator[Line]:
    """Yield a line for each peer that is not there."""
    yield from (missing(what, way, BRING[way]) for way, costs in peers.items() if costs is None)


def _adds(peers: PeerCosts, rounds: int) -> Iterator[Line]:
    what = f"ORSet: {SIZE:,} adds, one at a time"
    bare = {BARE: cpu_s(bare_adds, set, rounds)}
    notes = {
        PYCRDT: "a transaction for each",
        REFERENCE: "measured on 2,000 and scaled up linearly, in its favour",
        BARE: "Python's own set, which cannot be replicated",
    }
    spent = beside(peers, "adds", cpu_s(add_one_by_one, ORSet, rounds), **bare)
    yield from rates(what, "adds/s", SIZE, spent, goal=ADDS_GOAL, notes=notes)
    yield from absent(peers, what)
    what = f"ORSet: {SIZE:,} adds, as one delta"
    spent = beside(peers, "batch", cpu_s(add_many, ORSet, rounds))
    notes = {PYCRDT: "one transaction"}
    yield from rates(what, "adds/s", SIZE, spent, goal=ADDS_GOAL, notes=notes)


def _joins(peers: PeerCosts, rounds: int) -> Iterator[Line]:
    there = filled(THERE, SIZE)
    written, bare = encode(there), set(range(SIZE, 2 * SIZE))

    def ours(work: Any) -> float:
        return cpu_s(work, lambda: filled(HERE, 0), rounds)

    in_memory = beside(peers, "join", ours(lambda state: state.__ior__(there)))
    in_memory[BARE] = cpu_s(lambda state: state.__ior__(bare), lambda: set(range(SIZE)), rounds)
    notes = {PYCRDT: "from bytes"}
    what = f"ORSet: join of two of {SIZE:,}"
    yield from times(what, in_memory, goal_s=JOIN_GOAL_S, notes=notes)
    from_bytes = beside(peers, "join", ours(lambda state: state.__ior__(decode(written))))
    from_bytes.pop(REFERENCE, None)
    notes = {OURS: "decoded, every part checked and its canonical form verified"}
    yield from times(f"{what}, from bytes", from_bytes, notes=notes)


def _deltas(peers: PeerCosts, rounds: int) -> Iterator[Line]:
    deltas = one_element_deltas()
    written = [encode(delta) for delta in deltas]

    def ours(work: Any, given: list[Any]) -> float:
        return cpu_s(lambda state: work(state, given), lambda: filled(HERE, 0), rounds)

    in_memory = beside(peers, "deltas", ours(join_all, deltas))
    in_memory[BARE] = cpu_s(bare_deltas, lambda: set(range(SIZE)), rounds)
    what, notes = f"ORSet: {DELTAS:,} deltas of one element joined", {PYCRDT: "from bytes"}
    yield from rates(what, "joins/s", DELTAS, in_memory, goal=DELTAS_GOAL, notes=notes)
    from_bytes = beside(peers, "deltas", ours(decode_and_join_all, written))
    notes = {OURS: "decoded, every part checked and its canonical form verified"}
    yield from rates(f"{what}, from bytes", "joins/s", DELTAS, from_bytes, notes=notes)
