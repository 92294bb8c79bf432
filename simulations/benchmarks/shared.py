"""A variable that the fleet shares: what one change costs, by the number of its elements.

Run: `python -m simulations.benchmarks shared`. An element is added to an ORSet in the way of an
agent's: its delta is joined, kept for the store, put into the trace that the device leaves at the
broker, and the digest is asked for that the next beat says. The digest is a sum that is kept up to
date (`crdts.tally`), so a change should cost the same whatever the set holds.

What stands in for it is the digest alone, made again from the encoded state, as it once was.
"""

from collections.abc import Iterator
from typing import Any

from crdts import ORSet
from crdts.wire import encode
from device_agent.agent.changes import Restored
from device_agent.agent.core import Core
from device_agent.agent.settings import Settings
from device_agent.agent.variables.states import SharedState
from lasp_edge import Program
from lasp_edge.protocol.inputs import text_hash
from simulations.benchmarks.measure import MET, MISSED, Line, cpu_s

SIZES = (100, 1_000, 10_000, 100_000)
CHANGES = 1_000
FLAT = 2.0
"""O(change): the largest set's change costs at most this many times the smallest one's."""


def _state(elements: int) -> tuple[Core, SharedState]:
    """Return an agent whose shared set has this many elements."""
    program = Program("benchmark")
    program.event("tag")
    program.declare(ORSet(), "seen")
    core = Core(program.plan(), "pi-1", 7, Restored(), Settings())
    state = core.variables.shared_states["seen"]
    state.store(_whole(state).add_many(core.replica, [f"tag {n}" for n in range(elements)]))
    core.prepare_commit()
    core.committed()
    return core, state


def _whole(state: SharedState) -> ORSet:
    assert isinstance(state.whole, ORSet)
    return state.whole


def change_s(elements: int) -> float:
    """Return the CPU seconds of one added element, everything that follows from it included."""
    core, state = _state(elements)
    done = 0

    def work(_given: Any) -> None:
        nonlocal done
        for number in range(done, done + CHANGES):
            state.store(_whole(state).add(core.replica, f"new {number}"))
            assert state.digest
            core.prepare_commit()
            core.committed()
        done += CHANGES

    return cpu_s(work, rounds=3) / CHANGES


def rebuilt_s(elements: int) -> float:
    """Return the CPU seconds of the digest, made again."""
    _, state = _state(elements)
    times = max(1, 20_000 // elements)

    def work(_given: Any) -> None:
        for _ in range(times):
            text_hash(encode(state.whole).hex())

    return cpu_s(work, rounds=3) / times


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    sizes = SIZES[:-1] if quick else SIZES
    what = "a shared ORSet, one element added, by the number of elements"
    first_s = 0.0
    for elements in sizes:
        spent_s = change_s(elements)
        first_s = first_s or spent_s
        grown = spent_s / first_s
        words = f"{grown:.1f} times the cost at {sizes[0]}"
        if elements == sizes[-1]:
            words += f", <= {FLAT:.3g}{MET if grown <= FLAT else MISSED}"
        ratio = rebuilt_s(elements) / spent_s
        yield Line(what, f"{elements:,}", CHANGES * spent_s, spent_s, "s", ratio, words)
    yield Line(what, "", note="in brackets: how many times as long the digest made again takes")
