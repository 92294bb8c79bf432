"""One run: faults first, then heal, settle, and demand.

>>> run(Scenario(seed=1, size=2, steps=20)).trouble
()
"""

from collections import Counter, defaultdict
from random import Random
from typing import NamedTuple

from simulations.world.checks import Checks
from simulations.world.faults import KINDS, Fault, Faults
from simulations.world.misfortunes import befall, heal
from simulations.world.world import Scenario, World

SETTLE_STEPS = 900
"""Steps after which a healed world is said not to settle: some time-outs of two minutes."""
QUIET_STEPS = 25
"""Steps for which a settled world is watched: an idle device beats twice in them."""


class Outcome(NamedTuple):
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


def scenario_of(seed: int, kinds: tuple[str, ...] = tuple(KINDS)) -> Scenario:
    """Return what a seed stands for."""
    random = Random(seed)
    size, steps = random.choice((1, 2, 2, 3, 3, 4, 5)), random.choice((20, 30, 40, 60, 120))
    faults = Faults.drawn(random, kinds)
    names = [f"pi-{number}" for number in range(size)]
    return Scenario(
        seed,
        size,
        steps,
        faults,
        tuple(faults.schedule(random, names, steps)),
        keyed=random.random() < 0.2,  # noqa: PLR2004
        shared=random.random() < 0.2,  # noqa: PLR2004
        files=random.random() < 0.1,  # noqa: PLR2004
        sessions=random.random() < 0.5,  # noqa: PLR2004
        retain_s=random.choice((7 * 86_400, 7 * 86_400, 60)),
    )


def run(scenario: Scenario) -> Outcome:
    """Run a scenario to its end, or to its first trouble."""
    checks = Checks()
    world = World(scenario, checks)
    settled = 0
    try:
        _disturb(world)
        if not world.trouble:
            settled = _settle(world)
        if not world.trouble:
            checks.at_the_end(world)
        if not world.trouble and scenario.seed % 4 == 0:
            for _ in range(scenario.faults.delay_steps):
                world.step()  # until the last message of before is here
            checks.quiet = True
            for _ in range(QUIET_STEPS):
                world.step()
    finally:
        world.close()
    trace = checks.trace.hexdigest()
    return Outcome(scenario, tuple(world.trouble), world.seen, settled, trace)


def _disturb(world: World) -> None:
    """Let readings come and faults befall."""
    due: dict[int, list[Fault]] = defaultdict(list)
    for fault in world.scenario.schedule:
        due[fault.step].append(fault)
    for step in range(1, world.scenario.steps + 1):
        for fault in due[step]:
            befall(world, fault)
        world.step(reading=True)
        if world.trouble:
            return


def _settle(world: World) -> int:
    """Heal everything, and run until nothing is due; return how many steps that took."""
    heal(world)
    for steps in range(SETTLE_STEPS):
        if world.trouble or world.at_rest():
            return steps
        world.step()
    world.trouble.append(f"not settled after {SETTLE_STEPS} steps: {world.unsettled()}")
    return SETTLE_STEPS
