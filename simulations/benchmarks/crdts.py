"""What the CRDTs cost, beside pycrdt, the Erlang reference and a bare Python loop.

    python -m simulations.benchmarks.crdts

prints CPU seconds and ratios (peer / ours: above 1 we are faster, or smaller), then holds every
cost that a type's docstring claims against what it measures, and ends with 1 if one is exceeded. A
peer that is not installed is skipped with a word: pycrdt comes from PyPI, the reference from the
directory of compiled lasp-lang/types that LASP_TYPES_EBIN names.

The peers do not do the same work. A pycrdt document is a set by way of a map's keys, written in one
transaction, in Rust; the bare loop is Python's own set, which cannot be replicated. The reference
is measured on a fifth of the elements, since its adds are quadratic, and scaled up linearly in its
favour.
"""

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from crdts import (
    BoundedLWWSet,
    EWFlag,
    Frontier,
    GCounter,
    GSet,
    IVar,
    Lattice,
    LWWRegister,
    Max,
    MVRegister,
    ORMap,
    ORSet,
    OwnedMap,
    Pair,
    PNCounter,
    Replica,
    TwoPSet,
    encode,
)

HERE, THERE = Replica(1, 123_456_789, "kitchen"), Replica(1, 987_654_321, "cellar")
SIZE = 10_000
DELTAS = 20_000
STARTS = 1_000
DAY_S = 86_400
START_US = 1_700_000_000_000_000


class Cost(NamedTuple):
    """One line of the table: CPU seconds, or bytes; None where there is no such peer."""

    what: str
    ours: float
    peers: dict[str, float]
    goal: str = ""


def cpu_s(work: Callable[[Any], object], prepare: Callable[[], Any] = lambda: None) -> float:
    """Return the least CPU seconds of `work` over several runs, each on what `prepare` gave."""
    least = float("inf")
    for _ in range(5):
        given = prepare()
        before = time.process_time()
        work(given)
        least = min(least, time.process_time() - before)
    return least


def filled(replica: Replica, first: int, size: int = SIZE) -> ORSet:
    """Return a set of `size` integers from `first` on, added in one batch."""
    state = ORSet()
    state |= state.add_many(replica, range(first, first + size))
    return state


def join_all(state: Any, deltas: list[Any]) -> None:
    """Join every delta into `state`."""
    for delta in deltas:
        state |= delta


def one_element_deltas() -> list[ORSet]:
    """Return deltas that each add one element to a set of `SIZE`."""
    state, deltas = filled(HERE, 0), []
    for number in range(SIZE, SIZE + DELTAS):
        deltas.append(state.add(HERE, number))
        state |= deltas[-1]
    return deltas


def add_one_by_one(state: ORSet) -> None:
    """Add `SIZE` elements, each by its own delta."""
    for number in range(SIZE):
        state |= state.add(HERE, number)


def bare_adds(state: set[int]) -> None:
    """Add `SIZE` elements to Python's own set."""
    for number in range(SIZE):
        state.add(number)


def bare_deltas(state: set[int]) -> None:
    """Join `DELTAS` sets of one element."""
    for number in range(SIZE, SIZE + DELTAS):
        state |= {number}


def of_pycrdt() -> dict[str, float]:
    """Return what pycrdt costs, by the names of our lines; nothing where it is missing."""
    try:
        pycrdt = importlib.import_module("pycrdt")
    except ImportError:
        return {}

    def document(first: int) -> Any:
        made = pycrdt.Doc()
        fill(made, first)
        return made

    def fill(made: Any, first: int) -> None:
        elements = made.get("set", type=pycrdt.Map)
        with made.transaction():
            for number in range(first, first + SIZE):
                elements[str(number)] = True

    there = document(SIZE)
    whole = there.get_update()
    updates = []
    for number in range(DELTAS):
        before = there.get_state()
        there.get("set", type=pycrdt.Map)[f"+{number}"] = True
        updates.append(there.get_update(before))
    return {
        "adds": cpu_s(lambda made: fill(made, 0), pycrdt.Doc),
        "join": cpu_s(lambda here: here.apply_update(whole), lambda: document(0)),
        "deltas": cpu_s(lambda here: apply_all(here, updates), lambda: document(SIZE)),
        "bytes": len(whole) / SIZE,
    }


def apply_all(document: Any, updates: list[bytes]) -> None:
    """Apply every update to a pycrdt document."""
    for update in updates:
        document.apply_update(update)


ERLANG = """
Build = fun(Actor, Elements) -> lists:foldl(fun(E, S) ->
    {ok, Next} = state_awset:mutate({add, E}, Actor, S), Next end, state_awset:new(), Elements) end,
erlang:statistics(runtime),
A = Build(1, lists:seq(1, 2000)), {_, Adds} = erlang:statistics(runtime),
B = Build(2, lists:seq(2001, 4000)), erlang:statistics(runtime),
lists:foreach(fun(_) -> state_awset:merge(A, B) end, lists:seq(1, 100)),
{_, Joins} = erlang:statistics(runtime),
io:format("~w ~w ~w", [Adds, Joins, byte_size(state_awset:encode(erlang, A))]), halt().
"""


