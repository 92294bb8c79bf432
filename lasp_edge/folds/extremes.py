"""Folds of extremes: min, max, first, last and top. None of them has an inverse.

>>> fold = First()
>>> partial = fold.combine(fold.lift(2150, time_us=20), fold.lift(2250, time_us=10))
>>> partial, fold.lower(partial, Resolution("0.01"))
((10, 2250), {'first': 22.5})
>>> fold = Top(2)
>>> fold.lower(fold.lift_column([5, 9, 7], [0, 0, 0]), Resolution("1"))
{'top_1': 9.0, 'top_2': 7.0}
"""

# ruff: noqa: ARG002 - lift and lower have one signature, whatever a fold needs of it

from collections.abc import Callable, Sequence
from heapq import nlargest
from typing import Any

from lasp_edge.folds.columns import Column, Op, Partial
from lasp_edge.folds.fold import Fold, built_in
from lasp_edge.folds.numbers import LIMIT, Resolution
from lasp_edge.folds.packed import packed_top, top_of

MOST_TOP = 1_000
"""The most values that one `top` keeps: 4 B each, so 4 kB of a frame."""


@built_in
class Minimum(Fold):
    """Least sample. None where there is no sample.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.min()
    >>> fold.lower(fold.lift_column([210, 215, 235], [0] * 3), Resolution("0.1"))
    {'min': 21.0}
    """

    name = "min"
    columns = (Column("min_q", Op.MIN, LIMIT),)
    parts = ("min",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (value,)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (min(values, default=None),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"min": _real(partial[0], resolution)}


@built_in
class Maximum(Fold):
    """Greatest sample. None where there is no sample.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.max()
    >>> fold.lower(fold.lift_column([210, 215, 235], [0] * 3), Resolution("0.1"))
    {'max': 23.5}
    """

    name = "max"
    columns = (Column("max_q", Op.MAX, LIMIT),)
    parts = ("max",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (value,)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (max(values, default=None),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"max": _real(partial[0], resolution)}


@built_in
class First(Fold):
    """The sample of the least time; of several, the least. None where there is no sample.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.first()
    >>> fold.lower(fold.lift_column([210, 215, 235], [30, 10, 20]), Resolution("0.1"))
    {'first': 21.5}
    """

    name = "first"
    columns = (
        Column("first_us", Op.MIN),
        Column("first_q", Op.AT_MIN, LIMIT, by="first_us"),
    )
    parts = ("first",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (time_us, value)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return _at(min, values, times_us)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"first": _real(partial[1], resolution)}


@built_in
class Last(Fold):
    """The sample of the greatest time; of several, the greatest. None where there is no sample.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.last()
    >>> fold.lower(fold.lift_column([210, 215, 235], [30, 10, 20]), Resolution("0.1"))
    {'last': 21.0}
    """

    name = "last"
    columns = (
        Column("last_us", Op.MAX),
        Column("last_q", Op.AT_MAX, LIMIT, by="last_us"),
    )
    parts = ("last",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (time_us, value)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return _at(max, values, times_us)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"last": _real(partial[1], resolution)}


@built_in
class Top(Fold):
    """The k greatest samples, equal ones each for itself; None beyond how many there are.

    Its parts are `top_1`, the greatest, to `top_k`; its state is 4 bytes a sample that is kept.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.top(2)
    >>> fold.lower(fold.lift_column([210, 215, 235], [0] * 3), Resolution("0.1"))
    {'top_1': 23.5, 'top_2': 21.5}

    Args:
        k: how many, from 1 to 1,000.
    """

    name = "top"

    def __init__(self, k: int) -> None:
        if type(k) is not int or not 0 < k <= MOST_TOP:
            raise ValueError(f"top: a whole number from 1 to {MOST_TOP} is needed, not {k!r}")
        self._k = k
        self.parameters = str(k)
        self.columns = (Column(f"top_{k}_q", Op.TOP, LIMIT, size=k),)
        self.parts = tuple(f"top_{rank}" for rank in range(1, k + 1))

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (packed_top((value,)),)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (packed_top(nlargest(self._k, values)),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        values = [resolution.real(value) for value in top_of(partial[0])]
        return dict(zip(self.parts, values + [None] * self._k, strict=False))

    def description(self) -> dict[str, Any]:
        return super().description() | {"arguments": {"k": self._k}}


def _real(quantised: int | None, resolution: Resolution) -> float | None:
    return None if quantised is None else resolution.real(quantised)


def _at(
    extreme: Callable[..., int], values: Sequence[int], times_us: Sequence[int]
) -> tuple[int | None, int | None]:
    """Return the extreme time, and the same extreme of the values of that time."""
    if not values:
        return (None, None)
    time_us = extreme(times_us)
    if times_us.count(time_us) == 1:
        return (time_us, values[times_us.index(time_us)])
    at = [value for value, at_us in zip(values, times_us, strict=True) if at_us == time_us]
    return (time_us, extreme(at))
