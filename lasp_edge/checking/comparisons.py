"""Comparisons that hold for no reading, for each, or for others than they say.

A reading is a number, also where "ON" came; a tag is a text, and "10" < "3"; a double that was
computed is seldom the one that its digits say.

    >>> 1.3 % 1 == 0.3, max(["9", "10"])
    (False, '9')
"""

import ast
import inspect
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from types import FunctionType
from typing import Any, Final

from lasp_edge.checking.keys import of_sources
from lasp_edge.checking.readings import FIRST_US, constants_of, devices_of, values_of
from lasp_edge.checking.texts import node_of
from lasp_edge.event import Event
from lasp_edge.folds.numbers import LIMIT
from lasp_edge.language.arguments import takes_parameters
from lasp_edge.language.declarations import EventType
from lasp_edge.language.plan import Plan
from lasp_edge.reasons import shown_place

_EQUAL: Final = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)
_AMONG: Final = (ast.In, ast.NotIn)
_ORDERED: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_DRAWN: Final = 100
"""Readings that are drawn, for a condition that may hold for all."""


def compared(plan: Plan) -> list[str]:
    """Return a line for each comparison that is the same for all readings, or not as it seems."""
    found = {
        f"{what} ({shown_place(function.__code__.co_filename, each.lineno)}) has "
        f"{ast.unparse(each)}: {why}": None
        for what, given, sources in of_sources(plan)
        for function, node, name in _read(given)
        for each in ast.walk(node)
        if isinstance(each, ast.expr)
        for why in _why(plan, each, name, sources)
    }
    return list(found)


def always_true(plan: Plan) -> list[str]:
    """Return a line for each `where=` and filter that every reading passes, whatever its value.

    One that says what `least=` and `most=` of the event say is a guard, and right: of an event with
    most=60 that is `event.value <= 60`, and `event.value < 61` is not.
    """
    found = []
    for what, given, sources in of_sources(plan):
        event = plan.events.get(sources[0]) if len(sources) == 1 else None
        if event is None or event.text or not what.startswith(("where ", "filter ")):
            continue
        for function, node, name in _read(given):
            if _asks_for_value_alone(node, name) and _holds(plan, event, function):
                scale = f" ({event.name} is {event.plausible.span})" if event.plausible else ""
                found.append(
                    f"{what} holds for every reading that there can be{scale}; write another "
                    "level, or leave it out"
                )
    return found


def _read(given: Any) -> Iterator[tuple[FunctionType, ast.AST, str]]:
    """Yield a function, its text, and what it calls its event."""
    function = inspect.unwrap(given) if callable(given) else None
    if isinstance(function, FunctionType) and function.__code__.co_argcount:
        node = node_of(function)
        if node is not None:
            yield function, node, function.__code__.co_varnames[0]


def _why(plan: Plan, node: ast.AST, name: str, sources: tuple[str, ...]) -> Iterator[str]:
    """Yield what is wrong with a comparison."""
    events = [plan.events[each] for each in sources if each in plan.events]
    if isinstance(node, ast.Call) and _is_number_of_texts(node):
        yield "of texts '9' is more than '10'; make numbers of them first, as in map(int, ..)"
    if not isinstance(node, ast.Compare) or len(node.ops) > 1:
        return
    left, op, right = node.left, node.ops[0], node.comparators[0]
    if isinstance(op, _ORDERED):
        if any(_is_tag(each, name) for each in (left, right)) and any(
            _is_text(each) and str(each.value).isdecimal()  # type: ignore[attr-defined]
            for each in (left, right)
        ):
            yield "a tag is a text, and '10' < '3'; make a number of it, by int(..)"
    elif events and len(events) == len(sources) and not any(each.text for each in events):
        yield from _of_number(events[0], left, op, right, name)


def _of_number(
    event: EventType, left: ast.expr, op: ast.cmpop, right: ast.expr, name: str
) -> Iterator[str]:
    """Yield what is wrong where a reading is compared, which is a number."""
    step = event.resolution
    for one, other in ((left, right), (right, left)):
        if _is_value(one, name) and _is_text(other, several=isinstance(op, _AMONG)):
            yield (
                f"readings of {event.name} are numbers and never equal a text; of a switch, on is "
                "1 and off is 0"
            )
        is_fraction = isinstance(other, ast.Constant) and isinstance(other.value, float)
        is_computed = isinstance(one, ast.BinOp) and any(
            _is_value(each, name) for each in ast.walk(one)
        )
        if is_fraction and is_computed and isinstance(op, _EQUAL) and not _is_binary(other):
            yield (
                f"a double that was computed is seldom {ast.unparse(other)}: 1.3 % 1 is "
                f"{1.3 % 1!r}; count whole steps, round({name}.value / {step.text}), and compare "
                "these"
            )
    is_range = isinstance(right, ast.Call) and ast.unparse(right.func) == "range"
    if is_range and isinstance(op, _AMONG) and step.exact % 1 and _is_value(left, name):
        yield (
            f"only whole numbers are in a range, and readings of {event.name} have steps of "
            f"{step.text}; compare both ends, as in 18 <= {name}.value < 27"
        )


def _is_binary(node: ast.expr) -> bool:
    """Return whether a number is a double to the last digit, such as 0.5."""
    value = getattr(node, "value", 0.1)
    return float(value).as_integer_ratio()[1] <= 2**16


def _is_value(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.expr) and ast.unparse(node) == f"{name}.value"


def _is_tag(node: ast.expr, name: str) -> bool:
    is_one = isinstance(node, ast.Subscript | ast.Call)
    return is_one and ast.unparse(node).startswith((f"{name}.tags[", f"{name}.tags.get("))


def _is_text(node: ast.expr, *, several: bool = False) -> bool:
    if several and isinstance(node, ast.Tuple | ast.List | ast.Set):
        return bool(node.elts) and all(map(_is_text, node.elts))
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_number_of_texts(node: ast.Call) -> bool:
    """Return whether a number is made of the greatest of some texts: `int(max(x.split()))`."""
    inner = node.args[0] if len(node.args) == 1 else None
    if not isinstance(inner, ast.Call) or ast.unparse(node.func) not in {"int", "float"}:
        return False
    is_end = ast.unparse(inner.func) in {"max", "min"} and not inner.keywords
    one = inner.args[0] if is_end and len(inner.args) == 1 else None
    return isinstance(one, ast.Call) and ast.unparse(one.func).endswith(".split")


def _asks_for_value_alone(node: ast.AST, name: str) -> bool:
    """Return whether a function asks its event for the value, and for nothing else."""
    asked = [each for each in ast.walk(node) if _is_value(each, name)]
    named = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name]
    return bool(asked) and len(asked) == len(named)


def _holds(plan: Plan, event: EventType, function: FunctionType) -> bool:
    """Return whether a condition holds for all values that are tried, and is no guard."""
    numbers = {each for each in constants_of(function) if type(each) in {int, float}}
    known = event.plausible
    low, high = (end if known is None else known.nearest(end) for end in (1 - LIMIT, LIMIT - 1))
    ends = {event.resolution.real(low), event.resolution.real(high)}
    if not numbers - ends or takes_parameters(function):
        return False
    random, device = Random(0), devices_of(plan)[0]
    values = values_of(event, (), tuple(sorted(numbers))) + sorted(ends)
    values += [event.resolution.real(random.randint(low, high)) for _ in range(_DRAWN)]
    with suppress(Exception):  # what it raises is found where it is tried
        return all(function(Event(event.name, each, FIRST_US, device, {})) for each in values)
    return False
