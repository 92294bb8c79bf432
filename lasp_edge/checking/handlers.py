"""Whether a program's functions can be called as agents call them, and which values they read.

Python finds out at the first reading that a handler takes another number of arguments; here it is
found before. And where a handler of an event reads the fleet's value, its device alone knows which
one it read: the result cannot be computed again elsewhere.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Final

from crdts import Counter, GCounter
from lasp_edge.checking.determinism import inner_codes
from lasp_edge.checking.texts import node_of
from lasp_edge.folds.numbers import LIMIT
from lasp_edge.language.arguments import takes_parameters
from lasp_edge.language.halves import HALVES
from lasp_edge.language.plan import Plan
from lasp_edge.language.writes import variables_named
from lasp_edge.reasons import shown_place

_OF_A_SAMPLE: Final = 4
"""Arguments of `update(VARIABLE, BoundedLWWSet.add, VALUE, TIME)`."""


def uncallable(plan: Plan) -> list[str]:
    """Return a line for each function of a program that cannot be called as agents call it."""
    found = []
    for what, function, arguments in _calls(plan):
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # some built-in functions have none
            continue
        try:
            signature.bind(*arguments)
        except TypeError as error:
            name = getattr(function, "__name__", type(function).__name__)
            found.append(
                f"{what}: {name}{signature} is called as ({', '.join(arguments)}): {error}"
            )
    return found


def fleet_readers(plan: Plan) -> list[str]:
    """Return a line for each event whose handlers read a fold's value."""
    return [
        f"handlers of event {event} name {', '.join(names)}: what update.value gives is what this "
        "device knows at that time; what they make of it is not computed again anywhere else"
        for event, names in sorted(plan.reads.items())
    ]


def recounting(plan: Plan) -> list[str]:
    """Return a line for each handler that counts, and that runs again for what it has counted."""
    revised = "runs again for a row that a late reading revises"
    given = [
        (f"on_result of {name}", handler, revised)
        for name, handlers in plan.functions.results.items()
        for handler in handlers
        if not _tells_revisions_apart(handler)
    ]
    given += [
        (f"on_threshold of {awaited.variable}", handler, "runs on each device and at each start")
        for awaited, handler in zip(plan.awaited, plan.functions.reached, strict=True)
    ]
    given += [
        (f"on_value of {watched.variable}", handler, "runs on each device, as all have the value")
        for watched, handler in zip(plan.reactions, plan.functions.reacting, strict=True)
        if watched.variable in plan.dynamic_folds
    ]
    return [
        f"{what} counts in {variable.name}, and {why}: that counts more than once; add to a set, "
        "such as a GSet, whose size is the count" + ", or look at row.revision" * (why == revised)
        for what, handler, why in given
        for variable in variables_named(handler)
        if isinstance(variable.bottom, Counter | GCounter)
    ]


def _tells_revisions_apart(handler: Callable[..., Any]) -> bool:
    """Return whether a handler of rows uses what distinguishes a row from its revision."""
    names = {name for _, code in inner_codes(handler) for name in code.co_names}
    return not names.isdisjoint({"status", "revision"})


def unfilled(plan: Plan) -> list[str]:
    """Return a line for each variable that a fold reads, and that no event writes."""
    sources = {name for fold in plan.local_folds.values() for name in fold.sources}
    return [
        f"nothing fills variable {name}, so its folds have no value: program.collect(EVENT, "
        f"into={name}), or a handler that updates it, is missing"
        for name, meaning in sorted(plan.meanings.items())
        if name in sources and not meaning.events
    ]


def feeding(plan: Plan) -> list[str]:
    """Return a line for each handler of a value that adds to the samples of that very value."""
    return [
        f"on_value of {watched.variable} names {variable.name}, of which {watched.variable} is "
        "made: what it adds changes the value, which calls it again, without end; add to another "
        "variable"
        for watched, handler in zip(plan.reactions, plan.functions.reacting, strict=True)
        for variable in variables_named(handler)
        if variable.name in _sources(plan, watched.variable)
    ]


def doubled(plan: Plan) -> list[str]:
    """Return a line for each handler that adds to what collects its event already."""
    return [
        f"each reading of {event} comes into {variable.name} twice: by collect, and by its handler "
        f"{getattr(handler, '__name__', type(handler).__name__)}; leave one out"
        for event, collected in plan.collections.items()
        for handler in plan.functions.handlers.get(event, ())
        for variable in variables_named(handler)
        if variable in collected
    ]


def mapped_beside(plan: Plan) -> list[str]:
    """Return a line for each window to which a reading comes as it is, and by a map, too.

    >>> from lasp_edge import Program, folds
    >>> program = Program("attic")
    >>> warm = program.event("warm", resolution="0.1", unit="°C")
    >>> f = program.map(warm, lambda event: event.value * 1.8 + 32, "f", resolution="0.1")
    >>> _ = program.window("w", source=[warm, f], fold=folds.mean(), size_s=60)
    >>> print(mapped_beside(program.plan())[0].partition("; ")[0])
    window w: each reading of warm comes into it twice, as it is and by map f
    """
    found = []
    for name, window in plan.windows.items():
        union = plan.streams.get(window.source.name)
        given = [] if union is None or union.operator != "union" else [*union.sources]
        functions = [each for (of, _), each in plan.functions.windows.items() if of == name]
        functions += [each for of, each in plan.functions.keys.items() if of == name]
        codes = [code for function in functions for _, code in inner_codes(function)]
        mapped = [plan.streams[each] for each in given if each in plan.streams]
        if any("name" in code.co_names for code in codes):
            continue
        found += [
            f"window {name}: each reading of {event} comes into it twice, as it is and by map "
            f"{made.name}; leave one out, or write a key with event.name in it"
            for made in mapped
            for event in made.sources
            if made.operator == "map" and event in given
        ]
    return found


