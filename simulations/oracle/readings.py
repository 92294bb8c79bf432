"""Which readings count, and what they are in steps of the resolution."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from lasp_edge.event import Event
from lasp_edge.folds.numbers import LIMIT, Resolution
from lasp_edge.language.plan import Plan

NO_TAGS: Mapping[str, str] = {}


class Reading(NamedTuple):
    """One reading as a source gave it.

    Attributes:
        device: the device that read it.
        event: the event's name.
        value: as it was read, before it is quantised.
        time_us: its own time, or its acceptance where it has none.
        tags: its labels.
        stamped: its time is that of its acceptance; such readings are never taken for repeats.
        accepted_us: when the device accepted it, where that matters: for sets bounded by age.
    """

    device: str
    event: str
    value: Any
    time_us: int
    tags: Mapping[str, str] = NO_TAGS
    stamped: bool = False
    accepted_us: int | None = None


class AcceptedReading(NamedTuple):
    """An accepted reading: its value in steps of the resolution, and what handlers and keys see."""

    quantised: int
    event: Event
    accepted_us: int | None = None


def quantised(value: Any, resolution: Resolution) -> int | None:
    """Return how many steps `value` is, by the definition; None where it must be refused."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        return None
    try:
        steps = round(Fraction(value) / resolution.exact)  # half to even
    except (ValueError, OverflowError):  # NaN, infinity
        return None
    return steps if abs(steps) < LIMIT else None


def accepted(plan: Plan, readings: Iterable[Reading]) -> list[AcceptedReading]:
    """Return the readings that count, in order.

    Left out are unknown events, values that must be refused, and repeats: equal device, event,
    tags, own time and quantised value. Readings that a device left aside for another reason (too
    late, in the future, a key or handler that raised) must not be given.
    """
    samples = []
    known = set()
    for reading in readings:
        event = plan.events.get(reading.event)
        steps = None if event is None else quantised(reading.value, event.resolution)
        if event is None or steps is None:
            continue
        tags = tuple(sorted(reading.tags.items()))
        identity = (reading.device, reading.event, tags, reading.time_us, steps)
        if identity in known and not reading.stamped:
            continue
        if not reading.stamped:
            known.add(identity)
        value = float(steps * event.resolution.exact)
        seen = Event(reading.event, value, reading.time_us, reading.device, reading.tags)
        samples.append(AcceptedReading(steps, seen, reading.accepted_us))
    return samples
