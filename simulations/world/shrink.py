"""Shrinking: the fewest faults with which a run still fails, and how to replay it.

Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", TSE 2002.
"""

from collections.abc import Callable
from dataclasses import replace

from simulations.world.faults import CALM, Fault
from simulations.world.scenario import Scenario

TRIES = 60
"""Runs that shrinking takes, at most: some seconds."""

EXTRAS = ("keyed", "shared", "files", "sessions", "archive", "acting")
"""What a scenario may have besides, by the names of its fields."""

Fails = Callable[[Scenario], bool]


def shrunk(scenario: Scenario, fails: Fails) -> Scenario:
    """Return a smaller scenario that fails, too; the same one if none was found."""
    left = TRIES

    def still(candidate: Scenario) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and fails(candidate)

    calm = replace(scenario, faults=CALM)
    if still(calm):
        scenario = calm
    parts = 2
    while scenario.schedule and parts <= 2 * len(scenario.schedule):
        smaller = _without_a_part(scenario, parts, still)
        if smaller is None:
            parts *= 2
        else:
            scenario, parts = smaller, max(2, parts - 1)
    return _shorter(scenario, still)


def _without_a_part(scenario: Scenario, parts: int, still: Fails) -> Scenario | None:
    """Return the scenario without one part of its schedule, if it fails so."""
    faults = scenario.schedule
    size = max(1, len(faults) // parts)
    for at in range(0, len(faults), size):
        candidate = replace(scenario, schedule=(*faults[:at], *faults[at + size :]))
        if still(candidate):
            return candidate
    return None


def _shorter(scenario: Scenario, still: Fails) -> Scenario:
    """Return the scenario with fewer steps after its last fault, if it fails so."""
    last = max((fault.step for fault in scenario.schedule), default=1)
    for steps in (last + 1, last + 5, last + 15):
        if steps < scenario.steps:
            candidate = replace(scenario, steps=steps)
            if still(candidate):
                return candidate
    return scenario


def lines(scenario: Scenario) -> list[str]:
    """Return a scenario for people: what it has, and its faults in order."""
    faults, has = scenario.faults, []
    if faults.disturbs_messages:
        has = [f"loss {faults.loss}, doubled {faults.doubled}, delayed {faults.delayed}"]
        has[0] += f" by at most {faults.delay_steps} steps"
    extras = [name for name in EXTRAS if getattr(scenario, name)]
    head = f"{scenario.size} devices, {scenario.steps} steps, {', '.join([*extras, *has])}"
    return [head.rstrip(", "), *map(Fault.__str__, scenario.schedule)]
