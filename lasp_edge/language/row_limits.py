"""Values in rows of results: what fits, and the multiples of their steps, by a short look."""

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.declarations import TEXT, StreamResult

TEXT_BYTES = 1_024
"""Bytes of a text in a row of results, at most: as of a reading that is a text."""
PART_LIMIT = 2**63
"""Steps of a number in a row of results are less than these: a BIGINT."""


def surely_fits(result: StreamResult, value: Any) -> bool:
    """Return whether a value has the parts of a result, by a short look; False: `parts_of` tells.

    >>> result = StreamResult("counts", (("word", "text"), ("share", "0.01")), 0)
    >>> surely_fits(result, ("dog", 0.125)), surely_fits(result, ("dog", 1e300))
    (True, False)
    """
    values, most = value if type(value) is tuple else (value,), _most(result.parts)
    if len(values) != len(most):
        return False
    for part, limit in zip(values, most, strict=True):
        kind = type(part)
        if kind is str:
            if limit or len(part) > TEXT_BYTES // 4:
                return False
        elif (kind is not float and kind is not int) or not -limit < part < limit:
            return False
    return True


@lru_cache(maxsize=256)
def _most(parts: tuple[tuple[str, str], ...]) -> tuple[float, ...]:
    """Return below what a number surely fits, of each part; 0 of a text."""
    return tuple(0.0 if step == TEXT else float(step) * PART_LIMIT / 2 for _, step in parts)


def quick_rounding(result: StreamResult) -> Callable[[Any], Any]:
    """Return what gives values as rows show them, by a short look: nearly all need no other one.

    >>> quick_rounding(StreamResult("counts", (("share", "0.01"),), 0))(0.126)
    0.13

    The function raises a TypeError or ValueError where a value has to be looked at closely.
    """
    steps = tuple(step for _, step in result.parts)
    return partial(_shown, steps[0]) if len(steps) == 1 else partial(_shown_parts, steps)


def _shown_parts(steps: tuple[str, ...], values: Any) -> tuple[Any, ...]:
    """Return several parts as a row shows them; raises what `_shown` raises."""
    if type(values) is not tuple or len(values) != len(steps):
        raise ValueError
    are_whole = steps.count("1") == len(steps) and {int}.issuperset(map(type, values))
    if are_whole and min(values) > -PART_LIMIT and max(values) < PART_LIMIT:
        return values
    return tuple([_shown(step, part) for step, part in zip(steps, values, strict=True)])


def _shown(step: str, part: Any) -> Any:
    """Return a part as a row shows it, by a short look.

    Raises:
        TypeError, ValueError: it has to be looked at closely.
    """
    if type(part) is int and step == "1" and -PART_LIMIT < part < PART_LIMIT:
        return part
    if step == TEXT:
        if type(part) is str and len(part) <= TEXT_BYTES // 4:
            return part
        raise ValueError
    return _nearest_step(step, part)


@lru_cache(maxsize=4_096, typed=True)
def _nearest_step(step: str, part: float) -> int | float:
    """Return the multiple of a step that is nearest to a number: most come again and again.

    Raises:
        ValueError: it has no such multiple that a row can hold.
    """
    if type(part) is not float and type(part) is not int:
        raise ValueError
    above, below = part.as_integer_ratio()
    numerator, denominator = exact_step(step)
    steps = nearest_whole(above * denominator, below * numerator)
    if not -PART_LIMIT < steps < PART_LIMIT:
        raise ValueError
    return in_unit(step, steps)


@lru_cache(maxsize=256)
def exact_step(step: str) -> tuple[int, int]:
    """Return a step as an exact quotient; a program has few.

    >>> exact_step("0.25")
    (1, 4)
    """
    return Decimal(step).as_integer_ratio()


def nearest_whole(above: int, below: int) -> int:
    """Return the whole number nearest to `above / below`, the even one of two; `below` > 0.

    It is `round(Fraction(above, below))`, without the greatest common divisor.

    >>> [nearest_whole(above, 2) for above in (1, 2, 3, 4, 5, -1, -3)]
    [0, 1, 2, 2, 2, 0, -2]
    """
    whole, rest = divmod(above, below)
    return whole + (2 * rest > below or (2 * rest == below and whole % 2 == 1))


def in_unit(step: str, steps: int) -> int | float:
    """Return a number of steps in its unit; a whole one where the step is whole.

    >>> in_unit("0.01", 150), in_unit("5", 3)
    (1.5, 15)
    """
    resolution = _resolution(step)
    if resolution.denominator == 1:
        return steps * resolution.numerator
    return resolution.real(steps)


_resolution = lru_cache(maxsize=256)(Resolution)
