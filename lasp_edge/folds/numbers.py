"""Exact numbers: a reading is quantised once, where it enters, and is an integer from then on.

A reading of 21.57 °C at a resolution of 0.01 is the integer 2157. Sums of integers do not depend
on their order, so devices, simulator and Spark agree to the last bit.

    >>> hundredths = Resolution("0.01")
    >>> hundredths.quantise(21.57), hundredths.real(2157)
    (2157, 21.57)
    >>> hundredths.quantise(0.125), hundredths.quantise(0.135)  # half to even, of the exact double
    (12, 14)
"""

from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, log10
from operator import sub
from typing import Any

LIMIT = 2**31
"""A quantised reading lies strictly between -LIMIT and LIMIT."""

# A product of two doubles below 2**31 is off by less than 2**-21, so a remainder that is further
# than this from one half was rounded to the same side as the exact quotient.
_CERTAIN = 0.4999
_INSIDE = LIMIT - 1
_PLAIN = frozenset((float, int))
KEPT_VALUES = 2_000
"""Values of which the steps are remembered, at most: most sensors give the same ones again and
again, and of one that gives more nothing is remembered. Some 0.3 MB."""
LARGEST = 10**30
"""Resolutions lie between 1/LARGEST and LARGEST."""
_DIGITS, _MOST_DIGITS = 80, 400


class Refused(ValueError):  # noqa: N818 - the field's word for a reading that is not accepted
    """A reading cannot be accepted; the text is the reason it is counted under."""


