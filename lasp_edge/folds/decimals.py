"""Parameters of folds as exact numbers."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

_DIGITS = 30


def exact(value: Any, what: str) -> Fraction:
    """Return a number, or the text of one, as a fraction. A float means the decimal it prints as.

    >>> exact("0.1", "edge") == exact(0.1, "edge") == exact("1/10", "edge") == Fraction(1, 10)
    True

    Raises:
        ValueError: it is neither, or not of a size that readings have; `what` says what it is.
    """
    if isinstance(value, int | float | str | Decimal | Fraction) and not isinstance(value, bool):
        try:
            if isinstance(value, Fraction) or "/" in str(value):
                return Fraction(value)
            decimal = Decimal(repr(value) if isinstance(value, float) else value)
            if decimal.is_finite() and abs(decimal.adjusted()) <= _DIGITS:
                return Fraction(decimal)
        except (ArithmeticError, ValueError):
            pass
    such = 'a number or decimal text such as "0.5" or "5/9"'
    raise ValueError(f"{what}: {such} is needed, not {value!r}")
