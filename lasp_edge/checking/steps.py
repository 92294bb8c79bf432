r"""What forgets the step of its numbers: 21.5 °C is 215 in steps of 0.1, and 0.04 is 0.

`lift` is given a reading in steps, and `lower` gives a result in units. Nothing fails where one of
them does otherwise: each result is wrong by the step.

    >>> from lasp_edge import Column, Fold, Op, Program
    >>> class Warmest(Fold):
    ...     name, parts, columns = "warmest", ("most",), (Column("most_q", Op.MAX),)
    ...
    ...     def lift(self, value, time_us=0):
    ...         return (value,)
    ...
    ...     def lower(self, partial, resolution):
    ...         return {"most": partial[0]}
    >>> program = Program("attic")
    >>> warm = program.event("warm", resolution="0.1", least=-40, most=60)
    >>> _ = program.window("w", source=warm, fold=Warmest(), size_s=60)
    >>> print(*in_steps(program.plan())[0].split("; "), sep="\n")
    window w: its part most is 600 for one reading of 60
    lower gives units: write resolution.real(..)
"""

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from dis import get_instructions
from functools import partial, reduce
from inspect import isfunction, unwrap
from math import isclose, isfinite
from typing import Any

from crdts import ControlLog
from lasp_edge.checking.programs import collected_event, nested_folds
from lasp_edge.checking.readings import FIRST_US, AnyTags, constants, devices_of, values_of
from lasp_edge.checking.texts import node_of
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import LIMIT, PlausibleRange, Resolution
from lasp_edge.folds.structs import Struct
from lasp_edge.folds.sums import Count, Sum
from lasp_edge.language.declarations import EventType
from lasp_edge.language.plan import Plan
from lasp_edge.language.regimes import WindowRegimes
from lasp_edge.reasons import shown_place
from lasp_edge.scans.time_weighted import TimeWeightedMean

_TRIED = (1_303, 600, -77)
"""Readings in steps; those that are not plausible are brought to the nearest that is."""


_FINER = 10
_POWERS = 5
"""Of a reading in a column, up to its fourth: a kurtosis."""
_FEW = 2
"""Steps between the least and the greatest reading, at most, of which a mean tells nothing."""
_ZEROS: dict[str, tuple[tuple[float, float | None, int], ...]] = {
    "°C": ((-273.15, None, 273), (-32 / 1.8, 1.8, 32)),
    "°F": ((32, 1 / 1.8, 32), (-459.67, None, 459)),
    "K": ((273.15, None, 273),),
}
"""Unit -> the readings that are 0 in other units; how much of these one of it is, None for any,
where nobody adds the number for another reason; and the number that people write."""


def in_steps(plan: Plan) -> list[str]:
    """Return a line for each fold of the user's own that seems to take steps for units."""
    folds = [
        (f"window {each.name}", each.fold, None if each.controls.value else each.source)
        for each in plan.windows.values()
    ]
    for name, made in plan.local_folds.items():
        event = collected_event(plan, made.source.name) or EventType("", made.resolution)
        folds.append((f"fold {name}", made.fold, None if made.made_of else event))
    return list(
        {
            line: None
            for where, outer, read in folds
            for inside, fold in nested_folds(where, outer)
            if read is not None and not (fold.is_built_in or fold.takes_fields)
            if not isinstance(fold, Struct)
            for step in [read.scale]
            for line in (*_lowered(inside, fold, step), *_compared(inside, fold, step, read.unit))
            or (*_rescaled(inside, fold, step), *_converted(inside, fold, step, read.unit))
        }
    )


