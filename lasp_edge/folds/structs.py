"""Several folds of the same samples in one partial.

>>> from lasp_edge.folds.extremes import Minimum
>>> from lasp_edge.folds.sums import Mean
>>> Struct(mean=Mean(), low=Minimum()).columns_named
('mean_count', 'mean_total_q', 'low_min_q')
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

from lasp_edge.folds.columns import Column, Partial
from lasp_edge.folds.fold import Fold, as_fold, built_in, fold_of
from lasp_edge.folds.numbers import Resolution


@built_in
class Struct(Fold):
    """Several folds of the same samples, in one partial.

    A column is named `part_column`, without doubling: the part `min` of a `min()` has the column
    `min_q`, the part `warmest` of a `max()` has `warmest_max_q`. The parts of a fold that has
    several are named in the same way.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.struct(mean=folds.mean(), warmest=folds.max())
    >>> fold.lower(fold.lift_column([210, 215, 235], [0] * 3), Resolution("0.1"))
    {'mean': 22.0, 'warmest': 23.5}

    Args:
        **parts: the folds, or their factories, by part name: at least one.

    Raises:
        ValueError: no fold, or two columns of one name.
    """

    name = "struct"

    def __init__(self, /, **parts: Any) -> None:
        if not parts:
            raise ValueError("struct: at least one fold is needed, as name=fold")
        self._folds = {part: as_fold(fold) for part, fold in parts.items()}
        for part, fold in self._folds.items():
            if fold.combines_itself:
                raise ValueError(f"struct: {part}={fold!r} combines by itself; use it alone")
        self.columns = tuple(
            prefixed_column(part, column)
            for part, fold in self._folds.items()
            for column in fold.columns
        )
        self.parts = tuple(
            part if len(fold.parts) == 1 else _prefixed(part, inner)
            for part, fold in self._folds.items()
            for inner in fold.parts
        )
        self.parameters = ";".join(
            f"{part}={fold.name}.{fold.version}({fold.parameters})"
            for part, fold in self._folds.items()
        )
        self.checked()

    @property
    def reads_value(self) -> bool:  # type: ignore[override]
        return any(fold.reads_value for fold in self._folds.values())

    @property
    def inner(self) -> Mapping[str, Fold]:
        """The folds by part name."""
        return self._folds

    @property
    def givers(self) -> dict[str, Fold]:
        """The fold that gives each value, by the value's name; none of them is a struct."""
        found: dict[str, Fold] = {}
        for part, fold in self._folds.items():
            for inner in fold.parts:
                name = part if len(fold.parts) == 1 else _prefixed(part, inner)
                found[name] = fold.givers[inner] if isinstance(fold, Struct) else fold
        return found

    def at(self, resolution: Resolution) -> Self:
        folds = {part: fold.at(resolution) for part, fold in self._folds.items()}
        if all(fold is self._folds[part] for part, fold in folds.items()):
            return self
        bound = copy(self)
        bound._folds = folds  # noqa: SLF001
        return bound

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

    @property
    def is_built_in(self) -> bool:
        return all(fold.is_built_in for fold in self._folds.values())

    @classmethod
    def described(cls, description: Mapping[str, Any]) -> Fold | None:
        parts = {part: fold_of(plain) for part, plain in description["parts"].items()}
        return None if None in parts.values() else cls(**parts)


def _prefixed(part: str, name: str) -> str:
    return name if name == part or name.startswith(f"{part}_") else f"{part}_{name}"


def prefixed_column(part: str, column: Column) -> Column:
    """Return a column of a fold that is a part of another one, under the name that it has there."""
    by = _prefixed(part, column.by) if column.by else ""
    return column._replace(name=_prefixed(part, column.name), by=by)
