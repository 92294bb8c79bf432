"""Parameters: values that operators change while a program runs, and that functions see.

A value is a text wherever it travels or is kept. Here it is read: a number in steps of the
parameter's resolution, or one of its choices.

    >>> from lasp_edge.folds.numbers import Resolution
    >>> above = Parameter("above", "28", Resolution("0.1"), "°C")
    >>> (plain(above, "28.50"), canonical(above, "28.50"), shown(above, "28.50"))
    (28.5, '57/2', '28.5 °C')
    >>> is_value(above, "28.55"), is_value(above, "warm")
    (False, False)
    >>> mode = Parameter("mode", "day", None, choices=("day", "night"))
    >>> plain(mode, "night"), is_value(mode, "dusk")
    ('night', False)
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar, overload

from crdts.control_log import PARAMETER_BYTES, VALUE_BYTES, ControlLog
from lasp_edge.folds.numbers import LIMIT
from lasp_edge.generics import Value
from lasp_edge.language.declarations import Parameter
from lasp_edge.language.draft import Draft

MOST_CHOICES = 100
"""Texts that a parameter can be, at most."""

Steps = Sequence[tuple[int, str]]
"""(from when on, value), by time; the first one is from before all."""
_Value = TypeVar("_Value")


class ParameterValues:
    """The values of parameters at one time on one device: `at[above]`, or by name `at["above"]`.

    >>> from lasp_edge import Program
    >>> program = Program("press")
    >>> limit = program.parameter("limit", "2.5", resolution="0.1", unit="mm/s")
    >>> at = ParameterValues({"limit": 2.5})  # as a window's where= and value= are given it
    >>> at[limit], at["limit"]
    (2.5, 2.5)

    Args:
        values: name -> value, of the parameters that the window uses.

    Attributes:
        asked: the names of those that were asked for.
    """

    __slots__ = ("_values", "asked")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self.asked: set[str] = set()

    @overload
    def __getitem__(self, parameter: Parameter[Value]) -> Value: ...
    @overload
    def __getitem__(self, parameter: str) -> Any: ...
    def __getitem__(self, parameter: Parameter | str) -> Any:
        name = parameter.name if isinstance(parameter, Parameter) else parameter
        try:
            value = self._values[name]
        except (KeyError, TypeError):
            known = ", ".join(sorted(self._values)) or "no parameter"
            raise ValueError(
                f"at[{name!r}]: the window uses {known}; name it in uses=(...)"
            ) from None
        self.asked.add(name)
        return value

    @property
    def values(self) -> dict[str, Any]:
        """Name -> value, of all of them."""
        return dict(self._values)

    def __repr__(self) -> str:
        return f"ParameterValues({dict(self._values)!r})"


def declare_parameter(draft: Draft, made: Parameter) -> Parameter:
    """Declare a parameter.

    Raises:
        ValueError: the name is taken, or something is not what it has to be.
    """
    name: Any = made.name
    default: Any = made.default
    choices: tuple[Any, ...] = made.choices
    if not isinstance(name, str) or not name.isidentifier() or len(name.encode()) > PARAMETER_BYTES:
        raise ValueError(
            f"parameter: a name as of a variable in Python is needed, not {name!r}: it is typed "
            "as in `lasp-edge set ... name=value`"
        )
    if name in draft.parameters:
        raise ValueError(f"parameter {name!r} is declared twice")
    for choice in choices:
        is_text = isinstance(choice, str) and choice.isprintable() and choice.strip() == choice
        if not is_text or not 0 < len(choice.encode()) <= VALUE_BYTES or choice == DEFAULT:
            raise ValueError(f"parameter {name!r}: a choice is a printable text, not {choice!r}")
    if len(set(choices)) < len(choices) or len(choices) > MOST_CHOICES:
        raise ValueError(f"parameter {name!r}: at most {MOST_CHOICES} different choices are needed")
    if not isinstance(default, str):
        raise ValueError(f'parameter {name!r}: a text such as "28" is needed, not {default!r}')
    need_value(made, default)
    draft.parameters[name] = made
    return made


DEFAULT = "default"
"""What is typed to take a place back, so it is no choice."""


def need_value(parameter: Parameter, text: str) -> str:
    """Return a text that is a value of a parameter.

    Raises:
        ValueError: it is not one; the text says what is needed.
    """
    if not is_value(parameter, text):
        needed = (
            f"one of {', '.join(parameter.choices)}"
            if parameter.resolution is None
            else f"a number in steps of {parameter.resolution.text}"
        )
        if parameter.plausible is not None:
            needed += f", {parameter.plausible.span},"
        raise ValueError(f"parameter {parameter.name!r}: {needed} is needed, not {text!r}")
    return text


def check_used(draft: Draft) -> None:
    """Check that something uses each parameter.

    Raises:
        ValueError: nothing does.
    """
    used = {each.name for window in draft.windows.values() for each in window.controls.parameters}
    used |= {each.name for stream in draft.streams.values() for each in stream.uses}
    used |= {variable.bound for variable in draft.variables.values() if variable.bound}
    levels = [
        each for watched in (*draft.reactions, *draft.alerts.values()) for each in watched.levels
    ]
    used |= {level.name for _, level in levels if isinstance(level, Parameter)}
    for name in draft.parameters:
        if name not in used:
            for (window, kind), function in draft.window_functions.items():
                if _asks_for(function, name):
                    raise ValueError(
                        f"parameter {name!r}: {kind}= of window {window!r} asks for it, and uses= "
                        f"of the window does not name it: write uses=({name},) there"
                    )
            raise ValueError(
                f"parameter {name!r}: nothing uses it; name it in uses=(...) of a window or scan, "
                f"whose functions get its value as at[{name!r}] (lambda event, at: ..), or give it "
                "as a window's size or slide, as the bound of a BoundedLWWSet, or as above= or "
                "below= of an alert"
            )


def _asks_for(function: Callable[..., Any], parameter: str) -> bool:
    """Return whether a function has a parameter's name in its text, as in at["limit"]."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return code is not None and parameter in (*code.co_consts, *code.co_names)