def rounded_away(plan: Plan) -> list[str]:
    r"""Return a line for each `value=` and map whose numbers are all rounded to 0, but are not 0.

    >>> from lasp_edge import Program, folds
    >>> program = Program("plugs")
    >>> power = program.event("power", resolution="1", unit="W", least=0, most=400)
    >>> kilowatts = {"value": lambda event: event.value / 1_000}
    >>> _ = program.window("kw", source=power, fold=folds.mean(), size_s=60, **kilowatts)
    >>> print(*rounded_away(program.plan())[0].split("; "), sep="\n")
    value= of window kw: each of its numbers is rounded to 0, such as 0.4, by the step 1
    write a finer resolution= of event power
    """
    found = []
    for (name, kind), function in plan.functions.windows.items():
        window = plan.windows[name]
        event = plan.events.get(window.source.name)
        if kind == "value" and event is not None:
            at = WindowRegimes(window, plan.functions, ControlLog()).regime_at(FIRST_US).at
            lost = _lost(plan, event, partial(_with, function, at), window.resolution)
            found += [f"value= of window {name}: {lost} of event {event.name}"] if lost else []
    for name, stream in plan.streams.items():
        event = plan.events.get(stream.sources[0]) if stream.operator == "map" else None
        if event is not None and stream.resolution is not None:
            lost = _lost(plan, event, plan.functions.streams[name], stream.resolution)
            found += [f"map {name}: {lost} of the map"] if lost else []
    return found


def forgotten(plan: Plan) -> list[str]:
    r"""Return a line for each `value=` that asks its reading for nothing, and is no summand.

    Each reading may cost as much: then a sum of these is right, and a mean of them tells nothing.

    >>> from lasp_edge import Program, folds
    >>> program = Program("attic")
    >>> warm = program.event("warm", resolution="0.1")
    >>> off = program.parameter("off", "3", resolution="0.1")
    >>> of_off = {"value": lambda event, at: at[off], "uses": (off,)}
    >>> _ = program.window("w", source=warm, fold=folds.mean(), size_s=60, **of_off)
    >>> print(*forgotten(program.plan())[0].split("; "), sep="\n")
    value= of window w: it asks its reading for nothing, so each counts as the same number
    write event.value where it is meant
    """
    return [
        f"value= of window {name}: it asks its reading for nothing, so each counts as the same "
        "number; write event.value where it is meant"
        for (name, kind), function in plan.functions.windows.items()
        if kind == "value" and not _asks_its_reading(function)
        for several in [[fold for _, fold in nested_folds("", plan.windows[name].fold)]]
        if not any(isinstance(fold, Sum) or not fold.is_built_in for fold in several)
        if not all(isinstance(fold, Count | Struct) for fold in several)
    ]


def _asks_its_reading(function: Any) -> bool:
    """Return whether a function names its event, as far as its code is known."""
    given = unwrap(function)
    if not isfunction(given) or not given.__code__.co_argcount:
        return True
    code = given.__code__
    name = code.co_varnames[0]
    return name in code.co_cellvars or any(
        name in (each.argval if isinstance(each.argval, tuple) else (each.argval,))
        for each in get_instructions(code)
    )


def coarse_means(plan: Plan) -> list[str]:
    r"""Return a line for each mean over time that is rounded to the few values of its event.

    >>> from lasp_edge import Program, scans
    >>> program = Program("pumps")
    >>> on = program.event("on", resolution="1", least=0, most=1)
    >>> duty = {"scan": scans.time_weighted_mean(every_s=60)}
    >>> _ = program.scan("duty", source=on, per_device=True, **duty)
    >>> print(*coarse_means(program.plan())[0].split("; "), sep="\n")
    scan duty: each of its means is rounded to a step of 1, and on is 0 to 1
    write resolution="0.01" in scans.time_weighted_mean
    """
    return [
        f"scan {name}: each of its means is rounded to a step of {step.text}, and {event.name} is "
        f'{scale.span}; write resolution="{float(step.exact) / 100:g}" in scans.time_weighted_mean'
        for name, made in plan.functions.streams.items()
        if isinstance(made, TimeWeightedMean)
        for step in [plan.streams[name].resolution]
        for event in [plan.events.get(plan.streams[name].sources[0])]
        if step is not None and event is not None
        for scale in [event.plausible]
        if scale is not None and scale.nearest(LIMIT) - scale.nearest(-LIMIT) <= _FEW
        if step.exact >= event.resolution.exact
    ]


