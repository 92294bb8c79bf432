"""Which readings count, and what they are in steps of the resolution."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event, in_order
from lasp_edge.folds.numbers import LIMIT, Resolution
from lasp_edge.language.plan import Plan
from lasp_edge.language.retracting import keeps_all
from lasp_edge.language.updates import run_handlers

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
        retracted: it takes an equal reading back, whenever that came.
        place: what it came on, where its tags do not tell that: two sensors may agree.
    """

    device: str
    event: str
    value: Any
    time_us: int
    tags: Mapping[str, str] = NO_TAGS
    stamped: bool = False
    accepted_us: int | None = None
    retracted: bool = False
    place: str = ""


class AcceptedReading(NamedTuple):
    """An accepted reading: its value in steps (of a text 0), and what handlers and keys see."""

    quantised: int
    event: Event[Any]
    accepted_us: int | None = None
    place: str = ""


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

    Left out are unknown events, values that must be refused, what was taken back, and repeats:
    equal device, event, place, tags, own time and quantised value; and what a key, a handler or a
    fold of a window that every reading counts in raises an error for. Readings that a device left
    aside for another reason (too late, in the future) must not be given.
    """
    samples = []
    known: set[Any] = set()
    found = [(reading, *identified(plan, reading)) for reading in readings]
    back = {name for name in plan.events if keeps_all(plan, name) is None}
    gone = {each for reading, each, _ in found if reading.retracted and reading.event in back}
    for reading, identity, steps in found:
        if identity is None or identity in gone or reading.retracted:
            continue
        if identity in known and not reading.stamped:
            continue
        event = plan.events[reading.event]
        value = reading.value if event.text else float(steps * event.resolution.exact)
        seen = Event(reading.event, value, reading.time_us, reading.device, in_order(reading.tags))
        sample = AcceptedReading(steps, seen, reading.accepted_us, reading.place)
        if _is_refused(plan, sample):
            continue
        if not reading.stamped:
            known.add(identity)
        samples.append(sample)
    return samples


def _is_refused(plan: Plan, sample: AcceptedReading) -> bool:
    """Return whether one of the functions that see every reading raises an error for it."""
    event, functions = sample.event, plan.functions
    try:
        for window in plan.windows.values():
            if window.source.name == event.name and window.is_plain:
                functions.key(window.name, event)
                if not window.fold.is_built_in:
                    window.fold.lift(sample.quantised, event.time_us)
        for variable in plan.collections.get(event.name, ()):
            functions.key(variable.name, event)
        run_handlers(plan, event)
    except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
        pass_interrupt(error)
        return True
    return False


def identified(plan: Plan, reading: Reading) -> tuple[Any, int]:
    """Return what tells a reading from others, and its steps; None where it must be refused."""
    event = plan.events.get(reading.event)
    if event is None or (event.text and not isinstance(reading.value, str)):
        return None, 0
    steps = 0 if event.text else quantised(reading.value, event.resolution)
    if steps is None or (event.plausible is not None and not event.plausible.has(steps)):
        return None, 0
    tags, counted = tuple(sorted(reading.tags.items())), reading.value if event.text else steps
    at = (reading.device, reading.event, reading.place, tags, reading.time_us)
    return (*at, counted), steps
