"""Keys that differ from reading to reading, and functions that ask for a key that nothing has.

Of the first each reading would have rows, and a state, of its own.

>>> from lasp_edge import Program, folds
>>> program = Program("house")
>>> warm = program.event("warm", resolution="0.1")
>>> by = lambda event: f"{event.device} {event.time_us}"
>>> by_time = program.window("by_time", source=warm, fold=folds.mean(), size_s=60, key=by)
>>> print(restless(program.plan())[0].partition(":")[0])
key of window by_time gives each second a key of its own
"""

import dis
import inspect
import io
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from types import FunctionType
from typing import Any

from lasp_edge.checking.readings import FIRST_US, AnyTags, texts_of, values_of
from lasp_edge.event import Event
from lasp_edge.language.plan import Plan
from lasp_edge.units import SECOND_US

SECONDS = 5
"""Readings of a second each that are alike in all else."""


def restless(plan: Plan) -> list[str]:
    """Return a line for each key function that gives another key for each time."""
    with redirect_stdout(io.StringIO()):
        return [
            f"{what} gives each second a key of its own: its rows, and what devices and lakes keep "
            "for each key, grow with every reading; leave the time out of it, as windows are of "
            "time already"
            for what, name, event in _keyed(plan)
            if _is_restless(plan, name, event)
        ]


def keyless(plan: Plan) -> list[str]:
    """Return a line for each function of readings that asks for their key, which only scans give.

    >>> from lasp_edge import Program, folds
    >>> program = Program("house")
    >>> warm = program.event("warm", resolution="0.1")
    >>> by = {"key": lambda event: event.key}
    >>> _ = program.window("by_room", source=warm, fold=folds.mean(), size_s=60, **by)
    >>> print(keyless(program.plan())[0].partition(";")[0])
    key of window by_room asks for event.key, and that is empty: no scan is before it
    """
    return [
        f"{what} asks for {name}.key, and that is empty: no scan is before it; write "
        f"{name}.tags[..], or {name}.device"
        for what, function, sources in of_sources(plan)
        if not any(each in plan.streams and not plan.streams[each].stateless for each in sources)
        for name in _asked_for_key(function)
    ]


def of_sources(plan: Plan) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """Yield functions that are given events, each with what it is for, and where they are from."""
    functions = plan.functions
    for name, key in functions.keys.items():
        if name in plan.streams:
            yield f"key of scan {name}", key, plan.streams[name].sources
        elif name not in plan.windows:
            several = plan.collections.items()
            events = [each for each, into in several if any(one.name == name for one in into)]
            yield f"key of variable {name}", key, tuple(events)
    for name, window in plan.windows.items():
        of_window = {"key": functions.keys.get(name)}
        of_window |= {kind: functions.windows.get((name, kind)) for kind in ("value", "where")}
        for kind, function in of_window.items():
            yield f"{kind} of window {name}", function, (window.source.name,)
    for event, handlers in functions.handlers.items():
        yield from ((f"handler of event {event}", each, (event,)) for each in handlers)
    for name, function in functions.streams.items():
        yield f"{plan.streams[name].operator} {name}", function, plan.streams[name].sources


def _asked_for_key(function: Any) -> Iterator[str]:
    """Yield the name of a function's event, where it asks for its key, and not whether it has one.

    `event.key or event.tags["room"]` is for readings and for outputs of scans.
    """
    given = inspect.unwrap(function) if callable(function) else None
    if not isinstance(given, FunctionType) or not given.__code__.co_argcount:
        return
    code = given.__code__
    name = code.co_varnames[0]
    steps = [*dis.get_instructions(code)]
    for step, after, then in zip(steps, steps[1:], steps[2:], strict=False):
        is_event = step.opname.startswith("LOAD_FAST") and step.argval == name
        is_asked = "JUMP" in then.opname or then.opname in {"COPY", "TO_BOOL"}
        if is_event and after.argval == "key" and not is_asked:
            yield name
            return


def _keyed(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield what has a key, its name, and an event whose readings the key is given."""
    for name in plan.functions.keys:
        if name in plan.windows:
            yield f"key of window {name}", name, plan.windows[name].source.name
        elif name in plan.streams:
            yield f"key of scan {name}", name, plan.streams[name].sources[0]
        else:
            for event, several in plan.collections.items():
                if any(each.name == name for each in several):
                    yield f"key of variable {name}", name, event


def _is_restless(plan: Plan, name: str, event: str) -> bool:
    known = plan.events.get(event)
    if known is None:  # of a stream: what it gives is not known here
        return False
    value: Any = texts_of(known)[0] if known.text else values_of(known, (), ())[0]
    found = set()
    for second in range(SECONDS):
        made = Event(event, value, FIRST_US + second * SECOND_US, "made-up", AnyTags())
        with suppress(Exception):  # what it raises is found where it is tried
            found.add(plan.functions.key(name, made))
    return len(found) == SECONDS
