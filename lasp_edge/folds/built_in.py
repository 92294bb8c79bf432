"""The functions that make the built-in folds, and which folds those are.

A built-in fold can be made again from its `description`, plain data that the lake keeps.

    >>> fold = quantile(0.5, 0.99)
    >>> fold.description()["arguments"]
    {'fractions': ['1/2', '99/100'], 'relative_error': '1/100'}
    >>> fold_of(fold.description()).parts
    ('p50', 'p99')
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lasp_edge.folds import extremes, truth
from lasp_edge.folds.distinct import Distinct
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.histogram import Histogram
from lasp_edge.folds.quantile import Quantile
from lasp_edge.folds.structs import Struct
from lasp_edge.folds.sums import Count, Mean, Stddev, Sum, Variance

_BUILT_IN: dict[str, type[Fold]] = {
    made.name: made
    for made in (
        *(Count, Sum, Mean, Variance, Stddev),
        *(extremes.Min, extremes.Max, extremes.First, extremes.Last, extremes.Top),
        *(truth.Any, truth.All, Histogram, Quantile, Distinct, Struct),
    )
}


def as_fold(fold: Any) -> Fold:
    """Return `fold`, or what it makes when it is a factory such as `folds.mean`.

    Raises:
        ValueError: it is neither, or a fold of your own whose definition cannot work.
    """
    try:
        made = fold() if callable(fold) and not isinstance(fold, Fold) else fold
    except TypeError as error:  # it wants arguments, or lacks an abstract method
        raise ValueError(f"a fold such as folds.mean() is needed, not {fold!r}: {error}") from None
    if not isinstance(made, Fold):
        raise ValueError(f"a fold such as folds.mean() is needed, not {fold!r}")
    if type(made) is not _BUILT_IN.get(made.name, type(made)):
        raise ValueError(f"fold {made.name}: that is a built-in fold's name; give yours another")
    return made.checked()


def fold_of(description: Mapping[str, Any]) -> Fold | None:
    """Return the built-in fold of a description, or None where it is not built in.

    Where parameters are in units, ask it for `.at(resolution)` before it lifts.
    """
    made = _BUILT_IN.get(description["fold"])
    if made is None or made.version != description["version"]:
        return None
    if made is not Struct:
        return made(**description.get("arguments", {}))
    inner = {part: fold_of(plain) for part, plain in description["parts"].items()}
    known = {part: fold for part, fold in inner.items() if fold is not None}
    return Struct(known) if len(known) == len(inner) else None


def count() -> Fold:
    """Return the fold that counts samples."""
    return Count()


def sum() -> Fold:  # noqa: A001 - users write folds.sum()
    """Return the fold that adds samples."""
    return Sum()


def mean() -> Fold:
    """Return the fold that averages samples."""
    return Mean()


def variance(*, population: bool = False) -> Fold:
    """Return the fold of the samples' variance, divided by their count less 1.

    Args:
        population: divide by the count.
    """
    return Variance(population=population)


def stddev(*, population: bool = False) -> Fold:
    """Return the fold of the samples' standard deviation, the square root of the variance.

    Args:
        population: as for `variance`.
    """
    return Stddev(population=population)


def min() -> Fold:  # noqa: A001 - users write folds.min()
    """Return the fold that keeps the least sample."""
    return extremes.Min()


def max() -> Fold:  # noqa: A001 - users write folds.max()
    """Return the fold that keeps the greatest sample."""
    return extremes.Max()


def first() -> Fold:
    """Return the fold that keeps the sample of the least time."""
    return extremes.First()


def last() -> Fold:
    """Return the fold that keeps the sample of the greatest time."""
    return extremes.Last()


def top(k: int) -> Fold:
    """Return the fold that keeps the `k` greatest samples, as parts `top_1` to `top_k`."""
    return extremes.Top(k)


def any() -> Fold:  # noqa: A001 - users write folds.any()
    """Return the fold that says whether some sample is not 0."""
    return truth.Any()


def all() -> Fold:  # noqa: A001 - users write folds.all()
    """Return the fold that says whether no sample is 0."""
    return truth.All()


def histogram(edges: Iterable[Any]) -> Fold:
    """Return the fold that counts samples between edges, as parts `bin_0` (below the first) on.

    Args:
        edges: ascending, in the unit of the readings, as numbers or decimal text.
    """
    return Histogram(edges)


def quantile(*fractions: Any, relative_error: Any = 0.01) -> Fold:
    """Return the fold that estimates quantiles, as parts such as `p50` and `p99_9`.

    Args:
        *fractions: from 0 to 1, as numbers or decimal text.
        relative_error: how far a part may be off, relative to the true sample.
    """
    return Quantile(fractions, relative_error)


def distinct(lg_k: int = 12) -> Fold:
    """Return the fold that estimates how many different values the samples have.

    Args:
        lg_k: the logarithm of the number of registers; the error is 1.04 / sqrt(2**lg_k).
    """
    return Distinct(lg_k)


def struct(**parts: Any) -> Fold:
    """Return the fold that computes several folds at once, as `part=fold`."""
    return Struct({part: as_fold(fold) for part, fold in parts.items()})
