"""Which variables a handler's code names: those that it may write.

A fold over samples means something else once another event writes them, so a plan has to know which
events do. Handlers are functions like any other; what they write is found in what their code names:
in closures, globals, defaults, attributes, containers, and in functions that they call.

    >>> from crdts import BoundedLWWSet
    >>> from lasp_edge import Program
    >>> samples = Program("greenhouse").declare_dynamic(BoundedLWWSet(bound=5), "samples")
    >>> def handler(event, update):
    ...     update(samples, BoundedLWWSet.add, event.value, event.time_us)
    >>> variables_named(handler) == [samples]
    True
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from lasp_edge.variables import Variable

DEPTH = 5
"""Steps from a handler to a variable, at most: a function that it calls, a container, an attribute
are one step each. Code that goes further is not followed: it belongs to libraries."""


def variables_named(function: Any) -> list[Variable]:
    """Return the variables that a function's code names, in the order of their names."""
    found: dict[int, Variable] = {}
    _search(function, frozenset(), DEPTH, found, set())
    return sorted(found.values(), key=lambda variable: variable.name)


def _search(
    thing: Any, names: frozenset[str], depth: int, found: dict[int, Variable], seen: set[int]
) -> None:
    """Collect the variables that `thing` leads to; `names` are those that its user's code has."""
    if isinstance(thing, Variable):
        found[id(thing)] = thing
    elif depth and id(thing) not in seen and not isinstance(thing, str | bytes | int | float):
        seen.add(id(thing))
        names, parts = _parts(thing, names)
        for part in parts:
            _search(part, names, depth - 1, found, seen)


def _parts(thing: Any, names: frozenset[str]) -> tuple[frozenset[str], Iterable[Any]]:
    """Return the names that code in `thing` uses, or else the given ones, and what it leads to."""
    if isinstance(thing, FunctionType):
        names = frozenset(_names(thing.__code__))
        return names, _reached(thing, names)
    if isinstance(thing, MethodType):
        names = frozenset(_names(getattr(thing.__func__, "__code__", None)))
        return names, (thing.__func__, thing.__self__)
    if isinstance(thing, partial):
        return names, (thing.func, *thing.args, *thing.keywords.values())
    if isinstance(thing, Mapping):
        return names, list(thing.values())
    if isinstance(thing, list | tuple | set | frozenset):
        return names, thing
    called = _stored(type(thing), "__call__")
    if isinstance(called, FunctionType):
        names |= frozenset(_names(called.__code__))
    return names, [called, *(_stored(thing, name) for name in sorted(names))]


def _stored(thing: Any, name: str) -> Any:
    """Return an attribute as it is stored, so that no property is called, or None."""
    kind, places = thing, []
    if not isinstance(thing, type):
        kind = type(thing)
        with suppress(AttributeError):
            places.append(object.__getattribute__(thing, "__dict__"))
    places += [vars(base) for base in kind.__mro__]
    return next((place[name] for place in places if name in place), None)


def _names(code: CodeType | None) -> Iterator[str]:
    """Yield the names that code uses, the functions inside it included."""
    if code is None:
        return
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _reached(function: FunctionType, names: frozenset[str]) -> Iterator[Any]:
    """Yield what a function's code can name."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # nothing was assigned to it yet
            continue
    for name in sorted(names):
        if name in function.__globals__:
            yield function.__globals__[name]
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
