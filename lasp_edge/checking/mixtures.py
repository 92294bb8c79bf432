"""What does not belong together: two signals in one scan, two units in one sum.

A difference is of one meter. A scan that compares a reading with the one before it, and has no key,
takes the readings of all devices, or of all meters of a device, for those of one.

    >>> from lasp_edge import Program, scans
    >>> program = Program("water")
    >>> litres = program.event("litres", resolution="1", unit="l")
    >>> used = program.scan("used", source=litres, scan=scans.differences())
    >>> print(mixtures(program.plan(), {})[0].partition(": write ")[2])
    per_device=True, or key=lambda event: event.tags[..]
"""

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any, Final

from lasp_edge.checking.determinism import inner_codes, methods_of
from lasp_edge.checking.keys import of_sources
from lasp_edge.checking.texts import named_values, node_of
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.units import unit_of
from lasp_edge.language.acting import Watched
from lasp_edge.language.declarations import EventType, Parameter, Stream
from lasp_edge.language.parameter_scan import ParameterScan
from lasp_edge.language.plan import Plan
from lasp_edge.language.writes import variables_named
from lasp_edge.ordered.scan import Scan
from lasp_edge.scans.hysteresis import TwoLevels
from lasp_edge.scans.last import LastValues
from lasp_edge.scans.running import RunningState
from lasp_edge.scans.top import TopValues

OF_ONE_SIGNAL = {
    *("changes", "debounce", "differences", "held_for", "hysteresis", "rate", "time_weighted_mean")
}
"""The scans that compare a reading with the one before it, by name."""
_OF_ONE_KEY = {"pattern", "sessions"}
"""Those that wait for what comes next: behind a scan with keys mostly for that of the same key."""
_OF_CONDITIONS = {"held_for", "pattern"}
"""Those that are given conditions of a reading."""
_OF_SEVERAL = {TopValues.name, LastValues.name}
"""Those of which an output has the values of several readings."""
_LEVELS: Final = frozenset({"above", "below", "value"})
"""What is compared with a reading, and so is in its unit: arguments of scans, and its value."""


def mixtures(plan: Plan, tags: Mapping[str, Mapping[str, Iterable[str]]]) -> list[str]:
    """Return a line for each place where signals or units are mixed, with what to write.

    Args:
        plan: of the program.
        tags: event -> the tags that functions of the program ask for.
    """
    found = [line for name in plan.streams for line in _signals(plan, plan.streams[name], tags)]
    found += [*_sets(plan), *_windows(plan), *_one_level(plan), *_levels(plan), *_spans(plan)]
    return [*found, *_conditions(plan)]


def _signals(
    plan: Plan, stream: Stream, tags: Mapping[str, Mapping[str, Iterable[str]]]
) -> Iterator[str]:
    scan = getattr(plan.functions.streams.get(stream.name), "name", "")
    if stream.operator == "scan":
        yield from _of_numbers(plan, stream, scan)
    sources = list(_behind(plan, stream))
    keyed = [each.name for each in sources if isinstance(each, Stream) and each.keyed]
    of_one = OF_ONE_SIGNAL | (_OF_ONE_KEY if keyed else set())
    if stream.operator != "scan" or scan not in of_one:
        return
    if stream.keyed:
        yield from _compared(plan, stream, scan)
        return
    asked = sorted({tag for event in stream.events for tag in tags.get(event, ())})
    if keyed:
        mixed, write = f"all keys of {keyed[0]}", "key=lambda event: event.key"
        write += ', or key=lambda event: "" if all are meant' if scan in _OF_ONE_KEY else ""
    elif len(stream.events) > 1:
        mixed, write = " and ".join(sorted(stream.events)), "key=lambda event: event.name"
    elif asked:
        whose = f"those of a device with several {asked[0]}"
        mixed = "those of all devices" if stream.fleet else whose
        write = f'key=lambda event: event.tags["{asked[0]}"]'
    elif stream.fleet:
        mixed = "those of all devices"
        write = "per_device=True, or key=lambda event: event.tags[..]"
    else:
        return
    yield (
        f"scan {stream.name}: {scan} is of one signal, and without a key {mixed} are one: "
        f"write {write}"
    )


