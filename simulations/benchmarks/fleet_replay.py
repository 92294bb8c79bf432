"""The replay ratio at a gateway: how often it steps an item of a scan over the fleet.

Run: `python -m simulations.benchmarks fleet_replay`. 100 devices measure once a second, and each
sends a cell of ten seconds once it has ended, at a time of its own; a gateway takes a turn a
second. Where rows are there at once, an item of one device comes after later ones of others, and
what follows is stepped again. Where rows wait until all devices have reported, each item is stepped
once: that is the goal of those lines.

The last lines are FlameStream's own case: items come one by one, each at most two places too late,
here from four devices. Beside it stands its algorithm on the same shuffles.

Source: see `simulations.benchmarks.ordered`.
"""

from collections.abc import Iterator
from random import Random
from typing import Final

from crdts import Frontier, Replica, Version
from crdts.frontier import Promise
from device_agent.gateway.core import GatewayCore, WaitingTerms
from lasp_edge import Event, scans
from lasp_edge.language.plan import Plan
from lasp_edge.ordered.cells import CELL_US, PRESENT, Cell, Item, cell_of, packed
from lasp_edge.ordered.stages import ScanStage
from lasp_edge.protocol.acceptance import Acceptance, Accepted, PaneRows
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.frontier import Listening
from lasp_edge.protocol.limits import NEVER_US
from lasp_edge.protocol.topics import Topics
from lasp_edge.units import SECOND_US
from simulations.benchmarks.fleet_order import BEGIN_US, TOGETHER, plan_of
from simulations.benchmarks.measure import OURS, Line, sizes
from simulations.benchmarks.ordered import (
    DISORDER,
    SHUFFLED,
    SHUFFLES,
    WINDOW,
    flamestream,
    shuffled,
)
from simulations.world.keeper import SimulatedKeeper

DEVICES, QUICK_DEVICES, CELLS = 100, 10, 12
FLAME_DEVICES = 4
_CELL_S: Final = CELL_US // SECOND_US


def added(state: float, event: Event) -> float:
    """Return a running total."""
    return state + event.value


SCANS = {
    "sessions": (scans.sessions(gap_s=0.4), True),
    "last(2)": (scans.last(WINDOW), False),
    "a running total": (scans.running(added), False),
}
"""The scan, and whether each four devices have an order of their own."""


class Evaluator:
    """A gateway that takes cells of items.

    Args:
        plan: a program of one scan over the fleet.
        devices: that it waits for.
        wait_us: for how long rows wait for devices before they are tentative.
    """

    def __init__(self, plan: Plan, devices: list[str], wait_us: int) -> None:
        self._keeper, self._turns = SimulatedKeeper(), 0
        self._stream, self._devices = plan.item_streams["x"].stream, devices
        acceptance = Acceptance(plan.sent_streams, (), Topics(plan.name), ("gateway", "store"))
        terms = WaitingTerms(tuple(devices), tentative_after_us=wait_us)
        self._core = GatewayCore(plan, acceptance, self._keeper, Replica(1, 7, "gateway"), terms)

    def take(self, cells: list[tuple[str, Cell]], low_us: dict[str, int], now_us: int) -> None:
        """Take cells of devices, and what all devices promise."""
        self._turns += 1
        accepted = Accepted(rows=[self._entry(*each, now_us) for each in cells])
        version = Version(1, 7, self._turns)
        accepted.promises = Frontier(
            {name: Promise(version, low_us[name], False, now_us) for name in low_us}  # noqa: FBT003
        )
        turn = self._core.join(accepted, Listening(now_us, BEGIN_US - 3_600 * SECOND_US))
        self._keeper.commit(turn.changes)

    def _entry(self, device: str, cell: Cell, now_us: int) -> PaneRows:
        content, at_us = ((packed(cell),),), cell_of(min(cell).time_us)
        at = (self._stream, CELL_US, 1, 7, content, ("",), (at_us,), (self._turns,))
        return PaneRows(device, PaneEntries(*at), now_us)

    @property
    def steps(self) -> int:
        """How often an item was stepped."""
        assert self._core.streams is not None
        nodes = self._core.streams._engine.graph.nodes  # noqa: SLF001 - counted from outside
        return sum(node.stage.steps for node in nodes if isinstance(node.stage, ScanStage))


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    count = QUICK_DEVICES if quick else DEVICES
    for name, (scan, keyed) in SCANS.items():
        over = f"{TOGETHER} of {count} devices" if keyed else f"{count} devices"
        for wait_us, when in ((0, "at once"), (NEVER_US, "once all devices have reported")):
            ratio = steps_an_item(scan, count, keyed=keyed, wait_us=wait_us)
            what = f"steps an item, {name} over {over}, rows {when}"
            yield from sizes(what, "steps", {OURS: ratio}, goal=1.0 if wait_us else None)
    yield from _flamestream(1 if quick else SHUFFLES)


