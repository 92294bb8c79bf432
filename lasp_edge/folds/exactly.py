"""The parts of a fold as exact numbers: a bound is compared with the value, not with its double.

A mean of 28.1 exactly is shown as the double nearest to it, which is a little more. What acts on a
value at a bound must not depend on that. Here a partial is read off as fractions: of samples in
steps of 0.1 with the total 562 and the count 2, the mean is 281/10.

    >>> from lasp_edge import folds
    >>> tenths = Resolution("0.1")
    >>> exact_part(folds.mean(), (2, 562), tenths, "mean"), folds.mean().lower((3, 1), tenths)
    (Fraction(281, 10), {'mean': 0.03333333333333333})
"""

from fractions import Fraction
from functools import lru_cache
from typing import Any

from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.bounds import of_samples, samples_of
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.decimals import exact
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.folds.structs import Struct
from lasp_edge.folds.sums import Mean


class ExactResolution(Resolution):
    """A resolution whose `real` is a fraction; `lower` then computes with fractions."""

    __slots__ = ()

    def real(self, quantised: int) -> Any:
        """Return `quantised` steps, exactly."""
        return quantised * self.exact


_exactly = lru_cache(64)(ExactResolution)


def exact_part(fold: Fold, partial: Partial, resolution: Resolution, part: str) -> Fraction | None:
    """Return one part of what a fold reads off a partial; None where there is no sample.

    What a fold computes in doubles, as a standard deviation, is the decimal that it prints as.

    Raises:
        ValueError: the part is no number. What a fold of the user's raises is passed on.
    """
    fold, partial = of_samples(fold.outer or fold), samples_of(fold, partial)
    if isinstance(fold, Struct):
        return _of_struct(fold, partial, resolution, part)
    if isinstance(fold, Mean):
        count, total = partial
        return Fraction(total, count) * resolution.exact if count else None
    if fold.is_built_in:
        found = fold.lower(partial, _exactly(resolution.text))[part]
    else:
        found = _of_users(fold, partial, resolution)[part]
    if found is None:
        return None
    return Fraction(found) if isinstance(found, int | Fraction) else exact(found, part)


def _of_struct(
    fold: Struct, partial: Partial, resolution: Resolution, part: str
) -> Fraction | None:
    start, parts = 0, iter(fold.parts)
    for inner in fold.inner.values():
        stop = start + len(inner.columns)
        for own in inner.parts:
            if next(parts) == part:
                return exact_part(inner, partial[start:stop], resolution, own)
        start = stop
    raise ValueError(f"fold {fold.name} has no part {part!r}")


def _of_users(fold: Fold, partial: Partial, resolution: Resolution) -> dict[str, Any]:
    """Return what a user's fold reads off; in doubles where it cannot compute with fractions."""
    try:
        return fold.lower(partial, _exactly(resolution.text))
    except BaseException as error:  # noqa: BLE001 - a user's fold may raise anything
        pass_interrupt(error)
        return fold.lower(partial, resolution)