def times_as_values(plan: Plan) -> list[str]:
    """Return a line for each handler that adds the time of a reading as its value."""
    return [
        f"handler {handler.__name__} of event {event} exchanges value and time "
        f"({shown_place(handler.__code__.co_filename, each.lineno)}): write "
        f"update({', '.join(map(ast.unparse, (*each.args[:2], each.args[3], each.args[2])))})"
        for event, handlers in plan.functions.handlers.items()
        for handler in map(inspect.unwrap, handlers)
        for node in [node_of(handler) if isinstance(handler, FunctionType) else None]
        for each in (() if node is None else ast.walk(node))
        if isinstance(each, ast.Call) and len(each.args) == _OF_A_SAMPLE
        if [getattr(given, "attr", "") for given in each.args[1:]] == ["add", "time_us", "value"]
    ]


def _sources(plan: Plan, value: str) -> frozenset[str]:
    """Return the variables whose samples are in a value."""
    dynamic = plan.dynamic_folds.get(value)
    return (plan.local_folds[value] if dynamic is None else dynamic.source).sources


def unread(plan: Plan) -> list[str]:
    """Return a line for each stream of which nothing is made."""
    read = {source for stream in plan.streams.values() for source in stream.sources}
    read |= {window.source.name for window in plan.windows.values()} | {*plan.stream_results}
    return [
        f"nothing is made of {stream.operator} {name}: program.result({name!r}), a window over it "
        "or a stream that reads it is missing"
        for name, stream in plan.streams.items()
        if name not in read and stream.operator not in HALVES
    ]


def unused(plan: Plan) -> list[str]:
    """Return a line for each event that nothing reads, and each shared variable nothing updates."""
    functions = plan.functions
    read = {window.source.name for window in plan.windows.values()} | plan.streamed_events
    read |= functions.handlers.keys() | plan.collections.keys()
    found = [
        f"nothing reads event {name}: a window, a stream, collect or a handler of it is missing"
        for name in sorted(plan.events.keys() - read)
    ]
    acting = [each for several in functions.handlers.values() for each in several]
    acting += [each for several in functions.results.values() for each in several]
    acting += [*functions.reacting, *functions.reached]
    named = {variable.name for handler in acting for variable in variables_named(handler)}
    collected = {each.name for several in plan.collections.values() for each in several}
    written = named | collected | plan.derivations.keys()
    return found + [
        f"nothing updates {name}: a handler that does is missing"
        for name in sorted(plan.shared_variables.keys() - written)
    ]


def valueless(plan: Plan) -> list[str]:
    """Return a line for each event whose range has room for one or two of its steps alone."""
    found = []
    for name, event in sorted(plan.events.items()):
        known = event.plausible
        least, most = (0, 0) if known is None else (known.nearest(-LIMIT), known.nearest(LIMIT))
        few = 1 + event.is_unstepped  # a resolution that was written may be meant: 0 or 1
        if known is not None and most - least < few:
            values = " and ".join(f"{event.resolution.real(n):g}" for n in range(least, most + 1))
            found.append(
                f"readings of {name} can only be {values}: {known.span} is less than a few steps "
                f"of {event.resolution.text}; give event({name!r}, resolution=) a finer one"
            )
    return found


def unstepped(plan: Plan) -> list[str]:
    """Return a line for each event whose readings are rounded because nobody gave a step."""
    return [
        f"readings of {name} count as whole numbers, 21.4 as 21: event({name!r}, "
        'resolution="0.1") keeps a digit, and resolution="1" ends this line'
        for name, event in sorted(plan.events.items())
        if event.is_unstepped
    ]


def _calls(plan: Plan) -> Iterator[tuple[str, Callable[..., Any], tuple[str, ...]]]:
    """Yield the title of each function, the function, and the names of its arguments."""
    functions = plan.functions
    for name, key in functions.keys.items():
        kinds = {"window": plan.windows, "scan": plan.streams}
        what = next((kind for kind, known in kinds.items() if name in known), "variable")
        yield f"key of {what} {name}", inspect.unwrap(key), ("event",)
    for (window, name), function in functions.windows.items():
        given = inspect.unwrap(function)
        takes = ("event", "at") if takes_parameters(given) else ("event",)
        yield f"{name} of window {window}", given, ("at",) if name == "fold" else takes
    yield from _stream_calls(plan)
    for event, handlers in functions.handlers.items():
        for handler in handlers:
            yield f"handler of event {event}", handler, ("event", "update")
    for name, function in functions.derived.items():
        yield f"function of {name}", function, ("element",)
    for awaited, handler in zip(plan.awaited, functions.reached, strict=True):
        yield f"on_threshold of {awaited.variable}", handler, ("value", "update")
    for watched, handler in zip(plan.reactions, functions.reacting, strict=True):
        yield f"on_value of {watched.variable}", handler, ("value", "update")


def _stream_calls(plan: Plan) -> Iterator[tuple[str, Callable[..., Any], tuple[str, ...]]]:
    """Yield the same of the functions of streams, and of the handlers of results."""
    for name, function in plan.functions.streams.items():
        if plan.streams[name].operator != "scan":
            yield f"function of {name}", function, ("event",)
    for name, handlers in plan.functions.results.items():
        for handler in handlers:
            yield f"on_result of {name}", handler, ("row", "update")
