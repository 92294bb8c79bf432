"""One run: faults first, then heal, settle, and demand.

>>> run(Scenario(seed=1, size=2, steps=20)).trouble
()
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from typing import NamedTuple

from device_agent.agent.settings import Settings
from device_agent.agent.stored_rows import PaneId
from lasp_edge.evaluation.parted import PartedScans
from lasp_edge.language.halves import shares_of
from lasp_edge.ordered.gathering import OrderedRecord
from lasp_edge.protocol.commands import CommandLog
from lasp_edge.units import SECOND_US
from simulations.world.acting import check_acting
from simulations.world.again_checks import check_again
from simulations.world.age_checks import check_rest
from simulations.world.checks import Checks
from simulations.world.delivery_checks import absent
from simulations.world.device import VirtualDevice
from simulations.world.entries import plan_entries
from simulations.world.faults import STEP_US, Fault
from simulations.world.fleet_scanning import is_unsure_of_parts
from simulations.world.fleet_streamed import order_of
from simulations.world.keeper import PaneKey
from simulations.world.lake import SimulatedLake
from simulations.world.landed import LandedState
from simulations.world.misfortunes import befall, heal
from simulations.world.narrow import (
    NARROW,
    OF_CELLS,
    OF_ORDER,
    OF_PANES,
    OF_PROCESSES,
    OF_PRUNING,
    OF_SLIDING,
    narrowed,
)
from simulations.world.reported_checks import misreported
from simulations.world.scenario import CLOCKS, CLOCKS_EVERY, Scenario, reconnects
from simulations.world.shown_checks import check_shown
from simulations.world.world import World

SETTLE_STEPS = 900
"""Steps after which a healed world does not settle: some time-outs of two minutes."""
ROUNDS = 5
"""Rounds of idle beats until a healed world is at its fixed point: a star's diameter, two, and one
for the fence. Where devices do not connect again, what was lost is sent again after time-outs."""
ROUND_STEPS = Settings().keep_alive_us // STEP_US
AGAIN_STEPS = 150
"""The same where devices do not connect again: what was lost is sent again within two minutes and
a half. By then sinks have greeted devices of another store, and asks have come again."""
REPAIR_STEPS = 130 * SECOND_US // STEP_US
"""Steps until a lander has of shared variables what devices say: it asks for what was lost on the
way to it alone after two minutes."""
AGAIN_EVERY = 48
"""Of as many worlds there is one in which the broker forgets everything at rest."""
QUIET_STEPS = 25
"""Steps for which a settled world is watched: an idle device beats twice in them."""
MORE_BEATS = 2
"""Beats of a device in them, at most, beside those of who is idle: for who has come, or asked."""


class RunOutcome(NamedTuple):
    """What came of a run.

    Attributes:
        trouble: what must never happen, and did; empty for a good run.
        seen: kind of fault -> how often it happened.
        settled_steps: steps from healing to rest.
        trace: a hash of everything that was published.
    """

    scenario: Scenario
    trouble: tuple[str, ...]
    seen: Counter[str]
    settled_steps: int
    trace: str


def run(scenario: Scenario) -> RunOutcome:
    """Run a scenario to its end, or to its first trouble."""
    limits = [*(OF_PRUNING if scenario.gateways else ()), *(NARROW if scenario.narrow else ())]
    limits += OF_PANES if scenario.narrow or scenario.operated else ()
    limits += OF_SLIDING if scenario.acting else ()
    limits += OF_ORDER if scenario.ordered else ()
    limits += OF_CELLS if scenario.ordered and not scenario.synced else ()
    limits += OF_PROCESSES if scenario.narrow and scenario.has_processes_alone else ()
    with narrowed(limits):
        return _run(scenario)


def _run(scenario: Scenario) -> RunOutcome:
    checks = Checks()
    world = World(scenario, checks, start_us=scenario.start_us)
    settled = 0
    plan_entries(world)
    try:
        list(disturbed(world))
        if not world.trouble:
            settled = _settle(world)
        if not world.trouble:
            checks.at_the_end(world)
        if not world.trouble:
            world.trouble += [text for each in world.running() for text in misreported(world, each)]
            check_shown(world)
        if scenario.acting and not world.trouble:
            check_acting(world, checks.acting)
        former = scenario.ordered and order_of(scenario).differs  # what it sent is refused for ever
        former = former or (not world.trouble and _waits_for_ever(world))
        if not world.trouble and _is_watched(scenario) and not former:
            _demand_silence(world, checks)
        if not world.trouble and scenario.seed % AGAIN_EVERY == AGAIN_EVERY - 1 and not former:
            check_again(world)
    finally:
        world.close()
    trace = checks.trace.hexdigest()
    return RunOutcome(scenario, tuple(world.trouble), world.seen, settled, trace)


def _is_watched(scenario: Scenario) -> bool:
    """Return whether it is watched at rest; what a clock that was ahead has stamped shows there."""
    return scenario.seed % 4 == 0 or scenario.seed % CLOCKS_EVERY == CLOCKS_EVERY - 2


def _demand_silence(world: World, checks: Checks) -> None:
    """Demand that a settled world is silent but for beats, and that nobody asks for ever."""
    for _ in range(world.scenario.faults.delay_steps):
        world.step()  # until the last message of before is here
    for _ in range(SETTLE_STEPS):
        if not somebody_asks(world):
            break
        world.step()  # a copy that ran to the end may have made a device ask once more
    else:
        world.trouble.append("a device asks who it was before, and never stops")
    checks.quiet, began_us = True, world.now_us
    for _ in range(QUIET_STEPS):
        world.step()
    checks.quiet = False
    most = (world.now_us - began_us) // Settings().keep_alive_us + MORE_BEATS
    for device, beats in checks.beats.items():
        if beats > most:
            world.trouble.append(f"{device.name} beats {beats} times at rest, {most} at most")
    world.trouble += [*check_rest(world), *absent(world)]


def disturbed(world: World) -> Iterator[int]:
    """Let readings come and faults befall, to the first trouble; yield each step's number."""
    due: dict[int, list[Fault]] = defaultdict(list)
    for fault in world.scenario.schedule:
        due[fault.step].append(fault)
    for step in range(1, world.scenario.steps + 1):
        for fault in due[step]:
            befall(world, fault)
        world.step(reading=True)
        yield step
        if world.trouble:
            return