def steps_an_item(scan: scans.Scan, count: int, *, keyed: bool, wait_us: int) -> float:
    """Return the steps an item at a gateway, of devices that send their cells one by one."""
    rng, names = Random(count), [f"pi-{n}" for n in range(count)]
    phase_us = {name: rng.randrange(CELL_US) for name in names}
    sends_us = {name: n * CELL_US // count for n, name in enumerate(rng.sample(names, count))}
    evaluator, low_us = Evaluator(plan_of(scan), names, wait_us), dict.fromkeys(names, BEGIN_US)
    for second in range(1, (CELLS + 1) * _CELL_S + 1):
        now_us, cells = BEGIN_US + second * SECOND_US, []
        for n, name in enumerate(names):
            ended_us = cell_of(now_us - sends_us[name])
            if low_us[name] < ended_us <= BEGIN_US + CELLS * CELL_US:
                low_us[name] = ended_us
                room = n // TOGETHER if keyed else 0
                cells.append((name, _cell(ended_us - CELL_US, phase_us[name], n, room)))
        evaluator.take(cells, low_us, now_us)
    return evaluator.steps / (count * CELLS * _CELL_S)


def _cell(begin_us: int, phase_us: int, number: int, room: int) -> Cell:
    """Return what a device has read in a cell: a reading a second."""
    first_us = begin_us + phase_us % SECOND_US
    items = (
        Item(first_us + at * SECOND_US, 1 + (7 * number + 13 * at) % 97, f'{{"room":"{room}"}}')
        for at in range(_CELL_S)
    )
    return dict.fromkeys(items, PRESENT)


def _flamestream(count: int) -> Iterator[Line]:
    """Yield the lines of FlameStream's own case."""
    orders = [shuffled(seed) for seed in range(count)]
    items = count * SHUFFLED
    theirs = sum(map(flamestream, orders)) / items
    ours = sum(map(one_by_one, orders)) / items
    what = f"steps an item, last({WINDOW}) over {FLAME_DEVICES} devices, {DISORDER} places too late"
    notes = {"FlameStream": "its algorithm, on the same shuffles"}
    yield from sizes(what, "steps", {OURS: ours, "FlameStream": theirs}, goal=theirs, notes=notes)


def one_by_one(order: list[int]) -> int:
    """Return the steps where items come one by one, each of the next device, all in one cell."""
    names = [f"pi-{n}" for n in range(FLAME_DEVICES)]
    evaluator = Evaluator(plan_of(scans.last(WINDOW)), names, 0)
    low_us = dict.fromkeys(names, BEGIN_US)
    cells: dict[str, Cell] = {name: {} for name in names}
    for n in order:
        name = names[n % FLAME_DEVICES]
        cells[name][Item(BEGIN_US + n, n, '{"room":"0"}')] = PRESENT
        evaluator.take([(name, cells[name])], low_us, BEGIN_US + SECOND_US)
    return evaluator.steps