def _compared(plan: Plan, stream: Stream, scan: str) -> Iterator[str]:
    """Yield a line where a key has readings of several events, one after the other."""
    if scan not in OF_ONE_SIGNAL or _asks(
        [*_functions(plan, stream.name), *_keys(plan, stream.name)], "name"
    ):
        return
    mixed = "" if _is_of_level(plan, stream.name) else _in_units(plan, _as_read(plan, stream))
    united = plan.streams.get(f"{stream.name}: sources")  # not by the program itself
    names = () if united is None else united.sources
    if mixed:
        yield (
            f"scan {stream.name}: {scan} is of one signal, and its readings are {mixed}; write a "
            "scan for each, or a key with event.name in it"
        )
    elif names:
        yield (
            f"scan {stream.name}: {scan} is of one signal, and readings of {' and '.join(names)} "
            "that have one key are one: write a key with event.name in it, or unite them before "
            f"if they are: program.union({', '.join(names)}, name=..)"
        )


def _of_numbers(plan: Plan, stream: Stream, scan: str) -> Iterator[str]:
    """Yield a line where a scan makes numbers of readings of several units."""
    made, functions = plan.functions.streams[stream.name], _functions(plan, stream.name)
    is_own = isinstance(made, Scan) and not type(made).__module__.startswith("lasp_edge.")
    is_read = (is_own or isinstance(made, RunningState)) and _asks(functions, "value")
    is_told_apart = _asks([*functions, *_keys(plan, stream.name)], "name") or _asks(
        functions, "tags"
    )
    mixed = _in_units(plan, _as_read(plan, stream))
    if mixed and (is_read or scan in _OF_SEVERAL) and not is_told_apart:
        yield (
            f"scan {stream.name}: its readings are {mixed}, as they were read; convert one: "
            f"program.map({stream.events[-1]}, lambda event: .., resolution=)"
        )


def _one_level(plan: Plan) -> Iterator[str]:
    """Yield a line for each condition with one level for readings of several units.

    A key that tells them apart does not help: the level is the same one for each of them.
    """
    for what, given, sources in of_sources(plan):
        kind, _, name = what.partition(" ")
        is_level = kind in {"where", "filter"} and _compares(given)
        if kind == "scan":
            is_level = _is_of_level(plan, name)
        events = sorted({each for source in sources for each in _events_behind(plan, source)})
        mixed = _in_units(plan, events) if is_level else ""
        if mixed:
            yield (
                f"{what}: readings {mixed} are compared with one level; convert one: "
                f"program.map({events[-1]}, lambda event: .., resolution=)"
            )


def _is_of_level(plan: Plan, scan: str) -> bool:
    """Return whether a scan compares all readings with one level, whichever events they are of."""
    name = getattr(plan.functions.streams[scan], "name", "")
    if name == TwoLevels.name:
        return True
    return name in _OF_CONDITIONS and any(map(_compares, _functions(plan, scan)))


def _compares(function: Any) -> bool:
    """Return whether a function compares values with a number, and tells no events apart."""
    if function is None or _asks([function], "name", "tags"):
        return False
    return any(
        isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
        and {_kind(left), _kind(right)} == {"value", "level"}
        for node, _ in _text_of(function)
        for each in ast.walk(node)
        if isinstance(each, ast.Compare)
        for left, op, right in zip(
            [each.left, *each.comparators], each.ops, each.comparators, strict=False
        )
    )


def _kind(side: ast.expr) -> str:
    """Return "value" for that of an event, "level" for a number and a parameter, else ""."""
    if isinstance(side, ast.UnaryOp):
        return _kind(side.operand)
    if isinstance(side, ast.Attribute) and side.attr == "value":
        return "value"
    is_number = isinstance(side, ast.Constant) and isinstance(side.value, int | float)
    is_level = is_number and bool(side.value)  # type: ignore[attr-defined]  # 0 is so in most units
    return "level" if is_level or isinstance(side, ast.Subscript) else ""