def _settle(world: World) -> int:
    """Heal everything, and run until nothing is due; return how many steps that took."""
    heal(world)
    while world.to_come and not world.trouble:
        world.step()  # what a link held up comes after the end of all faults
    agreed: int | None = None
    for steps in settling(world):
        if world.trouble:
            return steps
        if agree(world):
            agreed = steps if agreed is None else agreed
            if landers_know(world):
                _demand_in_time(world, agreed, steps - agreed)
                return steps
        world.step()
    world.trouble.append(f"not settled after {SETTLE_STEPS} steps: {unsettled(world)}")
    return SETTLE_STEPS


def settling(world: World, most: int = SETTLE_STEPS) -> Iterator[int]:
    """Count the steps of a healed world while it may be on its way to rest.

    Where a share follows from the one before, each event in order takes an exchange: as long as one
    after the other is stepped, there is patience.

    Args:
        world: whoever is given a number lets it make a step.
        most: steps until it is at rest, or one more event in order is stepped.
    """
    count, last, stepped = 0, 0, 0
    while count - last < most:
        yield count
        count += 1
        now = sum(record.known for _, records in _in_order(world) for record in records)
        last, stepped = (count, now) if now > stepped else (last, stepped)


def _in_order(world: World) -> Iterator[tuple[str, Collection[OrderedRecord]]]:
    """Yield each scan with local events, and its events in order at a sink."""
    for sink in world.sinks:
        streams = sink.lander.core.streams
        for name, gathering in streams.parted.gathered.items() if streams else ():
            yield name, gathering.records.values()


