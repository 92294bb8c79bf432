"""Folds of truth: any and all, where a sample is true unless it is 0. Both slide by `retract`.

Over no sample they are as in logic and Python: any is false, all is true.

    >>> fold = Any()
    >>> fold.lower(fold.lift_column([0, 3, 0], [0, 0, 0]), Resolution("1"))
    {'any': True}
"""

# ruff: noqa: ARG002 - lift and lower have one signature, whatever a fold needs of it

from collections.abc import Sequence

from lasp_edge.folds.columns import COUNT_LIMIT, Column, Op, Partial
from lasp_edge.folds.fold import Fold, built_in
from lasp_edge.folds.numbers import Resolution


@built_in
class Any(Fold):
    """Whether some sample is not 0.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.any()
    >>> fold.lower(fold.lift_column([0, 0, 1], [0] * 3), Resolution("1"))
    {'any': True}
    """

    name = "any"
    columns = (Column("nonzero", Op.SUM, COUNT_LIMIT),)
    parts = ("any",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (int(value != 0),)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (len(values) - values.count(0),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"any": partial[0] > 0}


@built_in
class All(Fold):
    """Whether no sample is 0.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.all()
    >>> fold.lower(fold.lift_column([0, 0, 1], [0] * 3), Resolution("1"))
    {'all': False}
    """

    name = "all"
    columns = (Column("zeros", Op.SUM, COUNT_LIMIT),)
    parts = ("all",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (int(value == 0),)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (values.count(0),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"all": partial[0] == 0}