def _functions(plan: Plan, name: str) -> list[Any]:
    """Return the functions of the user's in a scan."""
    made = plan.functions.streams[name]
    given = made.function if isinstance(made, ParameterScan) else made
    return list(methods_of(given)) if isinstance(given, Scan) else [given]


def _keys(plan: Plan, name: str) -> list[Any]:
    return [each for of, each in plan.functions.keys.items() if of == name]


def _asks(functions: Iterable[Any], *names: str) -> bool:
    """Return whether some function asks its event, or anything, for one of some attributes."""
    codes = [code for function in functions for _, code in inner_codes(function)]
    return any(set(names).intersection(code.co_names) for code in codes)


def _as_read(plan: Plan, stream: Stream) -> list[str]:
    """Return the events whose readings a stream gets as they are."""
    found = []
    for name in stream.sources:
        source = plan.streams.get(name)
        if source is None:
            found.append(name)
        elif source.operator in {"filter", "union"}:
            found += _as_read(plan, source)
    return sorted({*found})


def _behind(plan: Plan, stream: Stream) -> Iterator[Stream | EventType]:
    """Yield what a stream is made of, up to the scans and events whose readings it gets."""
    for name in stream.sources:
        source = plan.streams.get(name)
        if source is None:
            yield plan.events[name]
        elif source.operator in {"filter", "union", "map", "flat_map"}:
            yield from _behind(plan, source)
        else:
            yield source


def _in_units(plan: Plan, names: Iterable[str]) -> str:
    """Return events with their units, where these are two and more; else an empty text."""
    events = [plan.events[name] for name in names if name in plan.events]
    with_unit = [each for each in events if each.unit and not each.text]
    if len({each.unit for each in with_unit}) < 2:  # noqa: PLR2004 - one alone is mixed with none
        return ""
    return " and ".join(f"of {each.name} in {each.unit}" for each in with_unit)


def _sets(plan: Plan) -> Iterator[str]:
    """Yield a line for each set whose samples are readings of several units."""
    for name in plan.meanings:
        variable = plan.variables[name]
        writers = [event for event, several in plan.collections.items() if variable in several]
        if variable.measures is None:  # else what handlers write may have been converted
            writers += [
                event
                for event, handlers in plan.functions.handlers.items()
                if any(variable in variables_named(handler) for handler in handlers)
            ]
        mixed = _in_units(plan, sorted({*writers}))
        if mixed:
            yield (
                f"variable {name}: its samples are {mixed}, as they were read; convert one in a "
                "handler, and say measures= for the unit that they have then"
            )


def _windows(plan: Plan) -> Iterator[str]:
    """Yield a line for each window of numbers over a union of readings of several units."""
    for name, window in plan.windows.items():
        stream = plan.streams.get(window.source.name)
        if stream is None or stream.operator != "union" or _is_without_unit(window.fold):
            continue
        mixed = _in_units(plan, stream.sources)
        if mixed:
            last = stream.sources[-1]
            yield (
                f"window {name}: its readings are {mixed}, as they were read; convert one: "
                f"program.map({last}, lambda event: .., resolution=)"
            )


def _is_without_unit(fold: Fold) -> bool:
    return not any(unit_of(fold, part, "unit") for part in fold.parts)


def _levels(plan: Plan) -> Iterator[str]:
    """Yield a line for each parameter that is a level of a value in another unit."""
    for name, watched in plan.alerts.items():
        unit = _unit_watched(plan, watched)
        for _, level in watched.levels:
            if isinstance(level, Parameter) and unit and level.unit not in {"", unit}:
                yield (
                    f"alert {name}: parameter {level.name} is in {level.unit}, and "
                    f"{watched.part} of {watched.variable} is in {unit}"
                )


