"""What operators say of parameters: early, late, and for one device alone.

While a device makes the panes of a window that an entry has changed, its power goes now and then.
"""

from collections.abc import Mapping
from functools import partial
from random import Random

from crdts import ControlPlace
from lasp_edge.units import SECOND_US
from simulations.world.faults import Fault
from simulations.world.misfortunes import befall
from simulations.world.programs import ACTING_VALUES, OPERATED_VALUES
from simulations.world.world import World

MOST_ENTRIES = 4
"""Entries of a run, at most."""
FROM_S = (-40, 20)
"""From how many seconds before or after it is typed an entry holds."""
KILLED, AFTER = 0.5, (1, 4)
"""The part of the entries about windows after which a device is killed, and how many steps later:
panes are made in several commits."""


def plan_entries(world: World) -> None:
    """Let operators change parameters in some of the steps to come."""
    seed = world.scenario.seed
    if world.scenario.operated:
        kills = Random(f"{seed} kills")
        for step in _plan(world, Random(f"{seed} entries"), OPERATED_VALUES):
            if kills.random() < KILLED:
                name, after = kills.choice(world.scenario.names), kills.randint(*AFTER)
                fault = Fault(step + after, "kill", name, 2 * kills.randint(0, 2))
                world.later(fault.step, partial(befall, world, fault))
    if world.scenario.acting:
        _plan(world, Random(f"{seed} levels"), ACTING_VALUES)


def _plan(world: World, random: Random, values: Mapping[str, tuple[str | None, ...]]) -> list[int]:
    """Let operators change some of these parameters; return in which steps."""
    steps = []
    for _ in range(random.randint(1, MOST_ENTRIES)):
        name = random.choice(sorted(values))
        scope = random.choice(("", "", random.choice(world.scenario.names)))
        from_us = world.now_us + random.randint(*FROM_S) * SECOND_US
        value = random.choice(values[name])
        steps.append(random.randint(1, world.scenario.steps))
        _say(world, steps[-1], (name, scope, from_us), value)
    return steps


def _say(world: World, step: int, place: tuple[str, str, int], value: str | None) -> None:
    """Set a parameter in a step, as of then."""
    name, scope, from_us = place
    at = ControlPlace(name, scope, from_us + step * SECOND_US)

    def say() -> None:
        world.operator.publish(world.operator.set(at, value, world.now_us))

    world.later(step, say)
