"""A run of a simulated program: readings and faults, then healed, settled and compared."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from crdts import ControlLog
from lasp_edge.language.parameter_scan import NO_ENTRIES
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.commands import CommandLog
from simulations.comparison import Comparison, compare
from simulations.oracle import Reading
from simulations.replay import IN_WINDOW, REFUSED, ends_us, pass_time
from simulations.world.device import OUTCOMES, TWICE
from simulations.world.faults import START_US, STEP_US
from simulations.world.misfortunes import heal
from simulations.world.operator import SimulatedOperator
from simulations.world.run import SETTLE_STEPS, at_rest, disturbed, settling, unsettled
from simulations.world.scenario import Scenario
from simulations.world.sensors import Sensors
from simulations.world.world import World

POINTS = 240
"""Points of a plot's line, about."""
FORGETTING = ("store_lost", "older_image", "unsynced_lost", "bit_flip", "clone")
"""Kinds of faults under which readings may be lost, for no store has them any more."""
WHY = (REFUSED, IN_WINDOW)
"""What names begin with under which devices count readings by the reason why they do not count."""


class RunSample(NamedTuple):
    """The state of the fleet after a step.

    Attributes:
        agreeing: the share of devices that hold what most devices hold.
        sent_bytes: published since the sample before, a step and device.
        stale_s: how far the lake's frontier is behind the clock; 0 before the first promise.
    """

    step: int
    agreeing: float
    sent_bytes: float
    stale_s: float


@dataclass(frozen=True, slots=True)
class SampledRun:
    """The outcome of a program's run.

    Attributes:
        trouble: mistakes; empty for a good run.
        compared: what the fleet computed, beside the oracle.
        counted: how many readings the devices say do not count, or may count twice, and why.
        failures: what functions of the program raised on devices and at sinks.
    """

    trouble: list[str]
    samples: list[RunSample]
    seen: Counter[str]
    readings: int
    sent_bytes: int
    settled_steps: int
    compared: Comparison
    counted: Counter[str]
    failures: list[str]

    @property
    def counts_why(self) -> bool:
        """Whether devices refused readings, or functions of windows failed for them."""
        return any(name.startswith(WHY) for name in self.counted)

    def __add__(self, other: object) -> "SampledRun":
        """Return the outcome of two fleets, with the samples of the first."""
        assert isinstance(other, SampledRun)
        return SampledRun(
            self.trouble + other.trouble,
            self.samples,
            self.seen + other.seen,
            self.readings + other.readings,
            self.sent_bytes + other.sent_bytes,
            max(self.settled_steps, other.settled_steps),
            self.compared + other.compared,
            self.counted + other.counted,
            sorted({*self.failures, *other.failures}),
        )


Progress = Callable[[int, int], None]


def sampled_run(
    plan: Plan,
    scenario: Scenario,
    every_steps: int,
    entries: ControlLog = NO_ENTRIES,
    progress: Progress = lambda *_: None,
    tags: Mapping[str, str] | None = None,
) -> SampledRun:
    """Run a program in a fleet, and return the outcome; operators make each entry at its time.

    Args:
        plan: of the program.
        scenario: of the world.
        every_steps: steps between two readings of an event.
        entries: of parameters.
        progress: is given the step, and how many there are.
        tags: of all readings; None: what functions of the program ask for.
    """
    sensors = Sensors(plan, every_steps, tags)
    world = World(scenario, plan=plan, sensors=sensors)
    for at, entry in entries.entries.items():
        step = max(1, (at.from_us - START_US) // STEP_US)
        command = partial(_command, world.operator, ControlLog({at: entry}))
        world.to_come[step].append(command)
    samples: list[RunSample] = []
    try:
        settled = _run(world, samples, progress)
        if plan.streams and sensors.readings and not world.trouble:
            _end_streams(world, sensors.readings)
        are_lost = bool(forgot(world.seen))
        compared = compare(world, sensors.readings, are_lost=are_lost)
        trouble = list(world.trouble)
        trouble += (compared.only_landed() if are_lost else compared).wrong()
        return SampledRun(
            trouble,
            samples,
            world.seen,
            len(sensors.readings),
            world.bytes,
            settled,
            compared,
            _counted(world),
            _failures(world),
        )
    finally:
        world.close()


def forgot(seen: Counter[str]) -> list[str]:
    """Return the kinds of faults that befell under which readings may be lost."""
    return [kind for kind in FORGETTING if seen[kind]]


def _command(operator: SimulatedOperator, log: ControlLog) -> None:
    operator.commands |= CommandLog(control=log)


def _run(world: World, samples: list[RunSample], progress: Progress) -> int:
    steps = world.scenario.steps
    every = max(1, steps // POINTS)
    before = 0
    for step in disturbed(world):
        if step % every == 0:
            samples.append(_sample(world, world.bytes - before, every))
            before = world.bytes
            progress(step, steps)
    heal(world)
    for settled in settling(world):
        if at_rest(world):
            return settled
        world.step()
        samples.append(_sample(world, world.bytes - before, 1))
        before = world.bytes
    world.trouble.append(f"not settled after {SETTLE_STEPS} steps: {unsettled(world)}")
    return SETTLE_STEPS


def _end_streams(world: World, readings: Sequence[Reading]) -> None:
    """Let time pass until streams have emitted all that it brings, such as the end of a session."""
    for until_us in ends_us(world, readings):
        pass_time(world, until_us)
        for _ in settling(world):
            if at_rest(world):
                break
            world.step()


def _sample(world: World, sent_bytes: int, steps: int) -> RunSample:
    held = Counter(device.digests() for device in world.running())
    agreeing = max(held.values(), default=0) / len(world.devices)
    lows = [each.low_us for each in world.sinks[0].lander.promises.entries.values()]
    known = [low_us for low_us in lows if low_us is not None]
    stale_s = (world.now_us - min(known)) / STEP_US if known else 0.0
    each = sent_bytes / steps / len(world.devices)
    return RunSample(world.step_number, agreeing, each, max(0.0, stale_s))


def _failures(world: World) -> list[str]:
    """Return what functions of the program raised."""
    found = {why for device in world.running() for why in device.report()["failures"]}
    return sorted(found.union(*(sink.lander.failures for sink in world.sinks)))


def _counted(world: World) -> Counter[str]:
    """Return how many readings the devices, as far as they know, did not count as they came."""
    found = Counter[str]()
    for device in world.running():
        names = [each for each in device.core.counters.totals if each.startswith(WHY)]
        found.update({name: device.counted(name) for name in (*OUTCOMES, TWICE, *names)})
    return +found