def of_reference() -> dict[str, float]:
    """Return what lasp-lang/types costs, scaled up; nothing where it is missing."""
    ebin, erl = os.environ.get("LASP_TYPES_EBIN"), shutil.which("erl")
    if not ebin or erl is None:
        return {}
    command = [erl, "-noshell", "-pa", ebin, "-eval", ERLANG]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # ours
    adds_ms, joins_ms, size_bytes = map(int, ran.stdout.split())
    scale = SIZE / 2_000
    return {
        "adds": scale * adds_ms / 1e3,
        "join": scale * joins_ms / 100 / 1e3,
        "bytes": size_bytes / 2_000,
    }


def costs() -> Iterator[Cost]:
    """Measure every line of the table."""
    peers = {"pycrdt": of_pycrdt(), "reference": of_reference()}

    def beside(name: str, **bare: float) -> dict[str, float]:
        return {peer: cost[name] for peer, cost in peers.items() if name in cost} | bare

    there, deltas = filled(THERE, SIZE), one_element_deltas()
    adds = beside("adds", bare=cpu_s(bare_adds, set))
    goal = f"{SIZE / 1_000_000:.4f} s"
    batch = cpu_s(lambda state: state.__ior__(state.add_many(HERE, range(SIZE))), ORSet)
    yield Cost("ORSet: 10,000 adds in a batch (s)", batch, adds, goal)
    yield Cost("ORSet: 10,000 adds one by one (s)", cpu_s(add_one_by_one, ORSet), adds)
    yield Cost(
        "ORSet: join of two of 10,000 (s)",
        cpu_s(lambda state: state.__ior__(there), lambda: filled(HERE, 0)),
        beside("join", bare=cpu_s(lambda s: s.__ior__(BARE), lambda: set(range(SIZE)))),
        "0.0070 s",
    )
    yield Cost(
        "ORSet: 20,000 joins of one element (s)",
        cpu_s(lambda state: join_all(state, deltas), lambda: filled(HERE, 0)),
        beside("deltas", bare=cpu_s(bare_deltas, lambda: set(range(SIZE)))),
        f"{DELTAS / 700_000:.4f} s",
    )
    of_elements = len(encode(GSet(set(range(SIZE))))) / SIZE
    state_bytes = len(encode(filled(HERE, 0))) / SIZE
    yield Cost("ORSet: bytes an element", state_bytes, beside("bytes"), f"{of_elements + 4:.1f} B")
    day, tombstones = samples(DAY_S, bound=100), tombstone_scheme()
    peer = {"tombstones": float(len(encode(tombstones)))}
    yield Cost("a day of 1 Hz, window 100 (B)", len(encode(day)), peer, "1000 B")


BARE = frozenset(range(SIZE, 2 * SIZE))


def samples(count: int, bound: int) -> BoundedLWWSet:
    """Return what is left of `count` samples a second apart, with some jitter."""
    state = BoundedLWWSet(bound=bound)
    times = [START_US + n * 1_000_000 + n * 7_919 % 2_000 for n in range(count)]
    state |= state.add_many(HERE, [2_150 + n * 31 % 40 for n in range(count)], times)
    return state


def tombstone_scheme() -> TwoPSet:
    """Return the talk's window: all samples added, and all but the last 100 marked removed."""
    added = {(START_US + n * 1_000_000, 2_150 + n * 31 % 40) for n in range(DAY_S)}
    removed = {sample for sample in added if sample[0] < START_US + (DAY_S - 100) * 1_000_000}
    return TwoPSet(GSet(added), GSet(removed))


class Claim(NamedTuple):
    """A cost that a docstring claims, in bytes, and what was measured."""

    what: str
    measured: float
    at_most: float


def growth(state: Any, write: Callable[[Any, Replica], Any], writers: list[Replica]) -> float:
    """Return the bytes that `state` gains for each of `writers` when each writes once."""
    before = len(encode(state))
    for writer in writers:
        state |= write(state, writer)
    return (len(encode(state)) - before) / len(writers)


def claims() -> Iterator[Claim]:
    """Measure what the docstrings claim."""
    starts = [Replica(n, 123_456_789 + n, "kitchen") for n in range(1, STARTS + 1)]
    devices = [Replica(1, 123_456_789 + n, f"pi-{n:04}") for n in range(STARTS)]
    name = len("pi-0000") + 1
    yield Claim("GCounter, a start", growth(GCounter(), lambda s, r: s.increment(r), starts), 16)
    yield Claim("PNCounter, a start", growth(PNCounter(), lambda s, r: s.decrement(r), starts), 16)
    of_pair = Pair(GCounter(), GCounter())
    yield Claim("Pair, beside its parts", len(encode(of_pair)) - 2 * len(encode(GCounter())), 6)
    yield Claim(
        "OwnedMap, an entry beside name and payload",
        growth(OwnedMap(), lambda s, r: s.put(r, 1_000, None), devices) - name - 1,
        16,
    )
    yield Claim(
        "OwnedMap, a mean's entry in a packed frame",
        growth(OwnedMap(), lambda s, r: s.put(r, 1_000, (100, 215_000)), devices),
        30,
    )
    yield Claim(
        "Frontier, a promise beside the name",
        growth(Frontier(), lambda s, r: s.promise(r, 1_000, START_US), devices) - name,
        22,
    )
    yield from claims_of_bounded_lww_set()
    yield from claims_of_registers()
    yield from claims_of_causal_states(starts)


