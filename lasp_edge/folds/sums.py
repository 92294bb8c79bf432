"""Folds of sums: count, sum, mean, variance and stddev. All of them slide by `retract`.

The moments are whole numbers until they are read, so nothing is lost however samples are grouped:
a variance is one exact fraction of integers, turned into a double once.

    >>> fold = Variance()
    >>> partial = fold.lift_column([2150, 2250, 2200], [0, 0, 0])
    >>> partial, fold.lower(partial, Resolution("0.01"))
    ((3, 6600, 14525000), {'variance': 0.25})
"""

# ruff: noqa: ARG002 - lift and lower have one signature, whatever a fold needs of it

from collections.abc import Sequence
from math import isqrt
from operator import mul
from typing import Any

from lasp_edge.folds.columns import COUNT_LIMIT, SQUARES_LIMIT, Column, Op, Partial
from lasp_edge.folds.fold import Fold, built_in
from lasp_edge.folds.numbers import Resolution


@built_in
class Count(Fold):
    """How many samples.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.count()
    >>> fold.lower(fold.lift_column([210, 215, 235], [0] * 3), Resolution("0.1"))
    {'count': 3}
    """

    name = "count"
    reads_value = False
    columns = (Column("count", Op.SUM, COUNT_LIMIT),)
    parts = ("count",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (1,)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (len(values),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"count": partial[0]}


@built_in
class Sum(Fold):
    """Total of the samples; 0 where there is no sample.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.sum()
    >>> fold.lower(fold.lift_column([210, 215, 235], [0] * 3), Resolution("0.1"))
    {'sum': 66.0}
    """

    name = "sum"
    columns = (Column("total_q", Op.SUM),)
    parts = ("sum",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (value,)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (sum(values),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"sum": resolution.real(partial[0])}


@built_in
class Mean(Fold):
    """Arithmetic mean of the samples, the double nearest to its exact value; None without samples.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.mean()
    >>> fold.lower(fold.lift_column([210, 215, 235], [0] * 3), Resolution("0.1"))
    {'mean': 22.0}
    """

    name = "mean"
    columns = (Column("count", Op.SUM, COUNT_LIMIT), Column("total_q", Op.SUM))
    parts = ("mean",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (1, value)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (len(values), sum(values))

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        count, total = partial
        if not count:
            return {"mean": None}
        return {"mean": total * resolution.numerator / (count * resolution.denominator)}


@built_in
class Variance(Fold):
    """Variance of the samples, the double nearest to its exact value.

    That value is (count * squares - total**2) * resolution**2 / (count * (count - 1)), or
    / count**2 for a population. None where there are too few samples: below 2, or below 1.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.variance()
    >>> fold.lower(fold.lift_column([210, 215, 235], [0] * 3), Resolution("0.1"))
    {'variance': 1.75}

    Args:
        population: whether the samples are all there is, and not drawn from more.
    """

    name = "variance"
    columns = (
        Column("count", Op.SUM, COUNT_LIMIT),
        Column("total_q", Op.SUM),
        Column("squares_q", Op.SUM, SQUARES_LIMIT),
    )
    parts: tuple[str, ...] = ("variance",)

    def __init__(self, *, population: bool = False) -> None:
        if type(population) is not bool:
            raise ValueError(f"{self.name}: population must be True or False, not {population!r}")
        self._population = population
        self.parameters = "population" if population else "sample"

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (1, value, value * value)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (len(values), sum(values), sum(map(mul, values, values)))

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        ratio = self._ratio(partial, resolution)
        return {"variance": None if ratio is None else ratio[0] / ratio[1]}

    def description(self) -> dict[str, Any]:
        return super().description() | {"arguments": {"population": self._population}}

    def _ratio(self, partial: Partial, resolution: Resolution) -> tuple[int, int] | None:
        """Return the exact variance as numerator and denominator."""
        count, total, squares = partial
        pairs = count * (count if self._population else count - 1)
        if not pairs:
            return None
        spread = count * squares - total * total
        return spread * resolution.numerator**2, pairs * resolution.denominator**2


@built_in
class Stddev(Variance):
    """Square root of the variance, the double nearest to its exact value.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.stddev(population=True)
    >>> fold.lower(fold.lift_column([210, 215, 235], [0] * 3), Resolution("0.1"))
    {'stddev': 1.0801234497346435}

    Args:
        population: as for a variance.
    """

    name = "stddev"
    parts = ("stddev",)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        ratio = self._ratio(partial, resolution)
        return {"stddev": None if ratio is None else root(*ratio)}


def root(numerator: int, denominator: int) -> float:
    """Return the double nearest to the square root of a fraction.

    The root is taken in whole numbers with two bits more than a double holds, its last bit set
    where it is not exact; so the division, which rounds correctly, rounds as for the exact root.
    """
    missing = 110 - (numerator.bit_length() - denominator.bit_length())
    shift = max(0, (missing + 1) // 2)
    scaled = numerator << 2 * shift
    root = isqrt(scaled // denominator)
    if root * root * denominator != scaled:
        root |= 1
    return root / (1 << shift)
