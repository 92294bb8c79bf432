"""Shrinking: the fewest faults with which a run still fails so, and how to replay it.

A run that fails in another way tells nothing of the one that was found. What varies in a sentence
about a failure (devices, numbers, values in brackets) does not make it another one.

    >>> kind_of("pi-0: Line(time_us=7, room='a') counts twice, as 4 readings do")
    'Line counts twice as readings do'
    >>> kind_of("pi-3: Line(time_us=9, room='b') counts twice, as 15 readings do")
    'Line counts twice as readings do'

Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", TSE 2002.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from simulations.world.faults import CALM, Fault
from simulations.world.scenario import Scenario

TRIES = 60
"""Runs that shrinking takes, at most: some seconds."""

EXTRAS = (
    "keyed",
    "shared",
    "files",
    "sessions",
    "archive",
    "acting",
    "operated",
    "shown",
    "scans",
    "ordered",
    "synced",
    "narrow",
    "roster",
    "columns",
    "unsynchronised",
    "stamped",
)
"""What a scenario may have besides, by the names of its fields."""

_BRACKETED = re.compile(r"\([^()]*\)|\[[^][]*\]|\{[^{}]*\}")
_VARYING = re.compile(r"\bpi-\S+|\w*\d\w*|'[^']*'|[^\w\s]")

Fails = Callable[[Scenario], bool]


def kind_of(trouble: str) -> str:
    """Return the words of a sentence about a failure that do not vary."""
    shorter = _BRACKETED.sub("", trouble)
    while shorter != trouble:
        trouble, shorter = shorter, _BRACKETED.sub("", shorter)
    return " ".join(_VARYING.sub(" ", shorter).split())


def fails_alike(trouble: Sequence[str], run: Callable[[Scenario], Sequence[str]]) -> Fails:
    """Return whether a scenario fails in the way in which a run has failed.

    Args:
        trouble: of that run; the first is what went wrong first.
        run: runs a scenario, and returns its trouble.
    """
    kind = kind_of(trouble[0])
    return lambda scenario: kind in map(kind_of, run(scenario)[:1])


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
