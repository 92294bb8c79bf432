"""A fold of outputs that may be taken back: it keeps how often each value is there.

The maximum of a window cannot be taken out of it again: which one was the next is forgotten. And an
output of a scan is taken back where a late reading changes it, perhaps long after the device that
sent it was started again. So a window over a scan keeps the values themselves, with signed counts
that add up like any sum, and the fold is made from them where it is read.

    >>> from lasp_edge.folds.extremes import Maximum
    >>> fold = Revisable(Maximum())
    >>> several, gone = fold.lift_column([3, 9, 9], [0, 0, 0]), fold.lift_column([9, 9], [0, 0])
    >>> fold.lower(fold.retract(several, gone), Resolution("0.1"))
    {'max': 0.3}
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lasp_edge.folds.columns import Column, Op, Partial
from lasp_edge.folds.fold import Fold, built_in, fold_of
from lasp_edge.folds.numbers import Resolution
from lasp_edge.folds.signed import packed_values, values_of


@built_in
class Revisable(Fold):
    """Another fold of the values that are there, each as often as it came and was not taken back.

    One device's partial holds at most 2,500 different values.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.revisable(folds.max())  # a window over a scan takes it by itself
    >>> several = fold.combine(fold.lift(3), fold.lift(9))
    >>> fold.lower(fold.retract(several, fold.lift(9)), Resolution("0.1"))
    {'max': 0.3}

    Args:
        inner: a built-in fold that does not ask for the time of a sample.

    Raises:
        ValueError: it is another one.
    """

    name = "revisable"
    columns = (Column("values_counted", Op.VALUES),)

    def __init__(self, inner: Fold) -> None:
        if not inner.is_built_in or any(column.by for column in inner.columns):
            raise ValueError(
                f"{inner!r} cannot take a value back: it is a fold of your own whose columns are "
                "not all sums, or asks for times"
            )
        self.inner, self.parts = inner, inner.parts
        self.parameters = f"{inner.name}.{inner.version}({inner.parameters})"

    def at(self, resolution: Resolution) -> "Fold":
        inner = self.inner.at(resolution)
        return self if inner is self.inner else Revisable(inner)

    def lift(self, value: int, time_us: int = 0) -> Partial:  # noqa: ARG002 - the signature
        return (packed_values({value: 1}),)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:  # noqa: ARG002
        return (packed_values(Counter(values)),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        total = self.inner.zero
        for value, count in values_of(partial[0]).items():
            times, power = count, self.inner.lift(value)
            while times > 0:  # as often as it is there, by doubling
                total = self.inner.combine(total, power) if times % 2 else total
                power, times = self.inner.combine(power, power), times // 2
        return self.inner.lower(total, resolution)

    def description(self) -> dict[str, Any]:
        return super().description() | {"of": self.inner.description()}

    @classmethod
    def described(cls, description: Mapping[str, Any]) -> Fold | None:
        inner = fold_of(description["of"])
        return None if inner is None else cls(inner)


def revisable(fold: Fold) -> Fold:
    """Return a fold that can take values back, whichever life of a device has sent them.

    Raises:
        ValueError: this fold cannot.
    """
    return fold if all(column.op.is_signed for column in fold.columns) else Revisable(fold)
