"""What operators say of a window's parameters: early, late, and for one device alone."""

from random import Random

from crdts import ControlPlace
from lasp_edge.units import SECOND_US
from simulations.world.programs import OPERATED_VALUES
from simulations.world.world import World

MOST_ENTRIES = 4
"""Entries of a run, at most."""
FROM_S = (-40, 20)
"""From how many seconds before or after it is typed an entry holds."""


def plan_entries(world: World) -> None:
    """Let operators change parameters in some of the steps to come."""
    random = Random(f"{world.scenario.seed} entries")
    for _ in range(random.randint(1, MOST_ENTRIES)):
        name = random.choice(sorted(OPERATED_VALUES))
        scope = random.choice(("", "", random.choice(world.scenario.names)))
        from_us = world.now_us + random.randint(*FROM_S) * SECOND_US
        value = random.choice(OPERATED_VALUES[name])
        _say(world, random.randint(1, world.scenario.steps), (name, scope, from_us), value)


def _say(world: World, step: int, place: tuple[str, str, int], value: str | None) -> None:
    """Set a parameter in a step, as of then."""
    name, scope, from_us = place
    at = ControlPlace(name, scope, from_us + step * SECOND_US)

    def say() -> None:
        world.operator.publish(world.operator.set(at, value, world.now_us))

    world.later(step, say)