def _with(function: Callable[[Event[Any], Any], Any], at: Any, event: Event[Any]) -> Any:
    return function(event, at)


def _lost(
    plan: Plan, event: EventType, function: Callable[[Event[Any]], Any], step: Resolution
) -> str:
    """Return what becomes of a function's numbers where a step rounds all of them to 0."""
    numbers = []
    for value in values_of(event, *constants(plan)):
        with suppress(Exception):
            given = Event(event.name, value, FIRST_US, devices_of(plan)[0], AnyTags())
            number = function(given)
            numbers += [number] if step.quantise(number) or number else []
    if len({*numbers}) < len(_TRIED) or any(map(step.quantise, numbers)):
        return ""
    most = max(numbers, key=abs)
    return (
        f"each of its numbers is rounded to 0, such as {most:g}, by the step {step.text}; write a "
        "finer resolution="
    )


def _lowered(where: str, fold: Fold, step: Resolution) -> Iterator[str]:
    """Yield a line for each part that is a reading's steps, whatever the reading is."""
    given = list(_TRIED)
    if isinstance(step, PlausibleRange):
        given = [step.nearest(each) for each in given]
    try:
        found = [fold.lower(fold.lift(each), step) for each in given]
    except BaseException as error:  # noqa: BLE001 - what fails the laws show
        pass_interrupt(error)
        return
    for part in fold.parts if len({*given}) > 1 else ():
        if [each.get(part) for each in found] == given and step.exact != 1:
            yield (
                f"{where}: its part {part} is {given[0]} for one reading of "
                f"{step.real(given[0]):g}; lower gives units: write resolution.real(..)"
            )


def _rescaled(where: str, fold: Fold, step: Resolution) -> Iterator[str]:
    """Yield a line for each part that is another one for the same readings in finer steps.

    That is asked of folds whose columns grow with their readings, and so have no level in steps.
    """
    if step.exact == 1:  # a result in steps is one in units, too
        return
    given = [step.nearest(each) if isinstance(step, PlausibleRange) else each for each in _TRIED]
    finer = Resolution(f"{Decimal(step.exact.numerator) / step.exact.denominator / _FINER:f}")
    try:
        coarse, fine = ([fold.lift(n * by) for n in given] for by in (1, _FINER))
        pairs = [*zip(coarse, fine, strict=True)]
        if not all(_grows([(a[at], b[at]) for a, b in pairs]) for at in range(len(fold.columns))):
            return
        found = fold.lower(reduce(fold.combine, coarse), step)
        again = fold.lower(reduce(fold.combine, fine), finer)
        numbers = [(each, found[each] or 0, again[each] or 0) for each in fold.parts]
        if not all(isfinite(number) for _, *both in numbers for number in both):
            return  # the laws show it
        parts = [each for each, *both in numbers if not isclose(*both)]
    except BaseException as error:  # noqa: BLE001 - what fails the laws show
        pass_interrupt(error)
        return
    write = (
        "// in lower rounds down to whole steps: write /"
        if _rounds_down(fold)
        else "lower gives units: a sum of squares takes the step twice, as in total * "
        "resolution.exact * resolution.exact"
    )
    for part in parts:
        yield (
            f"{where}: its part {part} is {found[part]:g} for readings in steps of {step.text}, "
            f"and {again[part]:g} for the same in steps of {finer.text}; {write}"
        )


def _rounds_down(fold: Fold) -> bool:
    """Return whether `lower` divides by `//`."""
    lower = type(fold).lower
    node = node_of(lower) if isfunction(lower) else None
    return node is not None and any(isinstance(each, ast.FloorDiv) for each in ast.walk(node))


def _grows(pairs: list[tuple[Any, Any]]) -> bool:
    """Return whether a column is tenfold, or its square or the same, where readings are tenfold."""
    return any(all(a * _FINER**power == b for a, b in pairs) for power in range(_POWERS))


