"""The unit of what a fold gives: that of its samples, or none.

>>> from lasp_edge import folds
>>> fold = folds.struct(n=folds.count(), p=folds.quantile(0.5))
>>> [unit_of(fold, part, "°C") for part in fold.parts]
['', '°C']
"""

from typing import Final

from lasp_edge.folds.fold import Fold
from lasp_edge.folds.structs import Struct

SAME_UNIT: Final = frozenset(
    {"mean", "min", "max", "first", "last", "top", "quantile", "sum", "stddev"}
)
"""Built-in folds whose parts are in the unit of the samples."""


def inner_fold(fold: Fold, part: str) -> Fold:
    """Return the fold that gives a part; a struct's part is one of another fold."""
    if not isinstance(fold, Struct):
        return fold
    at = 0
    for inner in fold.inner.values():
        at += len(inner.parts)
        if fold.parts.index(part) < at:
            return inner
    raise AssertionError(f"{part} is a part of {fold}")


def unit_of(fold: Fold | None, part: str, unit: str) -> str:
    """Return the unit of a part of what a fold gives; a user's own fold keeps that of the samples.

    Args:
        fold: None for one of the user's own whose code is not here.
        part: one of its parts.
        unit: of the samples; "" for none.
    """
    if fold is None or part not in fold.parts:
        return unit
    inner = inner_fold(fold, part)
    return unit if inner.name in SAME_UNIT or not inner.is_built_in else ""