class Resolution:
    """The step of an event's values, a positive decimal.

    >>> hundredths = Resolution("0.01")
    >>> hundredths.quantise(21.57), hundredths.real(2157)
    (2157, 21.57)
    >>> hundredths.rounded(21.5749)
    21.57

    Args:
        text: the step as decimal text, such as "0.01", "5" or "1e-3". Not a float: 0.1 is not
            one tenth.

    Raises:
        ValueError: the text is not a positive decimal number.
    """

    __slots__ = ("_known", "_scale", "denominator", "exact", "numerator", "text")

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ValueError(f'resolution: decimal text such as "0.01" is needed, not {text!r}')
        try:
            step = Decimal(text.strip())
            fits = Decimal(1) / LARGEST <= step <= LARGEST  # first: 1e-9999999 is a long fraction
        except (ArithmeticError, ValueError):
            raise ValueError(
                f'resolution: decimal text such as "0.01" is needed, not {text!r}'
            ) from None
        if not fits:
            raise ValueError(f"resolution: a step from 1e-30 to 1e30 is needed, not {text!r}")
        exact = Fraction(step)
        self.text = text.strip()
        self.exact = exact
        self.numerator, self.denominator = exact.numerator, exact.denominator
        self._scale = exact.denominator / exact.numerator
        self._known: dict[float, int] | None = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resolution) and self.exact == other.exact

    def __hash__(self) -> int:
        return hash(self.exact)

    def __repr__(self) -> str:
        return f'Resolution("{self.text}")'

    @property
    def canonical(self) -> str:
        """The step as `numerator/denominator`: equal steps, equal text."""
        return f"{self.numerator}/{self.denominator}"

    def real(self, quantised: int) -> float:
        """Return the double nearest to `quantised` steps."""
        return quantised * self.numerator / self.denominator

    def nearest(self, value: Any) -> float:
        """Return a value, rounded once to a multiple of the step, as the nearest double.

        >>> Resolution("0.1").nearest(20.04), Resolution("5").nearest(7)
        (20.0, 5.0)

        Raises:
            Refused: as for `quantise`.
        """
        return self.real(self.quantise(value))

    def rounded(self, value: Any) -> float:
        """Return the same of a value of any size, which is shown, and is no reading.

        >>> Resolution("0.001").rounded(5_000_000.12345)
        5000000.123

        Raises:
            Refused: not a number, or not finite.
        """
        if isinstance(value, Decimal) and value.is_finite() and value.adjusted() > _MOST_DIGITS:
            raise Refused("not finite")  # as a double, and a long fraction
        try:
            return self.real(round(self._quotient(value)))
        except OverflowError:
            raise Refused("not finite") from None

    def quantise(self, value: Any) -> int:
        """Return how many steps `value` is: round-half-even of the exact quotient.

        >>> [Resolution("0.01").quantise(value) for value in (21.125, 21.375, 21.115)]
        [2112, 2138, 2111]

        Raises:
            Refused: not a number, not finite, or 2**31 steps and more.
        """
        if type(value) is float or (type(value) is int and -LARGEST < value < LARGEST):
            product = value * self._scale
            if -_INSIDE < product < _INSIDE:
                quantised = round(product)
                if -_CERTAIN < product - quantised < _CERTAIN:
                    return quantised
        return self.quantise_exactly(value)

    def quantise_exactly(self, value: Any) -> int:
        """Return the same as `quantise`, by its definition over fractions."""
        if isinstance(value, Decimal) and value.is_finite() and value.adjusted() > _DIGITS:
            value = LARGEST**3  # is out of range alike, and no huge fraction
        quantised = round(self._quotient(value))
        if not -LIMIT < quantised < LIMIT:
            raise Refused("out of range: choose a coarser resolution")
        return quantised

    def _quotient(self, value: Any) -> Fraction:
        """Return how many steps a value is, exactly."""
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
            raise Refused("missing value" if value is None else "not a number")
        if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < -_DIGITS:
            value = 0  # rounds alike, and is no huge fraction
        try:
            return Fraction(value) / self.exact
        except (ValueError, OverflowError):
            raise Refused("not finite") from None

    def quantise_column(self, values: Sequence[Any]) -> Sequence[int | Refused]:
        """Return each value's steps, or the refusal in its place."""
        certain = self.quantise_certain(values)
        if certain is not None:
            return certain
        column: list[int | Refused] = []
        scale, append = self._scale, column.append
        for value in values:
            if type(value) is float:
                product = value * scale
                if -_INSIDE < product < _INSIDE:
                    quantised = round(product)
                    if -_CERTAIN < product - quantised < _CERTAIN:
                        append(quantised)
                        continue
            try:
                append(self.quantise(value))
            except Refused as refused:
                append(refused)
        return column

    def quantise_certain(self, values: Sequence[Any]) -> list[int] | None:
        """Return each value's steps if a product of floats is exact enough for all, else None.

        None means only that some value needs `quantise_exactly`.
        """
        if not values:
            return []
        if not _PLAIN.issuperset(map(type, values)):
            return None
        known = self._known
        return self._computed(values) if known is None else self._recalled(values, known)

    def _recalled(self, values: Sequence[Any], known: dict[float, int]) -> list[int] | None:
        """Return the same; each value is computed once."""
        with suppress(KeyError):  # most often every value has come before
            return list(map(known.__getitem__, values))
        new = list(set(values).difference(known))
        if len(known) + len(new) > KEPT_VALUES:
            self._known = None
            return self._computed(values)
        steps = self._computed(new)
        if steps is None:
            return None
        known.update(zip(new, steps, strict=True))
        return list(map(known.__getitem__, values))

    def _computed(self, values: Sequence[Any]) -> list[int] | None:
        """Return the same by whole columns."""
        scale = self._scale
        try:
            products = [value * scale for value in values]
            column = list(map(round, products))
        except (ValueError, OverflowError):  # not finite, or an int that no float holds
            return None
        if max(column) >= _INSIDE or min(column) <= -_INSIDE:
            return None
        off = list(map(sub, products, column))
        return column if max(off) < _CERTAIN and min(off) > -_CERTAIN else None


