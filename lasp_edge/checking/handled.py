r"""What handlers write of a reading, in another step than it is meant in.

A set of samples is given units, and rounds them itself; a counter counts whole numbers, and what a
handler cuts off a reading is lost with each.

    >>> from crdts import BoundedLWWSet, Counter
    >>> from lasp_edge import Program
    >>> program = Program("garden")
    >>> rain = program.event("rain", resolution="0.1", unit="mm", least=0, most=100)
    >>> last = program.declare_dynamic(BoundedLWWSet(bound=5), "last")
    >>> total = program.declare(Counter(), "total")
    >>> @program.on_event(rain)
    ... def fell(event, update):
    ...     update(last, BoundedLWWSet.add, round(event.value * 10), event.time_us)
    ...     update(total, Counter.increment, int(event.value))
    >>> for line in misread(program.plan()):
    ...     print(*line.split("; "), sep="\n")
    handler fell of event rain adds 2 to last for a reading of 0.2: a set is given units
    write event.value, which it rounds by itself
    handler fell of event rain counts 0 in total for a reading of 0.2, and 50 for one of 50
    count steps: round(event.value / 0.1)
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, Final

from crdts import BoundedLWWSet, Counter, GCounter
from lasp_edge.checking.readings import FIRST_US, AnyTags, devices_of, texts_of, values_of
from lasp_edge.event import Event
from lasp_edge.language.declarations import EventType
from lasp_edge.language.plan import Plan
from lasp_edge.language.updates import Update
from lasp_edge.variables import Variable

_TRIED: Final = (2, 3, 7, 60, 130, 1, 10, 20, 30)
"""Readings in steps, of which some are whole numbers of most units and others are not."""
_ENOUGH: Final = 3
"""Readings of which a thing holds that is no chance."""

Written = tuple[Fraction, Fraction]
"""A reading in its unit, and the number that a handler made of it."""


def misread(plan: Plan) -> list[str]:
    """Return a line for each handler that writes steps for units, cuts what it counts, or None."""
    return [*_stepped(plan), *_nothing(plan)]


def _nothing(plan: Plan) -> Iterator[str]:
    """Yield a line for each handler that adds None where a reading has no tags."""
    for name, handlers in plan.functions.handlers.items():
        event, (device, _) = plan.events[name], devices_of(plan)
        value = texts_of(event)[0] if event.text else values_of(event, (), ())[0]
        reading = Event(name, value, FIRST_US, device, {})
        for handler in handlers:
            update = Update(plan, reading)
            with suppress(Exception):  # what it raises is found where it is tried
                handler(reading, update)
            into = [change.variable for change in update.changes if None in change.arguments]
            for variable in dict.fromkeys(into):
                yield (
                    f"handler {_named(handler)} of event {name} adds None to {variable} for a "
                    "reading without tags; leave such a reading out, or ask for tags[..]"
                )


def _named(handler: Any) -> str:
    return getattr(handler, "__name__", type(handler).__name__)


def _stepped(plan: Plan) -> list[str]:
    return [
        f"handler {_named(handler)} of event {name} {why}"
        for name, handlers in plan.functions.handlers.items()
        for event in [plan.events.get(name)]
        if event is not None and not event.text and event.resolution.exact < 1
        for handler in handlers
        for variable, written in _written(plan, event, handler).items()
        for why in _why(event, plan.variables[variable], written)
    ]


def _written(
    plan: Plan, event: EventType, handler: Callable[[Any, Any], None]
) -> dict[str, list[Written]]:
    """Return what a handler writes into each set and counter, for some readings."""
    found: dict[str, list[Written]] = {}
    exact, (device, _) = event.resolution.exact, devices_of(plan)
    steps = [*_TRIED, *(round(whole / exact) for whole in (1, 2, 3, 50))]
    for n in dict.fromkeys(steps):
        if event.plausible is not None and not event.plausible.has(n):
            continue
        reading = Event(event.name, event.resolution.real(n), FIRST_US, device, AnyTags())
        update = Update(plan, reading)
        with suppress(Exception):  # what it raises is found where it is tried
            handler(reading, update)
        for change in update.changes:
            number = change.arguments[0] if change.arguments else 1
            if isinstance(number, int):
                step = plan.resolutions.get(change.variable)
                of_one = found.setdefault(change.variable, [])
                of_one.append((n * exact, number * (step.exact if step else Fraction(1))))
    return found


def _why(event: EventType, variable: Variable, written: Sequence[Written]) -> Iterator[str]:
    """Yield the mistakes in values that are written into a variable."""
    step, bottom = event.resolution, variable.bottom
    if isinstance(bottom, BoundedLWWSet) and variable.measures is None:
        if len({*written}) >= _ENOUGH and all(made == of / step.exact for of, made in written):
            of, made = written[0]
            yield (
                f"adds {made} to {variable.name} for a reading of {float(of):g}: a set is given "
                "units; write event.value, which it rounds by itself"
            )
    elif isinstance(bottom, Counter | GCounter):
        whole = [each for each in written if each[0].denominator == 1]
        cut = [each for each in written if each[0].denominator > 1]
        if len({*whole}) >= _ENOUGH and cut and all(of == made for of, made in whole):
            (of, made), (one, _) = cut[0], whole[-1]
            yield (
                f"counts {made} in {variable.name} for a reading of {float(of):g}, and {one} for "
                f"one of {one}; count steps: round(event.value / {step.text})"
            )
