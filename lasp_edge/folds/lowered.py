"""The parts that a fold reads off a partial, for people and programs, as far as JSON has them.

A fold of the user's own may give anything. One value that no JSON has would take all that is shown
together with it along, so it is refused by itself.

    >>> from lasp_edge.folds.sums import Mean
    >>> lowered(Mean(), (2, 5), Resolution("0.1"))
    {'mean': 0.25}
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution

Lowered = dict[str, float | int | None]

_SHOWN = 60
"""Characters of what is no value that are shown."""


def lowered(fold: Fold, partial: Partial, resolution: Resolution) -> Lowered:
    """Return the readable values of a partial by part.

    Raises:
        ValueError: JSON has no such values. What a fold of the user's raises is passed on.
    """
    parts: Any = fold.lower(partial, resolution)
    if not isinstance(parts, Mapping):
        raise ValueError(f"lower gives {_short(parts)}, and not numbers by name")
    for name, part in parts.items():
        if type(name) is not str or not _is_readable(part):
            raise ValueError(f"lower gives {_short(part)} as {_short(name)}, and not a number")
    return dict(parts)


def _is_readable(part: Any) -> bool:
    if part is None or type(part) in {str, bool}:
        return True
    try:
        return type(part) in {int, float} and isfinite(part)
    except OverflowError:
        return False


def _short(value: Any) -> str:
    """Return what is no value, shortly: an integer may have more digits than can be printed."""
    if type(value) is int and value.bit_length() > _SHOWN:
        return f"an integer of {value.bit_length():,} bits"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 2]}.."