class PlausibleRange(Resolution):
    """A step, and the least and the greatest plausible value: a reading outside is refused.

    Args:
        step: of the values.
        least, most: a number, or decimal text; None where that side is open.

    Raises:
        ValueError: one is no number, or nothing lies between them.

    >>> sensor = PlausibleRange(Resolution("0.1"), -40, most=60)
    >>> sensor.quantise(60.04), sensor.quantise_column([85.0, 21.57])
    (600, [Refused('outside of -40 to 60'), 216])
    """

    __slots__ = ("_beyond", "_least", "_most", "is_closed", "span")

    def __init__(self, step: Resolution, least: Any = None, most: Any = None) -> None:
        super().__init__(step.text)
        low, high = _number_or_none("least", least), _number_or_none("most", most)
        for name, bound, given in (("least", low, least), ("most", high, most)):
            if bound is not None and not -LIMIT < bound / self.exact < LIMIT:
                raise ValueError(
                    f"{name}={given}: a reading has fewer than 2**31 steps, and this has more of "
                    f"{self.text}: choose a resolution of {finest_step(abs(bound))} or coarser"
                )
        self._least = -LIMIT if low is None else ceil(low / self.exact)
        self._most = LIMIT if high is None else floor(high / self.exact)
        if self._least > self._most:
            raise ValueError(f"least={least} and most={most}: no value lies between them")
        self.is_closed = low is not None and high is not None
        self.span = f"{least} to {most}"
        self._beyond = f"outside of {self.span}"
        if least is None or most is None:
            self.span = f"{least} and more" if most is None else f"{most} and less"
            self._beyond = f"below {least}" if most is None else f"above {most}"

    def has(self, steps: int) -> bool:
        """Return whether a number of steps is plausible."""
        return self._least <= steps <= self._most

    def nearest(self, steps: int) -> int:
        """Return the plausible number of steps that is nearest to one."""
        return min(max(steps, self._least), self._most)

    def quantise(self, value: Any) -> int:
        steps = super().quantise(value)
        if not self.has(steps):
            raise self._outside()
        return steps

    def quantise_certain(self, values: Sequence[Any]) -> list[int] | None:
        column = super().quantise_certain(values)
        inside = not column or (self.has(min(column)) and self.has(max(column)))
        return column if inside else None

    def quantise_column(self, values: Sequence[Any]) -> Sequence[int | Refused]:
        return [
            steps if isinstance(steps, Refused) or self.has(steps) else self._outside()
            for steps in super().quantise_column(values)
        ]

    def _outside(self) -> Refused:
        return Refused(self._beyond)


def finest_step(most: Fraction) -> str:
    """Return the finest power of ten of which a number has fewer than `LIMIT` steps."""
    exponent = ceil(log10(most / LIMIT))
    exponent += most >= LIMIT * Fraction(10) ** exponent
    return f"{Decimal(1).scaleb(exponent):f}"


def plausible_range(
    what: str, step: Resolution | None, least: Any, most: Any
) -> PlausibleRange | None:
    """Return the range of what has this step; None where neither bound is given.

    Raises:
        ValueError: it has texts in place of numbers, or see `PlausibleRange`.
    """
    if least is None and most is None:
        return None
    if step is None:
        raise ValueError(f"{what}: texts have no least and most")
    return PlausibleRange(step, least, most)


def _number_or_none(name: str, value: Any) -> Fraction | None:
    """Return a bound as an exact number: of a float what it is printed as."""
    if value is None:
        return None
    try:
        found = Decimal(str(value))
        if not isinstance(value, bool) and abs(found) <= LARGEST:
            return Fraction(found)
    except ArithmeticError:
        pass
    raise ValueError(f"{name}: a number such as -40 is needed, not {value!r}")


def decimals(resolution: Resolution) -> int:
    """Return how many decimals show a step.

    >>> decimals(Resolution("0.01")), decimals(Resolution("0.5")), decimals(Resolution("10"))
    (2, 1, 0)
    """
    return max(0, ceil(-log10(resolution.exact)))