def _spans(plan: Plan) -> Iterator[str]:
    """Yield a line for each parameter in another unit than seconds that is a span of time."""
    given = [
        (f"window {name}: its {what} is", each)
        for name, window in plan.windows.items()
        for what, each in (("size", window.controls.size), ("slide", window.controls.slide))
        if each is not None
    ]
    for name, scan in plan.functions.streams.items():
        arguments = _arguments(plan, scan.function) if isinstance(scan, ParameterScan) else ()
        spans = [(what, each) for what, each in arguments if what.endswith("_s")]
        given += [(f"scan {name}: {what} is", each) for what, each in spans]
    for what, each in given:
        if each.unit not in {"", "s"}:
            yield (
                f"{what} in seconds, and parameter {each.name} is in {each.unit}; declare it with "
                'unit="s"'
            )


def _conditions(plan: Plan) -> Iterator[str]:
    """Yield a line for each parameter that a reading in another unit is compared with."""
    for what, given, sources in of_sources(plan):
        events = [n for name in sources for n in _events_behind(plan, name)]
        units = {plan.events[each].unit for each in events}
        unit, event = (units.pop(), events[0]) if len(units) == 1 else ("", "")
        function = given.function if isinstance(given, ParameterScan) else given
        levels = [] if not unit else [*_arguments(plan, function), *_levels_in(plan, function)]
        for each in dict.fromkeys(one for what, one in levels if what in _LEVELS):
            if each.unit not in {"", unit}:
                yield (
                    f"{what}: parameter {each.name} is in {each.unit}, and readings of {event} are "
                    f'in {unit}; declare it with unit="{unit}", or convert it'
                )


def _events_behind(plan: Plan, name: str) -> list[str]:
    """Return the events whose readings a source has as they are."""
    return [name] if name in plan.events else _as_read(plan, plan.streams[name])


def _arguments(plan: Plan, function: Any) -> Iterator[tuple[str, Parameter]]:
    """Yield each argument that a function gives by name, and that is one parameter."""
    for node, known in _text_of(function):
        for each in ast.walk(node):
            parameter = _asked(plan, each.value, known) if isinstance(each, ast.keyword) else None
            if isinstance(each, ast.keyword) and parameter is not None:
                yield str(each.arg), parameter


def _levels_in(plan: Plan, function: Any) -> Iterator[tuple[str, Parameter]]:
    """Yield each parameter that a function compares the value of an event with."""
    for node, known in _text_of(function):
        for each in ast.walk(node):
            sides = [each.left, *each.comparators] if isinstance(each, ast.Compare) else []
            is_value = [isinstance(s, ast.Attribute) and s.attr == "value" for s in sides]
            for beside in (n for n, is_one in enumerate(is_value) if is_one):
                near = [sides[n] for n in (beside - 1, beside + 1) if 0 <= n < len(sides)]
                found = (_asked(plan, side, known) for side in near)
                yield from (("value", one) for one in found if one is not None)


def _text_of(function: Any) -> Iterator[tuple[ast.AST, dict[str, Any]]]:
    """Yield the text of a function, and what the names in it mean; nothing where it has none."""
    given = inspect.unwrap(function) if callable(function) else None
    node = node_of(given) if isinstance(given, FunctionType) else None
    if isinstance(given, FunctionType) and node is not None:
        yield node, dict(named_values(given, node))


def _asked(plan: Plan, node: ast.expr, known: Mapping[str, Any]) -> Parameter | None:
    """Return the parameter of `at[limit]` or `at["limit"]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return None
    asked, name = node.slice, ""
    if isinstance(asked, ast.Name):
        name = getattr(known.get(asked.id), "name", "")
    elif isinstance(asked, ast.Constant) and node.value.id not in known:
        name = str(asked.value)
    return plan.parameters.get(name)


def _unit_watched(plan: Plan, watched: Watched) -> str:
    """Return the unit of a value that is watched; "" where it is not known, or has none."""
    window, made = plan.windows.get(watched.variable), plan.dynamic_folds.get(watched.variable)
    local = made.source if made else plan.local_folds.get(watched.variable)
    if window is not None:
        return unit_of(window.fold, watched.part, window.source.unit)
    if local is None or local.made_of:
        return ""
    events = plan.meanings[local.source.name].events
    units = {plan.events[each].unit for each in events if each in plan.events}
    return unit_of(local.fold, watched.part, units.pop()) if len(units) == 1 else ""
