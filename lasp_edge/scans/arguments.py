"""Arguments of the built-in scans: each function checks one, and its error names the valid ones.

>>> microseconds(0.5, "sessions: gap_s")
500000
>>> whole(0, "last: n")
Traceback (most recent call last):
    ...
ValueError: last: n must be a whole number from 1, not 0
"""

from collections.abc import Callable
from typing import Any

LONGEST_US = 2**53
"""A time is shorter than this, in microseconds: about 285 years."""


def microseconds(seconds: Any, what: str) -> int:
    """Return a time above 0 in microseconds.

    Raises:
        ValueError: it is no such time.
    """
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 < seconds * 1_000_000 < LONGEST_US or not round(seconds * 1_000_000):
        raise ValueError(f"{what} must be seconds above 0, not {seconds!r}")
    span_us: int = round(seconds * 1_000_000)
    return span_us


def whole(number: Any, what: str) -> int:
    """Return a whole number from 1.

    Raises:
        ValueError: it is no such number.
    """
    if type(number) is not int or number < 1:
        raise ValueError(f"{what} must be a whole number from 1, not {number!r}")
    return int(number)


def function(given: Any, what: str) -> Callable[..., Any]:
    """Return a function.

    Raises:
        ValueError: it is no function.
    """
    if not callable(given):
        raise ValueError(f"{what} must be a function, not {given!r}")
    return given  # type: ignore[no-any-return]  # a callable of the user's
