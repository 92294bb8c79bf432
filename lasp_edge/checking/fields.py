r"""Fields of a fold whose step is too coarse for their numbers.

Each field is rounded to a step of its own. One that is a reading, and whose step is coarser than
that of the event, loses digits; one of whose numbers a step leaves two says next to nothing. Nor
does a value that is the same for each reading say anything, or a field beside itself.

    >>> from lasp_edge import Program, folds
    >>> program = Program("drift")
    >>> warm = program.event("warm", resolution="0.01")
    >>> hour = lambda event: event.time_us % 3_600_000_000 / 3_600_000_000
    >>> line = folds.regression(hour, lambda event: event.value, steps=("0.001", "1"))
    >>> _ = program.window("trend", source=warm, fold=line, size_s=3_600)
    >>> print(*coarse_fields(program.plan())[0].split("; "), sep="\n")
    window trend: field 2 is a reading of warm in steps of 0.01, and is rounded to steps of 1
    write steps=("0.001", "0.01"), or round(..) in the field, if it is meant
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final

from lasp_edge.checking.readings import FIRST_US, AnyTags, devices_of
from lasp_edge.event import Event
from lasp_edge.folds.fields import Correlation, FieldsFold, Regression, WeightedMean
from lasp_edge.folds.numbers import LIMIT, Refused
from lasp_edge.language.declarations import EventType
from lasp_edge.language.plan import Plan
from lasp_edge.scans.as_of import AsOfJoin
from lasp_edge.units import SECOND_US

_DRAWN: Final = 100
"""Events whose fields are rounded."""
_YEAR_US: Final = 365 * 86_400 * SECOND_US
_WIDEST: Final = 10_000
"""Steps of a reading that nothing bounds, at most."""
_PASSING: Final = frozenset({"filter", "union"})
"""Operators of streams whose events are those of their sources."""
_FEW: Final = 2
"""Numbers that are left of many, at most, where a step is too coarse."""

Numbered = tuple[tuple[float, ...], Any]
"""The readings that an event has, and the number that a field is of it."""


def coarse_fields(plan: Plan) -> list[str]:
    """Return a line for each field that its step rounds away."""
    found = []
    for name, window in plan.windows.items():
        fold, source = window.fold, _whole(plan, window.source.name)
        if isinstance(fold, FieldsFold):
            fields = [[*_numbers(plan, source, function)] for function in fold.functions]
            lines = [
                f"field {n + 1} {why}"
                for n, given in enumerate(fields)
                for why in _rounded(fold, n, given, _readings_in(plan, source))
            ]
            found += [f"window {name}: {line}" for line in lines or _settled(fold, fields)]
    return found


def _whole(plan: Plan, name: str) -> str:
    """Return the event or stream of which a stream has events as they are."""
    stream = plan.streams.get(name)
    while stream is not None and stream.operator in _PASSING and len(stream.sources) == 1:
        name = stream.sources[0]
        stream = plan.streams.get(name)
    return name


def _readings_in(plan: Plan, name: str) -> Sequence[EventType]:
    """Return the events whose readings are the values of a source; none where they are others."""
    join = plan.functions.streams.get(name)
    names = join.tells_apart if isinstance(join, AsOfJoin) else (name,)
    found = [plan.events[each] for each in names if each in plan.events]
    is_known = len(found) == len(names) and not any(each.text for each in found)
    return found if is_known else ()


def _numbers(plan: Plan, name: str, function: Callable[[Event[Any]], Any]) -> Iterator[Numbered]:
    """Yield drawn readings, and what a field is of them; what it raises is found elsewhere."""
    random, sources, (device, _) = Random(0), _readings_in(plan, name), devices_of(plan)
    is_pair = name in plan.streams
    for _ in range(_DRAWN if sources else 0):
        readings = tuple(_reading(random, each) for each in sources)
        time_us = FIRST_US + random.randrange(_YEAR_US)
        value = readings if is_pair else readings[0]
        with suppress(Exception):
            yield readings, function(Event(name, value, time_us, device, AnyTags()))


def _reading(random: Random, event: EventType) -> float:
    low, high = -_WIDEST, _WIDEST
    if event.plausible is not None:
        far = LIMIT if event.plausible.is_closed else _WIDEST
        low, high = event.plausible.nearest(-far), event.plausible.nearest(far)
    return event.resolution.real(random.randint(low, high))


def _rounded(
    fold: FieldsFold, n: int, given: Sequence[Numbered], sources: Sequence[EventType]
) -> Iterator[str]:
    """Yield what is lost of the numbers of a field."""
    step, numbers = fold.steps[n], {number for _, number in given}
    for place, event in enumerate(sources):
        is_finer = event.resolution.exact < step.exact
        if is_finer and given and all(number == readings[place] for readings, number in given):
            yield (
                f"is a reading of {event.name} in steps of {event.resolution.text}, and is rounded "
                f"to steps of {step.text}; {_remedy(fold, n, event.resolution.text)}, or round(..) "
                "in the field, if it is meant"
            )
            return
    with suppress(Refused):
        left = sorted({step.quantise(number) for number in numbers})
        if len(numbers) > _DRAWN // 2 and len(left) <= _FEW:
            shown = " and ".join(f"{step.real(each):g}" for each in left)
            yield (
                f"has numbers such as {max(numbers):.3g}, of which steps of {step.text} leave "
                f"{shown} alone; {_remedy(fold, n, f'{float(step.exact) / 100:g}')}"
            )


def _settled(fold: FieldsFold, fields: Sequence[Sequence[Numbered]]) -> Iterator[str]:
    """Yield why a fold of two fields gives nothing new, whatever is read."""
    numbers = [[number for _, number in each] for each in fields]
    if not all(len(each) == _DRAWN for each in numbers):
        return
    one, varies = numbers[0][0], len({*numbers[-1]}) > 1
    if isinstance(fold, WeightedMean) and varies and len({*numbers[0]}) == 1:
        yield (
            f"field 1 is {one:g} for each reading, and so is the mean; write the value first, then "
            "its weight"
        )
    elif isinstance(fold, Correlation | Regression) and varies and numbers[0] == numbers[1]:
        yield "both fields are the same for each reading; write two different ones"


def _remedy(fold: FieldsFold, n: int, text: str) -> str:
    texts = [text if at == n else each.text for at, each in enumerate(fold.steps)]
    given = ", ".join(f'"{each}"' for each in texts)
    return f"write steps=({given}{',' * (len(texts) == 1)})"