def _demand_in_time(world: World, agreed: int, repairing: int) -> None:
    """Demand that a healed world was at rest soon, and sooner where its devices connected again.

    Args:
        world: at rest now.
        agreed: steps until all had landed and all devices agreed.
        repairing: steps from then on until landers knew what they did, too.
    """
    refuses = world.seen["retire"] or world.seen["former_lander"]  # what is refused waits longer
    refuses = refuses or _is_taken_for_late(world) or world.seen["twin"]
    refuses = refuses or world.seen["forged_hello"]  # who says no more is heard for two minutes
    # Where a share follows from the one before, each event in order takes an exchange.
    refuses = refuses or world.scenario.synced
    sweeps = world.scenario.narrow  # what is in the store alone waits for its turn
    if refuses or sweeps:
        return
    most = ROUNDS * ROUND_STEPS if reconnects(world.scenario) else AGAIN_STEPS
    late = agreed - most - world.scenario.faults.delay_steps
    late = max(late, repairing - REPAIR_STEPS)
    if late > 0:
        world.trouble.append(f"settled after {agreed} + {repairing} steps, {late} too late")


def _is_taken_for_late(world: World) -> bool:
    """Return whether a new store may speak before the one in whose place it is, by their clocks.

    Then it is waited for until that one was silent for long. A clock that was ahead counts up to a
    device's own, where that is trusted.
    """
    scenario, seen = world.scenario, world.seen
    faults = scenario.schedule
    goes_back = any(each.kind == "gateway_jump" and each.amount < 0 for each in faults)
    is_doubted = scenario.unsynchronised or any(each.kind in CLOCKS for each in faults)
    return bool(seen["gateway_jump"] and seen["new_lake"]) and (goes_back or is_doubted)


def at_rest(world: World) -> bool:
    """Return whether everything has landed, and all devices agree."""
    return agree(world) and landers_know(world)


def agree(world: World) -> bool:
    """Return whether all panes have landed, and all devices agree and know who they were."""
    devices = world.running()
    if len(devices) < len(world.devices) or not all(device.connected for device in devices):
        return False
    if not all(device.has_read_all for device in devices) or somebody_asks(world):
        return False
    if not all(sink.is_running for sink in world.sinks):
        return False
    _give_up_lost(world)
    stores = {sink.lander.lake for sink in world.sinks}
    for device in devices:
        if not device.core.intake.sources.stopped:  # it lets all parts be due
            device.core.handle_end()
        if not stores <= {sink.store for sink in device.core.panes.sinks}:
            return False  # it knows no store yet
    first = devices[0].digests()
    commands = world.operator.commands
    if any(sink.lander.commands.control != commands.control for sink in world.sinks):
        return False
    return all(device.digests() == first and device.is_at_rest(commands) for device in devices)


def _give_up_lost(world: World) -> None:
    """Let a lake that was put back wait for nothing that its device has lost, too."""

    def seq_of(at: PaneKey) -> int:
        stream, key, pane_us, name, *of = at
        pane = PaneId(pane_us, stream, key, *of)
        every = [world.devices[each] for each in world.addresses.of.get(name, ())]
        return max([_seq_of(device, pane) for device in every], default=0)

    for sink in world.sinks:
        if isinstance(sink.lander, SimulatedLake):
            sink.lander.give_up(seq_of)


def _seq_of(device: VirtualDevice, pane: PaneId) -> int:
    """Return the greatest version of a pane entry that a device has; 0 for none."""
    kept, store = device.core.panes.memory.entries.get(pane), device.disk.store
    stored = [] if store is None else [row for _, row in store.panes_named([pane])]
    return max([row.seq for row in (*stored, kept) if row is not None], default=0)


def somebody_asks(world: World) -> bool:
    """Return whether a device asks who it was before, or is about to."""
    fences = [device.core.fence for device in world.running()]
    return any(fence.is_asking or fence.is_due_again for fence in fences)


