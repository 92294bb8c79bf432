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

import ast
import dis
import inspect
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from types import FunctionType
from typing import Any, Final

from lasp_edge.checking.readings import FIRST_US, AnyTags, plausible, texts_of, values_of
from lasp_edge.checking.texts import node_of
from lasp_edge.event import Event
from lasp_edge.language.plan import Plan
from lasp_edge.units import SECOND_US

HOUR_US = 3_600 * SECOND_US
_TRIED = 20
"""Steps of readings, from 0 on, whose keys are looked at."""

SPANS = {"second": (SECOND_US, 5), "minute": (60 * SECOND_US, 1_500), "hour": (HOUR_US, 200)}
"""How far readings are apart that are alike in all else, and how many: more than a day's minutes,
and more than a week's hours, so that a key of the hour of the day comes again."""
_DIGITS: Final = re.compile(r"\d\.\d{12,}")
"""A double whose last digits nobody wrote."""


def restless(plan: Plan) -> list[str]:
    """Return a line for each key function that gives another key for each time.

    A scan may have a key for each minute or hour: its state is over with it.
    """
    with redirect_stdout(io.StringIO()):
        return [
            f"{what} gives each {span} a key of its own: its rows, and what devices and lakes keep "
            "for each key, grow with every reading; leave the time out of it, as windows are of "
            "time already"
            for what, name, event in _keyed(plan)
            for span in [_restless(plan, name, event)]
            if span == "second" or (span and name in plan.windows)
        ]


def long_keys(plan: Plan) -> list[str]:
    """Return a line for each key function that prints a double that was computed.

    >>> from lasp_edge import Program, folds
    >>> program = Program("house")
    >>> level = program.event("level", resolution="1", least=0, most=5)
    >>> by = {"key": lambda event: str(event.value * 0.1)}
    >>> _ = program.window("by_level", source=level, fold=folds.count(), size_s=60, **by)
    >>> print(long_keys(program.plan())[0].partition(";")[0])
    key of window by_level gives '0.30000000000000004' for the reading level 3
    """
    found: dict[str, str] = {}
    with redirect_stdout(io.StringIO()):
        for what, name, event in _keyed(plan):
            known = plan.events.get(event)
            steps = range(_TRIED) if known is not None and not known.text else ()
            values = [known.resolution.real(plausible(known, n)) for n in steps] if known else []
            for value in dict.fromkeys(values):
                with suppress(Exception):  # what it raises is found where it is tried
                    made = Event(event, value, FIRST_US, "made-up", AnyTags())
                    key = plan.functions.key(name, made)
                    if _DIGITS.search(key) and not _DIGITS.search(str(value)):
                        found.setdefault(
                            what,
                            f"{what} gives {key!r} for the reading {event} {value:g}; a double "
                            "that was computed has digits that nobody means: write round(.., 3)",
                        )
    return list(found.values())


def whole_tags(plan: Plan) -> list[str]:
    """Return a line for each function that makes a text of all tags of a reading."""
    return [
        f"{what} makes a text of all tags, {ast.unparse(each)}: with a tag more, or in a later "
        f'release, it is another one; write those that are meant, as in {name}.tags["room"]'
        for what, given, _ in of_sources(plan)
        for function in [inspect.unwrap(given) if callable(given) else None]
        if isinstance(function, FunctionType) and function.__code__.co_argcount
        for name in [function.__code__.co_varnames[0]]
        for each in ast.walk(node_of(function) or ast.Module([], []))
        if _is_text_of(each, f"{name}.tags")
    ]


def _is_text_of(node: ast.AST, name: str) -> bool:
    """Return whether an expression is the text of something: `str(x)`, or `{x}` in an f-string."""
    if isinstance(node, ast.FormattedValue):
        return ast.unparse(node.value) == name
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return called in {"str", "repr", "format"} and [*map(ast.unparse, node.args)][:1] == [name]  # type: ignore[attr-defined]


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


def _restless(plan: Plan, name: str, event: str) -> str:
    """Return the span after which the key is always another one; "" where keys come again."""
    known = plan.events.get(event)
    if known is None:  # of a stream: what it gives is not known here
        return ""
    value: Any = texts_of(known)[0] if known.text else values_of(known, (), ())[0]
    for span, (apart_us, count) in SPANS.items():
        found = set()
        for n in range(count):
            made = Event(event, value, FIRST_US + n * apart_us, "made-up", AnyTags())
            try:
                found.add(plan.functions.key(name, made))
            except Exception:  # noqa: BLE001 - what it raises is found where it is tried
                return ""
            if len(found) <= n:
                break
        else:
            return span
    return ""
