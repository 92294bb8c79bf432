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
from collections.abc import Iterable, Iterator, Mapping

from lasp_edge.checking.determinism import inner_codes
from lasp_edge.checking.texts import named_values, node_of
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.units import unit_of
from lasp_edge.language.acting import Watched
from lasp_edge.language.declarations import EventType, Parameter, Stream
from lasp_edge.language.parameter_scan import ParameterScan
from lasp_edge.language.plan import Plan
from lasp_edge.language.writes import variables_named

OF_ONE_SIGNAL = {
    *("changes", "debounce", "differences", "held_for", "hysteresis", "rate", "time_weighted_mean")
}
"""The scans that compare a reading with the one before it, by name."""
_OF_ONE_KEY = {"pattern", "sessions"}
"""Those that wait for what comes next: behind a scan with keys mostly for that of the same key."""


def mixtures(plan: Plan, tags: Mapping[str, Mapping[str, Iterable[str]]]) -> list[str]:
    """Return a line for each place where signals or units are mixed, with what to write.

    Args:
        plan: of the program.
        tags: event -> the tags that functions of the program ask for.
    """
    found = [line for name in plan.streams for line in _signals(plan, plan.streams[name], tags)]
    return [*found, *_sets(plan), *_windows(plan), *_levels(plan), *_spans(plan)]


def _signals(
    plan: Plan, stream: Stream, tags: Mapping[str, Mapping[str, Iterable[str]]]
) -> Iterator[str]:
    scan = getattr(plan.functions.streams.get(stream.name), "name", "")
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
    """Yield a line where a key has readings of several units, one after the other."""
    asked = [code.co_names for _, code in inner_codes(plan.functions.keys[stream.name])]
    mixed = _in_units(plan, sorted(stream.events))
    if mixed and scan in OF_ONE_SIGNAL and not any("name" in names for names in asked):
        yield (
            f"scan {stream.name}: {scan} is of one signal, and its readings are {mixed}; write a "
            "scan for each, or a key with event.name in it"
        )


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
        if isinstance(scan, ParameterScan):
            given += [(f"scan {name}: {what} is", each) for what, each in _spans_of(scan)]
    for what, each in given:
        if each.unit not in {"", "s"}:
            yield (
                f"{what} in seconds, and parameter {each.name} is in {each.unit}; declare it with "
                'unit="s"'
            )


def _spans_of(scan: ParameterScan) -> Iterator[tuple[str, Parameter]]:
    """Yield each argument in seconds of a scan that asks for one parameter, and that."""
    node = node_of(scan.function)
    if node is None:
        return
    known, by_name = dict(named_values(scan.function, node)), {e.name: e for e in scan.uses}
    for each in ast.walk(node):
        if isinstance(each, ast.keyword) and str(each.arg).endswith("_s"):
            asked = each.value.slice if isinstance(each.value, ast.Subscript) else each.value
            if isinstance(asked, ast.Name):
                name = getattr(known.get(asked.id), "name", "")
            else:
                name = getattr(asked, "value", "")
            if isinstance(each.value, ast.Subscript) and name in by_name:
                yield str(each.arg), by_name[name]


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
