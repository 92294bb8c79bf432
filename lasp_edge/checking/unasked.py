"""Parameters that a window is to use, and none of its functions asks for.

An operator who sets one sees that nothing changes.

    >>> from lasp_edge import Program, folds
    >>> program = Program("press")
    >>> force = program.event("force", resolution="0.1")
    >>> gain = program.parameter("gain", "1", resolution="0.1")
    >>> window = {"source": force, "fold": folds.mean(), "size_s": 60, "uses": (gain,)}
    >>> made = program.window("pressed", **window, value=lambda event, at: event.value)
    >>> unasked(program.plan())
    ['window pressed: no function of it asks for parameter gain: write at[gain], or no uses= of it']
"""

from collections.abc import Iterator
from typing import Any

from lasp_edge.checking.determinism import closed_values, inner_codes
from lasp_edge.language.declarations import Parameter
from lasp_edge.language.plan import Plan

_FUNCTIONS = ("value", "where", "fold")
_ALL = {"values"}
"""Attributes by which a function sees all parameters."""


def unasked(plan: Plan) -> list[str]:
    """Return a line for each parameter in `uses=` that no function of its window asks for."""
    lines = []
    for window in plan.windows.values():
        functions = [plan.functions.windows.get((window.name, at)) for at in _FUNCTIONS]
        asked = {name for each in functions if each is not None for name in _asked(each)}
        lines += [
            f"window {window.name}: no function of it asks for parameter {each.name}: write "
            f"at[{each.name}], or no uses= of it"
            for each in window.controls.uses
            if not asked & {each.name, *_ALL}
        ]
    return lines


def _asked(function: Any) -> Iterator[str]:
    """Yield the names of parameters that a function names, and all other texts and names in it."""
    for each, code in inner_codes(function):
        yield from (text for text in code.co_consts if isinstance(text, str))
        yield from code.co_names
        closed = dict(closed_values(each))
        for name in (*code.co_names, *code.co_freevars):
            value = closed.get(name, each.__globals__.get(name))
            if isinstance(value, Parameter):
                yield value.name