def landers_know(world: World) -> bool:
    """Return whether all that devices which agree know of shared variables has landed.

    And whether sinks have all that they wait for of streams over the fleet.
    """
    device, *_ = world.running()
    landers = [sink.lander for sink in world.sinks]
    if not all(_has_landed(device, each) for each in landers):
        return False
    is_known = all(_knows_shares(world, each) for each in world.running())
    return _waits_for_ever(world) or (is_known and all(map(_is_gathered, landers)))


def _waits_for_ever(world: World) -> bool:
    """Return whether a sink may wait for an event in order, which a device lost with its store.

    Of several sinks one has it, or lacks it, and devices follow another one.
    """
    if not world.scenario.synced or not any(map(is_unsure_of_parts, world.devices.values())):
        return False
    known = [
        [(name, set(each.records)) for name, each in streams.parted.gathered.items()]
        for streams in (sink.lander.core.streams for sink in world.sinks)
        if streams is not None
    ]
    return any(each != known[0] for each in known[1:])


def _is_gathered(lander: LandedState) -> bool:
    """Return whether all devices have answered at all events in order."""
    streams = lander.core.streams
    return streams is None or streams.is_settled


def _knows_shares(world: World, device: VirtualDevice) -> bool:
    """Return whether a device has all that the gateway which it follows has published."""
    shares = device.core.shares
    followed = [s for s in world.sinks if shares is not None and s.name == shares.followed]
    if shares is None or not followed or followed[0].lander.core.streams is None:
        return True
    parted = followed[0].lander.core.streams.parted
    if shares.is_waiting(device.now_us(world.now_us)):
        return False
    versions = {cell_us: version for (_, cell_us), version in shares.versions.items()}
    return all(
        versions.get(cell_us, 0) >= number or _has_the_same(device, parted, name, cell_us)
        for (name, cell_us), number in parted.shown.items()
    )


def _has_the_same(device: VirtualDevice, parted: PartedScans, name: str, cell_us: int) -> bool:
    """Return whether a device holds what a gateway has of a cell, by another version or of another.

    Nobody publishes it again for such a device: its answers show that it lacks nothing.
    """
    shares, store = device.core.shares, device.disk.store
    assert shares is not None, "a program with shares"
    assert store is not None, "a running process has opened its store"
    is_constant = shares.plan.functions.streams[name].is_share_constant
    history = shares.history(device.name, store.history)
    held = dict(history.taken(shares_of(f"{name}: "), cell_us, cell_us + 1))
    return cell_us in held and held[cell_us].places == {
        place: (each.key, *((False, None) if is_constant else each[1:3]))
        for place, each in parted.records(name, cell_us).items()
    }


def _has_landed(device: VirtualDevice, lander: LandedState) -> bool:
    """Return whether all that a device knows of shared variables has landed.

    More may have: what a device knew alone that lost its store.
    """
    return not lander.keeps_all or all(
        state.whole <= lander.shared.get(name, state.whole.bottom())
        for name, state in device.core.variables.shared_states.items()
    )


def unsettled(world: World) -> str:
    """Return which devices are not at rest, and why."""
    commands = world.operator.commands
    reasons = {key: _why(device, commands) for key, device in world.devices.items()}
    waiting = [f"{key} ({reason})" for key, reason in reasons.items() if reason]
    for name, records in _in_order(world):
        open_ones = sum(not each.answered for each in records)
        waiting += (
            [f"scan {name}: not all have answered at {open_ones} events"] if open_ones else []
        )
    return ", ".join(waiting) or "they hold different states"


def _why(device: VirtualDevice, commands: CommandLog) -> str:
    if device.durable is None:
        return "off"
    agreements = device.core.agreements.all()
    unsettled = [name for name, each in agreements.items() if not each.settled or each.offline]
    reasons = [] if device.core.done else ["not all landed"]
    reasons += [] if device.commands() == commands else ["commands unknown"]
    reasons += ["asks who it was"] if device.core.fence.is_asking else []
    return ", ".join(reasons + unsettled)
