"""What results mean, as plain data beside them: whoever reads them needs no program for that.

A mean is kept as its count and total, in steps of a resolution. So a lake and a gateway keep, for
each window and dynamic fold, its fold, resolution and stream; and both show the same columns.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lasp_edge import folds
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.declarations import DynamicFold, Window
from lasp_edge.language.plan import Plan

WINDOW = "window"
FOLD = "fold"


class ResultDefinition(NamedTuple):
    """What a window or a dynamic fold means.

    Attributes:
        kind: `WINDOW` or `FOLD`.
        stream: the stream id of its rows.
        columns: the columns of its partial.
        binary: those of them that hold bytes.
        parts: the values that lowering gives.
        fold: what lowers them; None where the program wrote its own fold.
        size_us: length of a window, 0 for a fold.
        slide_us: distance of its starts, 0 for a fold.
    """

    kind: str
    name: str
    stream: int
    columns: tuple[str, ...]
    binary: frozenset[str]
    parts: tuple[str, ...]
    fold: Fold | None
    resolution: Resolution
    size_us: int
    slide_us: int

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The parts, then the stored columns that are no part themselves."""
        parts = set(self.parts)
        return (*self.parts, *(column for column in self.columns if column not in parts))


def descriptions(plan: Plan) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield kind, name and description of each result of a program."""
    for window in plan.windows.values():
        sizes = {"size_us": window.size_us, "slide_us": window.slide_us}
        yield WINDOW, window.name, _description(plan, window) | sizes
    for fold in plan.dynamic_folds.values():
        yield FOLD, fold.name, _description(plan, fold) | {"size_us": 0, "slide_us": 0}


def definition_of(kind: str, name: str, plain: Mapping[str, Any]) -> ResultDefinition:
    """Return what a description says."""
    resolution = Resolution(plain["resolution"])
    fold = folds.fold_of(plain["fold"])
    return ResultDefinition(
        kind,
        name,
        plain["stream"],
        tuple(plain["columns"]),
        frozenset(plain.get("binary", ())),
        tuple(plain["parts"]),
        None if fold is None else fold.at(resolution),
        resolution,
        plain["size_us"],
        plain["slide_us"],
    )


def _description(plan: Plan, result: Window | DynamicFold) -> dict[str, object]:
    described = {
        "program": plan.name,
        "stream": result.stream,
        "columns": list(result.fold.columns_named),
        "parts": list(result.fold.parts),
        "fold": result.fold.description(),
        "resolution": result.resolution.text,
    }
    binary = [column.name for column in result.fold.columns if column.binary]
    return described | ({"binary": binary} if binary else {})
