"""What operators say of parameters: early, late, and for one device alone."""

from collections.abc import Mapping
from random import Random

from crdts import ControlPlace
from lasp_edge.units import SECOND_US
from simulations.world.programs import ACTING_VALUES, OPERATED_VALUES
from simulations.world.world import World

MOST_ENTRIES = 4
"""Entries of a run, at most."""
FROM_S = (-40, 20)
"""From how many seconds before or after it is typed an entry holds."""


def plan_entries(world: World) -> None:
    """Let operators change parameters in some of the steps to come."""
    seed = world.scenario.seed
    if world.scenario.operated:
        _plan(world, Random(f"{seed} entries"), OPERATED_VALUES)
    if world.scenario.acting:
        _plan(world, Random(f"{seed} levels"), ACTING_VALUES)


def _plan(world: World, random: Random, values: Mapping[str, tuple[str | None, ...]]) -> None:
    """Let operators change some of these parameters."""
    for _ in range(random.randint(1, MOST_ENTRIES)):
        name = random.choice(sorted(values))
        scope = random.choice(("", "", random.choice(world.scenario.names)))
        from_us = world.now_us + random.randint(*FROM_S) * SECOND_US
        value = random.choice(values[name])
        _say(world, random.randint(1, world.scenario.steps), (name, scope, from_us), value)


def _say(world: World, step: int, place: tuple[str, str, int], value: str | None) -> None:
    """Set a parameter in a step, as of then."""
    name, scope, from_us = place
    at = ControlPlace(name, scope, from_us + step * SECOND_US)

    def say() -> None:
        world.operator.publish(world.operator.set(at, value, world.now_us))

    world.later(step, say)
