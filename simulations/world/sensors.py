"""Sensors for any program: each event is read at intervals, with a value that wanders.

The tags that a program's functions ask for are found by calling them.
"""

from collections.abc import Mapping
from random import Random

from device_agent.agent.intake.batch import Batch
from lasp_edge.checking.readings import constants, plausible, tag_choices, values_of
from lasp_edge.checking.streams import tried_streams
from lasp_edge.checking.trial import tried
from lasp_edge.language.plan import Plan
from simulations.oracle import Reading
from simulations.world.programs import LIVE

NAMED = 0.2
"""The part of the values that are always tried, or that the functions of the program name."""
SPREAD = 40.0
"""Values lie between 0 and this, in units of the event."""


class Sensors:
    """What all devices read, and the readings that became durable.

    Args:
        plan: whose events are read.
        every_steps: steps between two readings of an event.
        tags: of all readings; None: what functions of the program ask for, with drawn values.

    Attributes:
        readings: those that a device's store has acknowledged.
    """

    def __init__(self, plan: Plan, every_steps: int, tags: Mapping[str, str] | None = None) -> None:
        self._plan = plan
        self._every = max(1, every_steps)
        if tags is None:
            self._tags = sorted(tag_choices(plan, set(asked_tags(plan))).items())
        else:
            self._tags = sorted((tag, (text,)) for tag, text in tags.items())
        known = constants(plan)
        self._named = {each.name: values_of(each, *known) for each in plan.events.values()}
        self.readings: list[Reading] = []

    def batch(self, place: int, step: int, now_us: int, random: Random) -> Batch:
        """Return what a device reads in a step, most often nothing; devices take turns."""
        batch = Batch(LIVE, [], [], [], [])
        if (step + place) % self._every:
            return batch
        for name, event in sorted(self._plan.events.items()):
            steps = random.randint(0, max(1, round(SPREAD / float(event.resolution.exact))))
            tags = {tag: random.choice(choices) for tag, choices in self._tags}
            batch.names.append(name)
            batch.times_us.append(now_us)
            value = event.resolution.real(plausible(event, steps))
            named = self._named[name]
            is_named = event.text or random.random() < NAMED
            batch.values.append(random.choice(named) if is_named else value)
            batch.tags.append(tags)
        return batch

    def acknowledged(self, device: str, batch: Batch) -> None:
        """Note that a device's readings are durable."""
        columns = (batch.names, batch.values, batch.times_us, batch.tags)
        for name, value, time_us, tags in zip(*columns, strict=True):
            assert time_us is not None
            self.readings.append(Reading(device, name, value, time_us, tags))


def asked_tags(plan: Plan) -> list[str]:
    """Return the tags that functions of a program look at and cannot do without."""
    found = tried(plan)
    if plan.streams:
        tried_streams(plan, None, found)
    return sorted({tag for tags in found.tags.values() for tag in tags})
