"""Folds of sets whose bound operators change: only the partials of the newest bound are combined.

Some devices may hold their last 100 samples yet, and others their last 200. The mean over both is
the mean of nothing that anybody asked for. So a partial holds the bound under which it was made,
and of several the newest bound's count; the others wait until their devices have come over.

    >>> from lasp_edge.folds.sums import Mean
    >>> fold = NewestBound(Mean(), "last")
    >>> before, after = Bound(1, 0, 100), Bound(2, 60_000_000, 200)
    >>> old, new = fold.under(before, (100, 2000)), fold.under(after, (101, 2222))
    >>> fold.combine(old, new) == new, fold.combine(new, new)
    (True, (2, 60000000, 200, 2, 202, 4444))
    >>> fold.lower(fold.combine(old, new), Resolution("0.1"))
    {'mean': 2.2}
"""

from typing import Any, NamedTuple

from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.columns import Column, Op, Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution

DEVICES = "bound_devices"
"""The column that says how many devices' partials are in."""
_COLUMNS = (
    Column("bound_number", Op.MAX),
    Column("bound_from_us", Op.MAX),
    Column("bound", Op.MAX),
    Column(DEVICES, Op.SUM),
)


class Bound(NamedTuple):
    """How many samples a set keeps, and since which entry; the greater one is the newer.

    Attributes:
        number: the greatest of the entries that hold by then; 0 without an entry.
        from_us: the time of the last of them.
        samples: how many are kept.
    """

    number: int
    from_us: int
    samples: int


class NewestBound(Fold):
    """A fold of a set whose bound is a parameter: of partials, those of the newest bound count.

    Args:
        inner: what folds the samples.
        parameter: the name of the parameter that is the bound.
    """

    name = "newest_bound"
    combines_itself = True

    def __init__(self, inner: Fold, parameter: str) -> None:
        self.inner, self.parameter = inner, parameter
        self.columns, self.parts = (*_COLUMNS, *inner.columns), inner.parts
        self.parameters = f"{parameter}: {inner.name}.{inner.version}({inner.parameters})"

    @property
    def zero(self) -> Partial:
        return (None, None, None, 0, *self.inner.zero)

    def under(self, bound: Bound, partial: Partial) -> Partial:
        """Return the partial of one device: its bound, and the partial of its samples."""
        return (*bound, 1, *partial)

    def samples(self, partial: Partial) -> Partial:
        """Return the partial of the samples alone."""
        return partial[len(_COLUMNS) :]

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return self.under(Bound(0, 0, 0), self.inner.lift(value, time_us))

    def combine(self, a: Partial, b: Partial) -> Partial:
        if a[0] is None or b[0] is None:
            return b if a[0] is None else a
        if a[:3] != b[:3]:
            return max(a, b, key=_bound)
        samples = self.inner.combine(self.samples(a), self.samples(b))
        return (*a[:3], a[3] + b[3], *samples)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return self.inner.lower(self.samples(partial), resolution)

    def within_limits(self, partial: Any) -> bool:
        if not super().within_limits(partial):
            return False
        *bound, devices = partial[: len(_COLUMNS)]
        is_bounded = None not in bound and bound[2] > 0 and devices == 1
        return is_bounded and self.inner.within_limits(self.samples(partial))

    def at(self, resolution: Resolution) -> "NewestBound":
        inner = self.inner.at(resolution)
        return self if inner is self.inner else NewestBound(inner, self.parameter)

    def description(self) -> dict[str, Any]:
        """Return that of the fold of the samples: whoever reads a total off needs no more."""
        return self.inner.description()

    @property
    def is_built_in(self) -> bool:
        return self.inner.is_built_in

    def without_code(self) -> Fold:
        return NewestBound(self.inner.without_code(), self.parameter)


def _bound(partial: Partial) -> Partial:
    return partial[:3]


def of_samples(fold: Fold) -> Fold:
    """Return the fold of the samples, whoever may change their bound."""
    return fold.inner if isinstance(fold, NewestBound) else fold


def samples_of(fold: Fold, partial: Partial) -> Partial:
    """Return the partial of the samples alone."""
    return fold.samples(partial) if isinstance(fold, NewestBound) else partial


def devices_in(fold: Fold, total: Partial, devices: int) -> int:
    """Return how many of the devices whose partials of samples were combined are in the total."""
    if not isinstance(fold, NewestBound):
        return devices
    found: int = total[len(_COLUMNS) - 1]
    return found


def is_in(fold: Fold, partial: Partial, total: Partial) -> bool:
    """Return whether one device's partial is in a total: it has samples, under the newest bound."""
    if isinstance(fold, NewestBound):
        return _bound(partial) == _bound(total)
    return not is_of_no_sample(fold, partial)


def is_of_no_sample(fold: Fold, partial: Partial) -> bool:
    """Return whether a partial is certainly that of no sample.

    >>> from lasp_edge import folds
    >>> is_of_no_sample(folds.mean(), (0, 0)), is_of_no_sample(folds.sum(), (0,))
    (True, False)
    """
    return partial == fold.zero and not gives_zero(fold)


def gives_zero(fold: Fold) -> bool:
    """Return whether a sample may have the partial of none: 0 in a sum."""
    try:
        return fold.lift(0, 0) == fold.zero
    except BaseException as error:  # noqa: BLE001 - a user's fold may raise anything
        pass_interrupt(error)
        return True