def claims_of_bounded_lww_set() -> Iterator[Claim]:
    """Measure the claims of `crdts.bounded_lww_set`."""
    alone = len(encode(samples(0, bound=100)))
    yield Claim("BoundedLWWSet, no samples", alone, 40)
    kept = len(encode(samples(DAY_S, bound=100)))
    yield Claim("BoundedLWWSet, a sample", (kept - alone) / 100, 9)
    memory = held_bytes(lambda: samples(SIZE, bound=SIZE)) / SIZE
    yield Claim("BoundedLWWSet, a sample in memory", memory, 200)


def claims_of_registers() -> Iterator[Claim]:
    """Measure the claims of the types that hold one value, and of the growing sets."""
    yield Claim("Max", len(encode(Max().record(HERE, 2**40))), 14)
    register = LWWRegister().write(HERE, None, START_US)
    yield Claim("LWWRegister, beside value and name", len(encode(register)) - 9, 25)
    yield Claim("IVar, beside the value", len(encode(IVar().bind(HERE, None))) - 1, 5)
    numbers = [n + 70_000 for n in range(SIZE)]  # 5 B each, as plain data
    yield Claim("GSet, an element of 5 B", len(encode(GSet(set(numbers)))) / SIZE, 5.1)


def claims_of_causal_states(starts: list[Replica]) -> Iterator[Claim]:
    """Measure the claims of what forgets."""
    numbers = range(70_000, 70_000 + SIZE)  # 5 B each, as plain data
    state = ORSet()
    state |= state.add_many(HERE, numbers)
    yield Claim("ORSet, an element of 5 B", len(encode(state)) / SIZE, 5.1)
    for number in numbers[::2]:
        state |= state.remove(HERE, number)
    yield Claim("ORSet, one of 5 B in a state full of gaps", len(encode(state)) * 2 / SIZE, 9)
    yield Claim("ORSet, an element in memory", held_bytes(lambda: filled(HERE, 70_000)) / SIZE, 150)
    yield Claim("ORSet, a start once emptied", growth(ORSet(), emptied, starts), 16)
    register = MVRegister()
    yield Claim("MVRegister, a start", growth(register, lambda s, r: s.write(r, 0), starts), 16)
    yield Claim("EWFlag, a start", growth(EWFlag(), lambda s, r: s.enable(r), starts), 16)
    rooms: ORMap = ORMap(ORSet())
    for number in range(STARTS):
        rooms |= rooms.update(HERE, "hall", ORSet.add, 70_000 + number)
    yield Claim("ORMap, an element of 5 B and its key", len(encode(rooms)) / STARTS, 5 + 5 + 2)


def emptied(state: ORSet, replica: Replica) -> Lattice:
    """Add an element and remove it again, and return both in one delta."""
    added = state.add(replica, 1)
    return added | (state | added).remove(replica, 1)


def held_bytes(build: Callable[[], Any]) -> float:
    """Return the memory that what `build` gives holds on to."""
    tracemalloc.start()
    built = build()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del built
    return held


def write_line(*columns: object) -> None:
    """Write one line of a table."""
    widths = (44, 12, 12, 46)
    cells = (f"{column!s:<{width}}" for column, width in zip(columns, widths, strict=False))
    sys.stdout.write("  ".join(cells).rstrip() + "\n")


def main() -> int:
    """Print the tables; return 1 if a claim does not hold."""
    write_line("what", "ours", "goal", "peers (and how many times ours)")
    for cost in costs():
        peers = (
            f"{peer} {spent:.4g} ({spent / cost.ours:.2g}x)" for peer, spent in cost.peers.items()
        )
        write_line(cost.what, f"{cost.ours:.4g}", cost.goal, "  ".join(peers))
    if not is_installed("pycrdt"):
        write_line("pycrdt is not installed: pip install pycrdt")
    if not os.environ.get("LASP_TYPES_EBIN"):
        write_line("the reference is not there: name its directory in LASP_TYPES_EBIN")
    write_line()
    write_line("claim of a docstring (B)", "measured", "at most")
    broken = 0
    for claim in claims():
        broken += claim.measured > claim.at_most
        verdict = "" if claim.measured <= claim.at_most else "EXCEEDED"
        write_line(claim.what, f"{claim.measured:.1f}", f"{claim.at_most:g}", verdict)
    return 1 if broken else 0


def is_installed(module: str) -> bool:
    """Return whether `module` can be imported here."""
    return importlib.util.find_spec(module) is not None


if __name__ == "__main__":
    sys.exit(main())
