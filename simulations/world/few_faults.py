"""Scenarios in which few things befall a world: what heals much, and so hides much, is left out."""

from dataclasses import Field, replace
from random import Random
from typing import Any, ClassVar, Protocol, TypeVar

from lasp_edge.protocol.sinks import DEFAULT_SINK
from simulations.world.faults import CALM, CARDS, KINDS, OF_SINKS_ALONE, Fault, FaultRates


class Drawn(Protocol):
    """A scenario, as far as faults are drawn for it."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def names(self) -> list[str]:
        """The names of the devices, in order."""

    @property
    def size(self) -> int:
        """How many there are."""

    @property
    def steps(self) -> int:
        """How long faults befall."""


_Scenario = TypeVar("_Scenario", bound=Drawn)

QUEUE_STEPS = 30
"""Steps in which hours pass and one device is away: what waits for it at the broker is older than
clocks may differ."""


def of_sinks(scenario: _Scenario, random: Random, kinds: tuple[str, ...]) -> _Scenario:
    """Return the scenario with other faults: see `scenario.SINKS_ALONE`."""
    drawn = {kind: random.choice(of) for kind, of in OF_SINKS_ALONE.items() if kind in kinds}
    faults, few = FaultRates(**drawn), replace(scenario, size=2, steps=45, commit_s=0)
    few = replace(few, faults=faults, acting=False, scans=False, stamped=False)
    return replace(few, schedule=tuple(faults.schedule(random, few.names, few.steps)))


def of_replaced(scenario: _Scenario, random: Random) -> _Scenario:
    """Return the scenario with other faults: see `scenario.REPLACED`."""
    ahead_s, at = 2 * random.randint(300, 1_900) + 1, random.randint(3, 8)  # odd: it is set right
    ahead = Fault(at, "gateway_jump", "", ahead_s)
    replaced = Fault(at + random.randint(28, 36), "new_lake", "", 1)
    few = replace(scenario, size=2, steps=45, commit_s=0, faults=CALM, schedule=(ahead, replaced))
    return replace(few, archive=False, unsynchronised=False, narrow=False, stamped=False)


def of_served(scenario: _Scenario, random: Random) -> _Scenario:
    """Return the scenario with other faults: see `scenario.SERVED`."""
    fault = Fault(random.randint(5, 25), "former_lander", "", random.randint(40, 55))
    few = replace(scenario, size=2, steps=90, commit_s=0, faults=CALM, schedule=(fault,))
    few = replace(few, archive=False, landers=(), gateways=(DEFAULT_SINK,), roster=True)
    few = replace(few, sinks_retain_s=0)
    return replace(few, acting=False, scans=False, ordered=False, stamped=False, narrow=False)


def of_away(scenario: _Scenario, random: Random) -> _Scenario:
    """Return the scenario with other faults: see `scenario.AWAY`."""
    at, steps = random.randint(4, 12), random.randint(45, 60)
    cut, former = Fault(at, "cut", "pi-1", steps), Fault(at + steps - 5, "former_lander", "", 20)
    few = replace(scenario, size=2, steps=at + steps + 25, commit_s=0, faults=CALM, stamped=False)
    few = replace(few, acting=False, scans=False, narrow=False, schedule=(cut, former))
    return replace(few, archive=False, landers=(), gateways=(DEFAULT_SINK,), joins_at=0)


def of_twins(scenario: _Scenario, random: Random) -> _Scenario:
    """Return the scenario with other faults: see `scenario.TWINS_EVERY`."""
    steps = random.randint(KINDS["twin"].least, KINDS["twin"].most)
    few = replace(scenario, size=2, steps=45, commit_s=0, faults=CALM, archive=False, landers=())
    few = replace(few, acting=False, scans=False, ordered=False, stamped=False, narrow=False)
    twin = Fault(random.randint(3, 12), "twin", "", steps)
    return replace(few, gateways=(DEFAULT_SINK,), schedule=(twin,))


def of_cards(scenario: _Scenario, random: Random, kinds: tuple[str, ...]) -> _Scenario:
    """Return the scenario with other faults: see `scenario.OF_CARDS`."""
    rates = {kind: random.choice(drawn) for kind, drawn in CARDS.items() if kind in kinds}
    faults = FaultRates(**rates)
    few = replace(scenario, size=2, steps=60, faults=faults, acting=False, scans=False)
    return replace(few, schedule=tuple(faults.schedule(random, few.names, few.steps)))


def of_clocks(scenario: _Scenario, random: Random) -> _Scenario:
    """Return the scenario with clocks that are wrong from the start, or whose beats come late.

    - a machine starts with a clock that was set wrong, and nobody can say so
    - a clock is set wrong while its machine runs, and the agent is started again after that
    - it starts in 1970, and hears another one whose clock is right
    - it was away for minutes: the beats of others wait for it at the broker
    """
    few = replace(
        scenario, size=random.randint(1, 2), steps=30, commit_s=0, faults=CALM, keyed=True
    )
    few = replace(few, acting=False, scans=False, ordered=False, stamped=False, narrow=False)
    few = replace(few, retain_s=7 * 86_400, unsynchronised=False, silent_s=0, archive=False)
    kind = random.choice(("clock_jump", "clock_1970", "hours"))
    if kind == "hours":
        schedule = [Fault(5, "cut", "pi-0", QUEUE_STEPS + 1), Fault(5, "hours", "", QUEUE_STEPS)]
        few = replace(few, size=3, steps=60, sessions=True, unsynchronised=True, operated=False)
        return replace(few, schedule=tuple(schedule))
    if kind == "clock_1970":
        wrong = Fault(random.randint(1, 5), kind, "pi-0", 2 * random.randint(8, 12) + 1)
        return replace(few, schedule=(wrong,))
    # Two that were wrong contradict each other and the sink, and wait for long.
    is_doubted = few.size == 1 and random.random() < 0.5  # noqa: PLR2004
    aheads = [Fault(1, kind, name, random.randint(400, KINDS[kind].most)) for name in few.names]
    if random.random() < 0.5:  # noqa: PLR2004
        kills = [Fault(20, "kill", name, 2) for name in few.names]  # no machine starts again
        aheads = [each._replace(step=15) for each in aheads] + kills
    return replace(few, unsynchronised=is_doubted, schedule=tuple(aheads))