def is_value(parameter: Parameter, text: str) -> bool:
    """Return whether a text is a value of a parameter."""
    if parameter.resolution is None:
        return text in parameter.choices
    number = _number(text)
    if number is None:
        return False
    steps = number / parameter.resolution.exact
    if steps.denominator != 1 or abs(steps) >= LIMIT:
        return False
    return parameter.plausible is None or parameter.plausible.has(int(steps))


def canonical(parameter: Parameter, text: str) -> str:
    """Return a value as canonical text: equal values, equal text, in whatever steps."""
    return text if parameter.resolution is None else str(_number(text))


def plain(parameter: Parameter, text: str) -> Any:
    """Return a value as functions see it: a text, or a number; whole where its step is whole."""
    if parameter.resolution is None:
        return text
    number = _number(text)
    assert number is not None, "a value was checked before it counts"
    whole = parameter.resolution.exact.denominator == 1
    return int(number) if whole else number.numerator / number.denominator


def shown(parameter: Parameter, text: str) -> str:
    """Return a value as people read it, with its unit."""
    if parameter.resolution is None:
        return text
    unit = f" {parameter.unit}" if parameter.unit else ""
    return f"{Decimal(text).normalize():f}{unit}"


def steps_of(log: ControlLog, parameter: Parameter, *scopes: str) -> Steps:
    """Return a parameter's values by time, as texts; see `ControlLog.steps`."""
    steps = log.steps(parameter.name, *scopes, counts=lambda text: is_value(parameter, text))
    return [(step.from_us, step.value or parameter.default) for step in steps]


def value_at(steps: Sequence[tuple[int, _Value]], time_us: int) -> _Value:
    """Return the value of a step function at a time."""
    return steps[bisect_right(steps, time_us, key=lambda step: step[0]) - 1][1]


def _number(text: str) -> Fraction | None:
    """Return the number that a text is; None where it is no number, or too long to be one."""
    try:
        found = Decimal(text)
    except ArithmeticError:
        return None
    if not found.is_finite() or abs(found.adjusted()) > _DIGITS or "_" in text:
        return None
    return Fraction(found)


_DIGITS = 60
