"""Alerts on windows and results, on real cores: each is on where the final rows have it so.

Readings of some devices, late ones among them, go through a fleet that loses messages; an operator
has changed the level in the middle. In the end each alert is compared with what its
condition says of the oracle's rows.

>>> troubles(3)
[]
"""

from collections.abc import Iterator
from random import Random
from typing import Final

from device_agent.agent.settings import Settings
from lasp_edge import Program, folds, scans
from lasp_edge.protocol.commands import CommandLog
from lasp_edge.testing.parameters import ParameterSetting
from lasp_edge.units import SECOND_US
from simulations.comparison import compare
from simulations.entries import entries_of
from simulations.fleet import Fleet
from simulations.oracle import Reading
from simulations.world.faults import START_US, FaultRates

DEVICES: Final = ("attic", "cellar")
FAULTS: Final = FaultRates(loss=0.1, doubled=0.1, delayed=0.5)
SECONDS: Final = 150
MOST_LATE_S, AFTER_S = 120, 200
"""Seconds by which a late reading comes after its time, at most; and of the last one in time."""
LATENESS_S: Final = 5
"""Seconds after which devices expect none any more: windows are final before the late ones come."""
READ, LATE = 0.8, 0.15
"""How much of what could be read is, and how much of that is late."""


def alerting() -> Program:
    """Return a program with alerts on a window, a result of each device, and one of the fleet."""
    program = Program("alerting")
    warm = program.event("warm", resolution="1")
    limit = program.parameter("limit", "50")
    minute = program.window(
        "minute", source=warm, fold=folds.mean(), size_s=30, key=lambda event: event.tags["room"]
    )
    program.alert("hot", minute, above=limit)
    steps = program.scan("steps", source=warm, scan=scans.differences(), per_device=True)
    program.result(steps)
    program.alert("jump", steps, above=10)
    visits = program.scan("visits", source=warm, scan=scans.sessions(gap_s=20))
    program.result(visits)
    program.alert("long", visits, part="count", above=3)
    return program


def drawn(random: Random) -> Iterator[tuple[int, Reading]]:
    """Yield readings, and after how many seconds each arrives."""
    for at_s in range(0, SECONDS, 5):
        for device in DEVICES:
            time_us, value = START_US + at_s * SECOND_US, random.randint(0, 100)
            if random.random() < READ:
                late_s = random.randint(LATENESS_S, MOST_LATE_S) if random.random() < LATE else 0
                yield at_s + late_s, Reading(device, "warm", value, time_us, {"room": device})
    after_us = START_US + AFTER_S * SECOND_US
    for device in DEVICES:  # all windows of the others are final by then, and late ones come still
        yield AFTER_S, Reading(device, "warm", 0, after_us, {"room": "hall"})


def troubles(seed: int) -> list[str]:
    """Return which alerts are not as the oracle's final rows have them."""
    plan, middle_us = alerting().plan(), START_US + SECONDS // 2 * SECOND_US
    arriving = sorted(drawn(Random(seed)), key=lambda each: each[0])
    settings = Settings(lateness_us=LATENESS_S * SECOND_US)
    fleet = Fleet(
        plan, size=len(DEVICES), names=DEVICES, seed=seed, faults=FAULTS, settings=settings
    )
    try:
        level = ParameterSetting("limit", "", middle_us, "40")
        fleet.world.operator.commands |= CommandLog(control=entries_of(plan, [level]))
        for second in range(SECONDS + MOST_LATE_S):
            for _, each in [pair for pair in arriving if pair[0] == second]:
                fleet.read(*each[:3], each.tags, each.time_us)
            fleet.step()
        fleet.settle()
        return compare(fleet.world, [each for _, each in arriving]).wrong()
    finally:
        fleet.close()
