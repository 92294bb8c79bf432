"""A fold that estimates how many different values there are, by a HyperLogLog sketch.

>>> fold = Distinct()
>>> partial = fold.combine(fold.lift_column([7, 7, 9], [0] * 3), fold.lift_column([9], [0]))
>>> fold.lower(partial, Resolution("1"))
{'distinct': 2}
"""

# ruff: noqa: ARG002 - lift and lower have one signature, whatever a fold needs of it

from collections.abc import Sequence
from typing import Any

from lasp_edge.folds import hll
from lasp_edge.folds.columns import Column, Op, Partial
from lasp_edge.folds.fold import Fold, built_in
from lasp_edge.folds.numbers import Resolution


@built_in
class Distinct(Fold):
    """How many different values the samples have, in steps of their resolution.

    Counted but for hash collisions while there are few (at lg_k = 12 up to 384), else with a
    standard error of 1.04 / sqrt(2**lg_k), 1.6 % at lg_k = 12. Its state is 4 bytes a value while
    there are few, then 2**lg_k + 40 bytes. The image is that of Apache DataSketches
    (`lasp_edge.folds.hll`).

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.distinct()
    >>> fold.lower(fold.lift_column([1, 2, 2, 7], [0] * 4), Resolution("1"))
    {'distinct': 3}

    Args:
        lg_k: the logarithm of the number of registers, from 8 to 14.
    """

    name = "distinct"
    parts = ("distinct",)

    def __init__(self, lg_k: int = 12) -> None:
        least, greatest = hll.LEAST_LG_K, hll.GREATEST_LG_K
        if type(lg_k) is not int or not least <= lg_k <= greatest:
            raise ValueError(
                f"distinct: lg_k must be a whole number from {least} to {greatest}, not {lg_k!r}"
            )
        self._lg_k = lg_k
        self.parameters = str(lg_k)
        self.columns = (Column(f"distinct_hll{lg_k}", Op.HLL, size=lg_k),)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (hll.image_of((value,), self._lg_k),)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (hll.image_of(values, self._lg_k),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"distinct": hll.estimate(partial[0])}

    def description(self) -> dict[str, Any]:
        return super().description() | {"arguments": {"lg_k": self._lg_k}}
