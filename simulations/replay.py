"""Readings that are given, run through a fleet of real cores on virtual time, and compared.

The fleet has the devices that the readings name. It takes the readings in step by step, in the
order in which they are given, while faults befall; then all faults end, it settles, and time passes
until nothing is left that time alone brings, such as the end of a session.

    >>> from lasp_edge.examples.greenhouse import program
    >>> with replaying(program.plan(), [
    ...     Reading("kitchen", "temperature", 21.5, 1_764_028_800_000_000, {"room": "kitchen"}),
    ...     Reading("attic", "temperature", 30, 1_764_028_801_000_000, {"room": "attic"}),
    ... ]) as replay:
    ...     replay.compared.lines()
    ...     replay.failures
    ['12 of 12 windows are what the oracle says', '4 of 4 values are what the oracle says']
    []
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from crdts import ControlLog
from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from device_agent.agent.stored_rows import Retraction
from lasp_edge.language.acting import FoldValue
from lasp_edge.language.forms import WindowForms
from lasp_edge.language.parameter_scan import NO_ENTRIES
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET
from lasp_edge.protocol.commands import CommandLog
from lasp_edge.units import SECOND_US
from simulations.comparison import Comparison, compare, watched_on_s
from simulations.fleet import GENTLE, Fleet
from simulations.oracle import Reading, accepted, rows
from simulations.oracle.streams import emitted
from simulations.world.device import VirtualDevice
from simulations.world.faults import FaultRates
from simulations.world.programs import LIVE
from simulations.world.world import World

STEPS = 4
"""Steps in which all readings are taken in; where faults befall `FAULTY_STEPS`."""
FAULTY_STEPS = 40
KNOWING_STEPS = 40
"""Steps in which devices learn of the values of parameters, at most, before they read."""
PROMISING_STEPS = 120
"""Steps in which devices promise that nothing older comes, at most: a promise does not pass the
next timer of a scan of its device, and each that rings may set another one."""
PASSING_STEPS = 3
"""Steps in which devices see that time has passed, and what that brings is on its way."""
DAY_US = 86_400 * SECOND_US
SPANS_US = (60 * SECOND_US, 3_600 * SECOND_US, DAY_US, 40 * DAY_US, 4_000 * DAY_US)
"""After so much time, one span after the other, it is looked whether timers are left."""
REFUSED = "refused: "
"""What the counted names of refused readings begin with."""
IN_WINDOW = "failed: window "
"""What the counted names begin with of readings for which a function of a window failed."""


@dataclass(frozen=True, slots=True)
class ReplayedFleet:
    """A fleet at rest that has taken in all readings.

    Attributes:
        fleet: the fleet, after time has passed.
        compared: what it computed, beside the oracle.
        values: dynamic fold -> key -> its value on one device, before time passed.
        alerts: device -> alert -> what it says, before time passed; on its results after that.
        variables: shared or derived variable -> its value, on which all devices agree.
        failures: what functions of the program raised, and why readings were refused.
    """

    fleet: Fleet
    compared: Comparison
    values: dict[str, dict[str, FoldValue]]
    alerts: dict[str, dict[str, Any]]
    variables: dict[str, Any]
    failures: list[str]


@contextmanager
def replaying(
    plan: Plan,
    readings: Sequence[Reading],
    *,
    faults: FaultRates = GENTLE,
    seed: int = 0,
    entries: ControlLog = NO_ENTRIES,
    retain_us: int = Settings().retain_us,
) -> Iterator[ReplayedFleet]:
    """Run readings through a fleet, and yield it at rest.

    Args:
        plan: of the program.
        readings: in the order in which devices take them in.
        faults: what may go wrong meanwhile.
        seed: of everything that is drawn.
        entries: the values of parameters, which devices know of before they read.
        retain_us: how much older than the newest reading of its device a reading may be.

    Raises:
        ValueError: there is no reading.
        AssertionError: an agent ended, or the fleet did not settle.
    """
    if not readings:
        raise ValueError("a reading is needed, as a device, an event, a value and a time")
    times_us = [each.time_us for each in readings]
    names = sorted({each.device for each in readings})
    fleet = Fleet(
        plan,
        size=len(names),
        names=names,
        seed=seed,
        faults=faults,
        settings=Settings(retain_us=retain_us),
        start_us=max(times_us) + SECOND_US,
    )
    try:
        _let_know(fleet, entries)
        _take_in(fleet, readings, STEPS if faults == GENTLE else FAULTY_STEPS)
        _settle(fleet, retain_us)
        fleet.step(watched_on_s(plan))
        first = fleet.running()[0]
        values = {name: _values(first, name) for name in plan.dynamic_folds}
        alerts = {each.name: each.report().get("alerts", {}) for each in fleet.running()}
        for until_us in ends_us(fleet.world, readings):
            pass_time(fleet.world, until_us)
            _settle(fleet, retain_us)
        compared = compare(fleet.world, _not_too_late(plan, readings, retain_us))
        for each in fleet.running():
            alerts[each.name] = alerts[each.name] | _row_alerts(each)
        variables = _variables(fleet.running()[0])
        failures = _failures(fleet, retain_us)
        yield ReplayedFleet(fleet, compared, values, alerts, variables, failures)
    finally:
        fleet.close()


def _not_too_late(plan: Plan, readings: Sequence[Reading], retain_us: int) -> list[Reading]:
    """Return the readings that no device refuses for their age."""
    found, newest_us = [], dict[str, int]()
    for each in readings:
        high_us = newest_us.get(each.device)
        if high_us is not None and each.time_us < high_us - retain_us:
            continue
        found.append(each)
        is_newest = high_us is None or each.time_us > high_us
        if is_newest and accepted(plan, [each]):  # what is refused or taken back is not newest
            newest_us[each.device] = each.time_us
    return found


def _settle(fleet: Fleet, retain_us: int) -> None:
    """Let a fleet settle.

    Raises:
        AssertionError: it did not, with what failed in it.
    """
    try:
        fleet.settle()
    except AssertionError as error:
        raise AssertionError("; ".join([str(error), *_failures(fleet, retain_us)])) from None


def _values(device: VirtualDevice, name: str) -> dict[str, FoldValue]:
    """Return the values of a fold by key, as all devices of a fleet at rest know them."""
    known = {key: device.core.acting.values.known(name, key) for key in device.results(name)}
    # A device that has just started waits for what others have; here nothing is on its way.
    return {key: value._replace(settled=True) for key, value in known.items() if value is not None}


def _variables(device: VirtualDevice) -> dict[str, Any]:
    """Return the values of shared variables, and of those that are derived from them."""
    derived = {name: device.core.derived.value(name) for name in device.plan.derivations}
    return {**device.core.variables.shared(), **derived}


def _row_alerts(device: VirtualDevice) -> dict[str, Any]:
    """Return what a device's alerts on its results say."""
    found, plan = device.report().get("alerts", {}), device.plan
    return {n: each for n, each in found.items() if plan.alerts[n].variable in plan.device_results}


