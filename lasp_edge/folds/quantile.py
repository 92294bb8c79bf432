"""A fold that estimates quantiles with a stated relative error. It slides by `retract`.

Samples are counted in buckets whose bounds grow by a constant factor, so that one value stands for
all of a bucket with the same relative error everywhere. The bounds are whole numbers, made by an
exact recurrence and not by a logarithm, which is why every machine puts a sample into the same
bucket. Negative samples have buckets of their own, and so has 0.

    >>> fold = Quantile(0.5, 0.99, relative_error=0.01)
    >>> lowered = fold.lower(fold.lift_column(range(1, 1002), [0] * 1001), Resolution("1"))
    >>> round(lowered["p50"], 2), round(lowered["p99"], 2)
    (500.95, 993.41)

Source: Masson, Rim and Lee, "DDSketch: A Fast and Fully-Mergeable Quantile Sketch with
Relative-Error Guarantees", VLDB 2019.
"""

# ruff: noqa: ARG002 - lift and lower have one signature, whatever a fold needs of it

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from functools import partial as applied
from itertools import accumulate
from math import floor
from typing import Any

from lasp_edge.folds.columns import COUNT_LIMIT, Column, Op, Partial
from lasp_edge.folds.decimals import exact
from lasp_edge.folds.fold import Fold, built_in
from lasp_edge.folds.numbers import LIMIT, Resolution
from lasp_edge.folds.packed import MAX_BINARY_BYTES, counts_of, packed_counts

_MOST_BOUNDS = (MAX_BINARY_BYTES // 8 - 1) // 2


@built_in
class Quantile(Fold):
    """Quantiles of the samples, each within a relative error of the sample of its rank.

    The rank of quantile f of n samples is floor(f * (n - 1)), counted from 0 by ascending value:
    0.5 of (1, 2, 3, 4) is 2. The part is named by the percentage: 0.5 gives `p50`, 0.999 `p99_9`.
    None where there is no sample.

    Its state is 8 bytes for each bucket that holds a sample. At a relative error of 0.01 there are
    1,815 buckets for all samples there can be, and about 115 for each factor of ten of their range.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.quantile(0.5)
    >>> fold.lower(fold.lift_column([1, 2, 3, 4], [0] * 4), Resolution("1"))
    {'p50': 2.0}

    Args:
        *fractions: one or more, from 0 to 1: numbers or decimal text.
        relative_error: how far a part may be off, relative to the sample; to one rounding of a
            double.
    """

    name = "quantile"
    columns = (Column("quantile_counts", Op.COUNTS, COUNT_LIMIT),)

    def __init__(self, *fractions: Any, relative_error: Any = 0.01) -> None:
        self._fractions = [exact(fraction, "quantile") for fraction in fractions]
        if not self._fractions or not all(0 <= fraction <= 1 for fraction in self._fractions):
            raise ValueError(f"quantile: one or more from 0 to 1 are needed, not {fractions!r}")
        self._error = exact(relative_error, "quantile: relative_error")
        self._bounds = _bounds(self._error)
        self._buckets = _buckets(self._error)
        self.parts = tuple(map(_part, self._fractions))
        self.parameters = f"{','.join(map(str, self._fractions))};{self._error}"

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return self.lift_column((value,), (time_us,))

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        places = Counter(map(applied(bisect_right, self._buckets), values))
        first = len(self._bounds) + 1
        return (packed_counts({place - first: count for place, count in places.items()}),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        counts = counts_of(partial[0])
        if not counts:
            return dict.fromkeys(self.parts)
        buckets, until = list(counts), list(accumulate(counts.values()))
        lowered: dict[str, float | int | None] = {}
        for part, fraction in zip(self.parts, self._fractions, strict=True):
            rank = floor(fraction * (until[-1] - 1))
            bucket = buckets[bisect_right(until, rank)]
            lowered[part] = float(self._middle(bucket) * resolution.exact)
        return lowered

    def description(self) -> dict[str, Any]:
        fractions = list(map(str, self._fractions))
        arguments = {"fractions": fractions, "relative_error": str(self._error)}
        return super().description() | {"arguments": arguments}

    @classmethod
    def described(cls, description: Mapping[str, Any]) -> Fold:
        arguments = description["arguments"]
        return cls(*arguments["fractions"], relative_error=arguments["relative_error"])

    def _middle(self, bucket: int) -> Fraction:
        """Return what is as far, relative to each, from the least and the greatest of a bucket."""
        if not bucket:
            return Fraction(0)
        index = abs(bucket)
        low = self._bounds[index - 1]
        high = self._bounds[index] - 1 if index < len(self._bounds) else LIMIT - 1
        middle = Fraction(2 * low * high, low + high)
        return middle if bucket > 0 else -middle


def _part(fraction: Fraction) -> str:
    """Return the name of a quantile's part."""
    percentage = fraction * 100
    text = format(Decimal(percentage.numerator) / Decimal(percentage.denominator), "f")
    return "p" + text.replace(".", "_")


def _growing(error: Fraction) -> Iterator[int]:
    """Yield the least value of each bucket above 0.

    The greatest that one value can stand for together with `low`, both off by `error` at most, is
    low * (1 + error) / (1 - error).
    """
    up, down = error.denominator + error.numerator, error.denominator - error.numerator
    low = 1
    while low < LIMIT:
        yield low
        low = low * up // down + 1


@lru_cache(maxsize=16)
def _bounds(error: Fraction) -> list[int]:
    """Return the least value of each bucket above 0.

    Raises:
        ValueError: the error is out of range, or so small that the buckets do not fit a partial.
    """
    bounds: list[int] = []
    if 0 < error < 1:
        for low in _growing(error):
            bounds.append(low)
            if len(bounds) > _MOST_BOUNDS:
                break
    if not 0 < len(bounds) <= _MOST_BOUNDS:
        raise ValueError(
            f"quantile: a relative_error from 0.0072 to below 1 is needed, not {float(error)}"
        )
    return bounds


@lru_cache(maxsize=16)
def _buckets(error: Fraction) -> list[int]:
    """Return the least value of each bucket, negative ones too, ascending."""
    bounds = _bounds(error)
    greatest_first = [-(bound - 1) for bound in reversed([*bounds[1:], LIMIT])]
    return [*greatest_first, 0, *bounds]
