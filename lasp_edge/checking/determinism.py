"""Names in a function that do not follow from its arguments, or are rounded by the machine.

A stream's functions are called again when something comes late, after a restart, and on other
machines: each time they must give the same. Whether they do cannot be proved; what is known to
break it can be found by name, in a function and in those of its package that it names.

    >>> import math
    >>> risks(lambda event: math.log(event.value) + math.sqrt(event.value))
    ['math.log: it is rounded differently from machine to machine; Decimal has one that is not']
"""

import builtins
import datetime as dt
import inspect
import math
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

_EACH_TIME: Final = frozenset({"time", "random", "secrets", "uuid", "_random"})
"""Modules whose functions give something else each time."""
_CIRCULAR = ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "degrees", "radians", "hypot")
_HYPERBOLIC = ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "dist")
_EXPONENTIAL = ("exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "pow", "cbrt")
_SPECIAL = ("erf", "erfc", "gamma", "lgamma")
TRANSCENDENTAL: Final = frozenset((*_CIRCULAR, *_HYPERBOLIC, *_EXPONENTIAL, *_SPECIAL))
"""Functions of `math` whose last digits are the machine's own."""
_NOW: Final = frozenset({"now", "utcnow", "today"})
_ARGUMENTS = "the items of a stream must follow from its events alone"
_ROUNDED = "it is rounded differently from machine to machine; Decimal has one that is not"


def risks(function: Callable[..., Any]) -> list[str]:
    """Return the names in a function that may give something else elsewhere or next time."""
    found: dict[str, None] = {}
    for each in _functions(inspect.unwrap(function), set()):
        for code in _codes(each.__code__):
            found.update(dict.fromkeys(_named(each, code)))
    return list(found)


def _functions(function: Any, seen: set[int]) -> Iterator[FunctionType]:
    """Yield a function, and those of its package that it names."""
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    yield function
    package = function.__module__.partition(".")[0]
    for code in _codes(function.__code__):
        for name in code.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, FunctionType) and value.__module__.partition(".")[0] == package:
                yield from _functions(value, seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code, and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _named(function: FunctionType, code: CodeType) -> Iterator[str]:
    closed = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}
    known = {**vars(builtins), **function.__globals__, **closed}
    for name in (*code.co_names, *code.co_freevars):
        if name in known:
            yield from _risks_of(name, known[name], frozenset(code.co_names))


def _risks_of(name: str, value: Any, names: frozenset[str]) -> Iterator[str]:
    """Yield the risks of a value that a code names, beside other names."""
    owner = getattr(value, "__module__", None) or type(getattr(value, "__self__", None)).__module__
    if isinstance(value, ModuleType):
        if value.__name__ in _EACH_TIME:
            yield f"{name}: {_ARGUMENTS}"
        elif value is math:
            yield from (f"{name}.{each}: {_ROUNDED}" for each in sorted(names & TRANSCENDENTAL))
    elif callable(value) and owner in _EACH_TIME:
        yield f"{name}: {_ARGUMENTS}"
    elif callable(value) and owner == "math" and value.__name__ in TRANSCENDENTAL:
        yield f"{name}: {_ROUNDED}"
    elif value is builtins.hash or value is builtins.id:
        yield f"{name}: it differs from process to process"
    if value in (dt, dt.datetime, dt.date) and names & _NOW:
        yield f"{name}.{min(names & _NOW)}: {_ARGUMENTS}"
