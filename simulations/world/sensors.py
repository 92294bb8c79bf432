"""Sensors for any program: each event is read at intervals, with a value that wanders.

The tags that a program's functions ask for are found by calling its keys and filters.
"""

from collections.abc import Callable
from contextlib import suppress
from random import Random

from device_agent.agent.intake.batch import Batch
from lasp_edge.event import Event
from lasp_edge.language.parameters import ParameterValues, plain
from lasp_edge.language.plan import Plan
from simulations.oracle import Reading
from simulations.world.programs import LIVE

CHOICES = ("a", "b", "c")
"""The values that a tag takes."""
SPREAD = 40.0
"""Values lie between 0 and this, in units of the event."""


class _AskedTags(dict[str, str]):
    """Has every tag, and remembers which were asked for."""

    def __missing__(self, name: str) -> str:
        self[name] = CHOICES[0]
        return self[name]


class Sensors:
    """What all devices read, and the readings that became durable.

    Args:
        plan: whose events are read.
        every_steps: steps between two readings of an event.

    Attributes:
        readings: those that a device's store has acknowledged.
    """

    def __init__(self, plan: Plan, every_steps: int) -> None:
        self._plan = plan
        self._every = max(1, every_steps)
        self._tags = asked_tags(plan)
        self.readings: list[Reading] = []

    def batch(self, place: int, step: int, now_us: int, random: Random) -> Batch:
        """Return what a device reads in a step, most often nothing; devices take turns."""
        batch = Batch(LIVE, [], [], [], [])
        if (step + place) % self._every:
            return batch
        for name, event in sorted(self._plan.events.items()):
            steps = random.randint(0, max(1, round(SPREAD / float(event.resolution.exact))))
            tags = {tag: random.choice(CHOICES) for tag in self._tags}
            batch.names.append(name)
            batch.times_us.append(now_us)
            batch.values.append(float(steps * event.resolution.exact))
            batch.tags.append(tags)
        return batch

    def acknowledged(self, device: str, batch: Batch) -> None:
        """Note that a device's readings are durable."""
        columns = (batch.names, batch.values, batch.times_us, batch.tags)
        for name, value, time_us, tags in zip(*columns, strict=True):
            assert time_us is not None
            self.readings.append(Reading(device, name, value, time_us, tags))


def asked_tags(plan: Plan) -> list[str]:
    """Return the tags that keys and filters of a program's windows and variables look at."""
    tags = _AskedTags()
    at = ParameterValues(
        {name: plain(known, known.default) for name, known in plan.parameters.items()}
    )
    asked: list[tuple[Callable[..., object], tuple[ParameterValues, ...]]] = [
        (key, ()) for _, key in sorted(plan.functions.keys.items())
    ]
    asked += [
        (function, (at,))
        for (_, kind), function in sorted(plan.functions.windows.items())
        if kind != "fold"
    ]
    for function, more in asked:
        for event in plan.events:
            with suppress(Exception):  # a user's function may need more than tags
                function(Event(event, 0.0, 0, "pi-0", tags), *more)
    return sorted(tags)