def _let_know(fleet: Fleet, entries: ControlLog) -> None:
    """Set parameters, and wait until all devices have received that, or faults take too long."""
    fleet.world.operator.commands |= CommandLog(control=entries)
    for _ in range(KNOWING_STEPS if entries.entries else 0):
        fleet.step()
        if all(entries <= device.commands().control for device in fleet.running()):
            return


def _take_in(fleet: Fleet, readings: Sequence[Reading], steps: int) -> None:
    """Let devices take in their readings in their order, some in each step."""
    by_device: dict[str, list[Reading]] = {}
    for each in readings:
        by_device.setdefault(each.device, []).append(each)
    for step in range(steps):
        for name, several in by_device.items():
            share = several[len(several) * step // steps : len(several) * (step + 1) // steps]
            if share:
                reader = fleet.devices[name]
                reader.read(_batch(share), reader.now_us(fleet.now_us))
        fleet.step()


def _batch(readings: Sequence[Reading]) -> Batch:
    return Batch(
        LIVE,
        [each.event for each in readings],
        [each.time_us for each in readings],
        [Retraction(each.value) if each.retracted else each.value for each in readings],
        [each.tags for each in readings],
        places=[each.place for each in readings] if any(each.place for each in readings) else [],
    )


def pass_time(world: World, until_us: int) -> None:
    """Let time pass at once, in which no source has anything: timers of scans ring."""
    world.now_us = max(world.now_us, until_us)
    for device in world.running():
        sources = device.core.intake.sources
        sources.stopped = False  # a fleet that settles stops them: then no time passes for them
        sources.advance(_batch([]), world.now_us, stamped=False)
    for _ in range(PASSING_STEPS):
        world.step()
    if world.plans[-1].fleet_streams:
        for _ in range(PROMISING_STEPS):
            if _is_promised(world, until_us - Settings().lateness_us):
                return
            world.step()


def _is_promised(world: World, until_us: int) -> bool:
    """Return whether all devices have promised until a time: timers of the fleet ring by that."""
    frontiers = (sink.lander.core.coverage.frontier for sink in world.sinks)
    return all(each is not None and each >= until_us for each in frontiers)


def ends_us(world: World, readings: Sequence[Reading]) -> Iterator[int]:
    """Yield the times up to which time is to pass: until nothing is left that it alone brings.

    Streams have nothing more to emit, and the windows of what they emitted last are final.
    """
    plan, end_us = world.plans[-1], max(each.time_us for each in readings)
    log = world.operator.commands.control
    for each_us in _emitting_until_us(world, readings) if plan.streams else ():
        yield each_us
        end_us = each_us
    forms = [WindowForms(each, plan.functions, log).forms for each in plan.windows.values()]
    sizes_us = [form.size_us for several in forms for form in several]
    yield end_us + max(sizes_us, default=0) + Settings().lateness_us + SECOND_US


def _emitting_until_us(world: World, readings: Sequence[Reading]) -> Iterator[int]:
    """Yield the times up to which time is to pass until streams have nothing more to emit."""
    plan, last_us = world.plans[-1], max(each.time_us for each in readings)
    log = world.operator.commands.control
    names = [device.name for device in world.devices.values()]
    for span_us in SPANS_US:
        yield last_us + span_us
        reached = dict.fromkeys([FLEET, *names], last_us + span_us - Settings().lateness_us)
        streams = {w.source.name for w in plan.windows.values()} & plan.streams.keys()
        if all(
            list(emitted(plan, name, readings, log=log))
            == list(emitted(plan, name, readings, reached, log))
            for name in streams
        ) and all(
            rows(plan, name, readings, log=log) == rows(plan, name, readings, reached, log)
            for name in plan.stream_results
        ):
            return


def _failures(fleet: Fleet, retain_us: int) -> list[str]:
    """Return what functions raised, and why readings were refused, and how many."""
    found, counted = set[str](), Counter[str]()
    for device in fleet.running():
        found.update(device.report()["failures"])
        totals = device.core.counters.totals
        found.update(name for name in totals if name.startswith(IN_WINDOW))
        counted.update({n: totals[n] for n in totals if n.startswith(REFUSED)})
        if device.counted("too_late"):
            days = f"{retain_us / DAY_US:g}"
            late = f"more than {days} days older than one that {device.name} read before"
            counted[f"{REFUSED}too late: {late} (retain_days={days})"] = device.counted("too_late")
    for sink in fleet.world.sinks:
        found.update(sink.lander.failures)
    found.update(f"{name} (readings: {count:,})" for name, count in counted.items())
    return sorted(found)