def _converted(where: str, fold: Fold, step: Resolution, unit: str) -> Iterator[str]:
    """Yield a line for each column that adds what lies between two units to a reading's steps.

    Any other number that `lift` adds may be one of steps, as a level of 25 °C is 250 of them.
    """
    low, high = _TRIED[-1], _TRIED[0]
    if isinstance(step, PlausibleRange):
        low, high = step.nearest(low), step.nearest(high)
    if step.exact >= 1 or high - low < _FEW:
        return
    given = (low, (low + high) // 2, high)
    try:
        columns = [*zip(*(fold.lift(each) for each in given), strict=True)]
        lines = [_line_through(given, column) for column in columns]
    except BaseException as error:  # noqa: BLE001 - what fails the laws show
        pass_interrupt(error)
        return
    for slope, added in filter(None, lines):
        for zero, as_steep, number in _ZEROS.get(unit, ()):
            is_as_steep = as_steep is None or isclose(slope, as_steep, rel_tol=0.01)
            if is_as_steep and abs(added / slope + zero) <= 1:
                does = f"adds {number} to" if zero < 0 else f"takes {number} off"
                yield (
                    f"{where}: lift {does} a value that is in steps of {step.text}: {number} of "
                    f"them are {step.real(number):g}; write {number / step.exact} for {number}"
                )


def _line_through(given: tuple[int, ...], column: tuple[Any, ...]) -> tuple[float, float] | None:
    """Return the slope of a column over readings, and what is added; None where it is no line."""
    slope = (column[-1] - column[0]) / (given[-1] - given[0])
    added = column[0] - slope * given[0]
    is_line = all(abs(slope * v + added - n) <= 1 for v, n in zip(given, column, strict=True))
    return (slope, added) if slope and is_line else None


def _compared(where: str, fold: Fold, step: Resolution, unit: str) -> Iterator[str]:
    """Yield a line for each comparison of a reading's steps with a number of units.

    A number is one of units where that many steps are no plausible reading. Where nobody says which
    readings are plausible, it is one if the fold's docstring names it with the unit.
    """
    lift = type(fold).lift
    node = node_of(lift) if isfunction(lift) else None
    value = lift.__code__.co_varnames[1] if node is not None else ""
    for each in ast.walk(node) if node is not None else ():
        if not isinstance(each, ast.Compare):
            continue
        sides = [each.left, *each.comparators]
        if not any(isinstance(side, ast.Name) and side.id == value for side in sides):
            continue
        for number in filter(None, (_number(fold, side) for side in sides)):
            if _seems_a_unit(number, step) or _is_named(fold, number, step, unit):
                place = shown_place(lift.__code__.co_filename, each.lineno)
                few, many = float(number * step.exact), float(number / step.exact)
                yield (
                    f"{where}: lift compares {ast.unparse(each)} ({place}), and {value} is in "
                    f"steps of {step.text}: {number:g} of them are {few:g}; write {many:g} for "
                    f"{number:g}"
                )


def _number(fold: Fold, side: ast.expr) -> float | None:
    """Return the number that stands on a side, or that is an attribute of the fold."""
    value = getattr(side, "value", None)
    if isinstance(side, ast.Attribute) and isinstance(value, ast.Name) and value.id == "self":
        value = getattr(fold, side.attr, None)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _is_named(fold: Fold, number: float, step: Resolution, unit: str) -> bool:
    """Return whether the docstring of a fold names a number of units, as "above 25 °C" does."""
    if step.exact >= 1 or not unit or isinstance(step, PlausibleRange):
        return False
    named = rf"(?<![\d.]){re.escape(f'{number:g}')}\s*{re.escape(unit)}(?!\w)"
    return re.search(named, type(fold).__doc__ or "") is not None


def _seems_a_unit(number: float, step: Resolution) -> bool:
    """Return whether a number is a plausible reading in units, and a step finer than 1 is known."""
    if not isinstance(step, PlausibleRange):
        return False
    low, high = step.nearest(-LIMIT), step.nearest(LIMIT)
    return step.exact < 1 and bool(low < number / step.exact < high)
