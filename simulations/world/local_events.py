"""Worlds whose scan over the fleet has local events: in most of them little else goes wrong.

What many faults break others heal, or excuse: whose store was lost may lack any reading. So three
of four seeds have a few faults that concern shares and answers: who is killed, cut off or new, what
gateways forget, and which of them dies. In half of those no reading is late, and what is final
changes for no reason.
"""

from dataclasses import replace
from random import Random
from typing import Final

from lasp_edge.protocol.sinks import DEFAULT_SINK
from simulations.world.faults import Fault, FaultRates
from simulations.world.scenario import ARCHIVE, Scenario

STEPS: Final = 40
WITH_MANY_FAULTS: Final = 4
"""Every fourth seed has the faults that are drawn for it."""
BRIEF: Final = {
    "kill": (60, 240),
    "cut": (0, 120),
    "deaf": (0, 120, 240),
    "broker_forgets": (0, 0, 120),
    "lander_crash": (0, 120, 360),
    "power_lost": (0, 120, 480),
    "gateway_torn": (0, 240),
}
"""What may befall, and how often: nobody is silent until the others do not wait any longer."""
BRIEF_STEPS: Final = 4
LONG: Final = {
    "gateway_old": (0, 120),
    "sink_dead": (0, 0, 120),
    "older_image": (0, 0, 60),
    "hours": (0, 0, 0, 60),
}
"""What else may befall where readings are late, too."""
NEW: Final = 0.3
"""The part of the worlds with late readings in which the last device comes in the middle."""
RELEASED: Final = 0.2
"""The part of them in which devices run a release before that of the sinks, and change to it."""
FORMER: Final = 0.15
"""The part of them in which a gateway runs a program for a while whose scan has no local events,
and little else goes wrong: what devices send again heals much."""

SLOW, SLOW_STEPS = 0.4, 15
"""The part of all of them in which messages come late, and by how many steps at most: an older cell
of shares may come after its places are settled."""


def synced(scenario: Scenario) -> Scenario:
    """Return the scenario with a scan over the fleet that has local events, and a gateway."""
    gateways = tuple(dict.fromkeys((DEFAULT_SINK, *scenario.gateways)))
    has = replace(scenario, ordered=True, synced=True, scans=False, gateways=gateways)
    if scenario.seed % WITH_MANY_FAULTS == 0:
        return has
    return _few(has, Random(f"{scenario.seed} local events"))


def _few(scenario: Scenario, random: Random) -> Scenario:
    """Return the scenario with a few faults in place of those that were drawn."""
    punctual, archive = random.random() < 0.5, random.random() < 0.5  # noqa: PLR2004
    gateways = (DEFAULT_SINK, ARCHIVE) if archive else (DEFAULT_SINK,)
    of = BRIEF if punctual else BRIEF | LONG
    messages = {
        "loss": random.choice((0.0, 0.1, 0.3)),
        "doubled": random.choice((0.0, 0.3)),
        "delayed": random.choice((0.0, 0.3, 0.7)),
    }
    structural = {kind: random.choice(rates) for kind, rates in of.items()}
    delay_steps = random.choice((2, 5))
    if Random(f"{scenario.seed} late shares").random() < SLOW:
        delay_steps = SLOW_STEPS
    faults = FaultRates(**messages, delay_steps=delay_steps, **structural)
    names = [f"pi-{number}" for number in range(random.choice((2, 2, 3)))]
    schedule = [_brief(each) for each in faults.schedule(random, names, STEPS)]
    if not punctual and random.random() < NEW:
        schedule.append(Fault(1, "kill", names[-1], random.randint(8, STEPS)))
    if not punctual and random.random() < RELEASED:
        schedule += [Fault(random.randint(5, STEPS), "other_release", name, 1) for name in names]
    former = Random(f"{scenario.seed} former")
    if not punctual and former.random() < FORMER:
        steps = former.randint(5, 12)
        schedule = [Fault(former.randint(5, STEPS // 2), "former_lander", "", steps)]
    return Scenario(
        scenario.seed,
        len(names),
        STEPS,
        faults,
        tuple(sorted(schedule)),
        sessions=scenario.sessions,
        archive=archive,
        gateways=gateways,
        roster=random.random() < 0.5,  # noqa: PLR2004
        ordered=True,
        synced=True,
        punctual=punctual,
    )


def _brief(fault: Fault) -> Fault:
    """Return a fault that lasts for a few steps, if its amount is steps."""
    if fault.kind not in {"kill", "cut", "deaf", "lander_crash"}:
        return fault
    return fault._replace(amount=min(fault.amount, BRIEF_STEPS))
