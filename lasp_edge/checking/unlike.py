"""What is compared, or stored, though it can never be alike: a tag and a number, None and a part.

A tag is a text, and `event.tags["floor"] == 3` never holds. A parameter with choices is one of
them. A pair of `as_of` whose second value is None is no row.
"""

import ast
from collections.abc import Iterator
from itertools import pairwise
from types import FunctionType
from typing import Any

from lasp_edge.checking.determinism import functions_of, inner_functions
from lasp_edge.checking.texts import node_of
from lasp_edge.language.plan import Plan
from lasp_edge.scans.as_of import AsOfJoin


def unlike_texts(plan: Plan) -> list[str]:
    """Return a line for each comparison of a tag with a number, or with what is no choice.

    >>> from lasp_edge.examples.greenhouse import program
    >>> unlike_texts(program.plan())
    []
    """
    found = {
        f"{what} asks for {line}": None
        for what, function in functions_of(plan)
        for each in inner_functions(function)
        for line in _compared(plan, each)
    }
    return list(found)


def half_pairs(plan: Plan) -> list[str]:
    """Return a line for each result of pairs whose second value may be None."""
    return [
        f"result {name}: as_of gives None for {result.parts[1][0]} where no other event came "
        "before (missing=None), and such a row is left out; leave out missing=, write a number, "
        "or map the stream"
        for name, result in plan.stream_results.items()
        for made in [plan.functions.streams.get(name)]
        if isinstance(made, AsOfJoin) and made.missing is None and len(result.parts) > 1
    ]


def _compared(plan: Plan, function: FunctionType) -> Iterator[str]:
    node = node_of(function)
    for each in ast.walk(node) if node is not None else ():
        if isinstance(each, ast.Compare):
            sides = [each.left, *each.comparators]
            constants = [value for side in sides for value in _constants(side)]
            for side in sides:
                yield from _never(plan, side, constants, ast.unparse(each))
            yield from _substring(each)


def _substring(node: ast.Compare) -> Iterator[str]:
    """Yield why a tag, or a device, is looked for in the letters of a text."""
    sides = pairwise([node.left, *node.comparators])
    for op, (what, where) in zip(node.ops, sides, strict=True):
        is_text = isinstance(where, ast.Constant) and isinstance(where.value, str)
        is_name = _subscript(what)[0].endswith("tags") or (
            isinstance(what, ast.Attribute) and what.attr in {"device", "name"}
        )
        if isinstance(op, ast.In | ast.NotIn) and is_text and is_name:
            text = ast.unparse(where)
            yield f"{ast.unparse(node)}, which looks for a part of that text: write ({text},)"


def _never(plan: Plan, side: ast.expr, constants: list[Any], text: str) -> Iterator[str]:
    """Yield why one side of a comparison is never like a constant on another."""
    of, name = _subscript(side)
    numbers = [each for each in constants if type(each) in {int, float}]
    if of.endswith("tags") and numbers:
        yield f"{text}, and a tag is a text: write {str(numbers[0])!r}, or int(..) of the tag"
    parameter = plan.parameters.get(name) if of == "at" else None
    choices = parameter.choices if parameter is not None else ()
    for each in constants:
        if choices and isinstance(each, str) and each not in (*choices, name):
            yield f"{text}, and {name} is one of {', '.join(choices)}"


def _subscript(node: ast.expr) -> tuple[str, str]:
    """Return of what something is taken, and by which name: `event.tags` and "room"."""
    if not isinstance(node, ast.Subscript):
        return "", ""
    name = node.slice.value if isinstance(node.slice, ast.Constant) else ast.unparse(node.slice)
    return ast.unparse(node.value), str(name)


def _constants(node: ast.expr) -> Iterator[Any]:
    """Yield a constant, or those of a tuple, list or set."""
    for each in [node, *getattr(node, "elts", ())]:
        if isinstance(each, ast.Constant):
            yield each.value
