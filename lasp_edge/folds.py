"""The built-in folds: count, sum, mean, min, max, and several at once.

>>> fold = mean()
>>> partial = fold.combine(fold.lift(2150), fold.lift(2250))
>>> partial, fold.lower(partial, Resolution("0.01"))
((2, 4400), {'mean': 22.0})
>>> struct(mean=mean(), low=min()).columns_named
('mean_count', 'mean_total_q', 'low_min_q')
"""

# ruff: noqa: ARG002 - lift and lower have one signature, whatever a fold needs of it

import builtins
from collections.abc import Mapping, Sequence
from typing import Any

from lasp_edge.fold import COUNT_LIMIT, Column, Fold, Op, Partial
from lasp_edge.numbers import LIMIT, Resolution


class Count(Fold):
    """How many samples."""

    name = "count"
    columns = (Column("count", Op.SUM, COUNT_LIMIT),)
    parts = ("count",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (1,)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (len(values),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"count": partial[0]}


class Sum(Fold):
    """Total of the samples; 0 where there is no sample."""

    name = "sum"
    columns = (Column("total_q", Op.SUM),)
    parts = ("sum",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (value,)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (builtins.sum(values),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"sum": _real(partial[0], resolution)}


class Mean(Fold):
    """Arithmetic mean of the samples. None where there is no sample."""

    name = "mean"
    columns = (Column("count", Op.SUM, COUNT_LIMIT), Column("total_q", Op.SUM))
    parts = ("mean",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (1, value)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (len(values), builtins.sum(values))

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        count, total = partial
        if not count or total is None:
            return {"mean": None}
        return {"mean": (float(total) / float(count)) * float(resolution.exact)}


class Min(Fold):
    """Least sample. None where there is no sample."""

    name = "min"
    columns = (Column("min_q", Op.MIN, LIMIT),)
    parts = ("min",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (value,)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (builtins.min(values, default=None),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"min": _real(partial[0], resolution)}


class Max(Fold):
    """Greatest sample. None where there is no sample."""

    name = "max"
    columns = (Column("max_q", Op.MAX, LIMIT),)
    parts = ("max",)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return (value,)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return (builtins.max(values, default=None),)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"max": _real(partial[0], resolution)}


class Struct(Fold):
    """Several folds of the same samples, in one partial.

    A column is named `part_column`, without doubling: the part `min` of a `min()` has the column
    `min_q`, the part `warmest` of a `max()` has `warmest_max_q`.

    Args:
        parts: the folds by part name, at least one.

    Raises:
        ValueError: no fold, something that is not a fold, or two columns of one name.
    """

    name = "struct"

    def __init__(self, parts: Mapping[str, Fold]) -> None:
        if not parts:
            raise ValueError("struct: at least one fold is needed, as name=fold")
        self._folds = {part: as_fold(fold) for part, fold in parts.items()}
        self.columns = tuple(
            Column(_prefixed(part, column.name), column.op, column.limit)
            for part, fold in self._folds.items()
            for column in fold.columns
        )
        self.parts = tuple(
            part if len(fold.parts) == 1 else f"{part}_{inner}"
            for part, fold in self._folds.items()
            for inner in fold.parts
        )
        self.parameters = ";".join(
            f"{part}={fold.name}.{fold.version}({fold.parameters})"
            for part, fold in self._folds.items()
        )
        self.checked()

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return tuple(x for fold in self._folds.values() for x in fold.lift(value, time_us))

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        return tuple(x for fold in self._folds.values() for x in fold.lift_column(values, times_us))

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        values: list[float | int | None] = []
        start = 0
        for fold in self._folds.values():
            stop = start + len(fold.columns)
            lowered = fold.lower(partial[start:stop], resolution)
            values += [lowered[part] for part in fold.parts]
            start = stop
        return dict(zip(self.parts, values, strict=True))

    def description(self) -> dict[str, Any]:
        inner = {part: fold.description() for part, fold in self._folds.items()}
        return super().description() | {"parts": inner}


def _real(quantised: int | None, resolution: Resolution) -> float | None:
    return None if quantised is None else resolution.real(quantised)


def _prefixed(part: str, column: str) -> str:
    return column if column == part or column.startswith(f"{part}_") else f"{part}_{column}"


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
    """Return the built-in fold of a description, or None where it is not built in."""
    made = _BUILT_IN.get(description["fold"])
    if made is None or made.version != description["version"]:
        return None
    if made is not Struct:
        return made()
    inner = {part: fold_of(plain) for part, plain in description["parts"].items()}
    known = {part: fold for part, fold in inner.items() if fold is not None}
    return Struct(known) if len(known) == len(inner) else None


_BUILT_IN: dict[str, type[Fold]] = {
    made.name: made for made in (Count, Sum, Mean, Min, Max, Struct)
}


def count() -> Fold:
    """Return the fold that counts samples."""
    return Count()


def sum() -> Fold:  # noqa: A001 - users write folds.sum()
    """Return the fold that adds samples."""
    return Sum()


def mean() -> Fold:
    """Return the fold that averages samples."""
    return Mean()


def min() -> Fold:  # noqa: A001 - users write folds.min()
    """Return the fold that keeps the least sample."""
    return Min()


def max() -> Fold:  # noqa: A001 - users write folds.max()
    """Return the fold that keeps the greatest sample."""
    return Max()


def struct(**parts: Any) -> Fold:
    """Return the fold that computes several folds at once, as `part=fold`."""
    return Struct(parts)
