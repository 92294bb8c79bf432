"""Definitions of results, as plain data beside them: a reader needs no program to read them.

A mean is kept as its count and total, in steps of a resolution. So a lake and a gateway keep, for
each window and dynamic fold, its fold, resolution and stream, and for each stream's result the
steps of its parts; and both show the same columns.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lasp_edge import folds
from lasp_edge.folds.bounds import NewestBound
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.declarations import DynamicFold, Window
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.streams import stream_id

WINDOW = "window"
FOLD = "fold"
RESULT = "result"
UNIT = "unit"
"""What a description has for people alone: it changes no row."""
VARIES = "varies"
"""What a description has where parameters change the size or slide of a window."""


class ResultDefinition(NamedTuple):
    """What a window, a dynamic fold or a stream's result means.

    Attributes:
        kind: `WINDOW`, `FOLD` or `RESULT`.
        stream: the stream id of its rows.
        columns: the columns of its partial.
        binary: those of them that hold bytes.
        parts: the values that lowering gives.
        fold: what lowers them; None where the program wrote its own fold.
        size_us: length of a window, 0 for a fold.
        slide_us: distance of its starts, 0 for a fold.
        steps: of a stream's result, the step of each part, or "text".
        folds: (from which start on, fold) where parameters change a window's fold, by time.
        unit: of a window's samples; "" for none, and where an earlier release described it.
        varies: whether parameters change a window's size or slide.
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
    steps: tuple[str, ...] = ()
    folds: tuple[tuple[int, Fold | None], ...] = ()
    unit: str = ""
    varies: bool = False

    def fold_at(self, start_us: int) -> Fold | None:
        """Return what lowers the partial of a window that starts at a time."""
        found = self.fold
        for from_us, fold in self.folds:
            if from_us <= start_us:
                found = fold
        return found

    @property
    def definition(self) -> int:
        """The id of the whole definition: windows of several sizes are made of one stream."""
        return stream_id(self.stream, self.size_us, self.slide_us)

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The parts, then the stored columns that are no part themselves."""
        parts = set(self.parts)
        return (*self.parts, *(column for column in self.columns if column not in parts))


def descriptions(plan: Plan) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield kind, name and description of each result of a program."""
    for window in plan.windows.values():
        sizes = {"size_us": window.size_us, "slide_us": window.slide_us}
        yield (
            WINDOW,
            window.name,
            _description(plan, window) | sizes | _unit(window) | _varies(window),
        )
    for fold in plan.dynamic_folds.values():
        yield FOLD, fold.name, _description(plan, fold) | {"size_us": 0, "slide_us": 0}
    for made in plan.stream_results.values():
        described = {"program": plan.name, "stream": made.stream, "columns": list(made.columns)}
        parts, steps = zip(*made.parts, strict=True)
        yield RESULT, made.name, described | {"parts": list(parts), "steps": list(steps)}


def definition_of(kind: str, name: str, plain: Mapping[str, Any]) -> ResultDefinition:
    """Return the definition that a description holds."""
    resolution = Resolution(plain.get("resolution", "1"))
    fold = folds.fold_of(plain["fold"]) if "fold" in plain else None
    if fold is not None and "bound" in plain:
        fold = NewestBound(fold, plain["bound"])
    return ResultDefinition(
        kind,
        name,
        plain["stream"],
        tuple(plain["columns"]),
        frozenset(plain.get("binary", ())),
        tuple(plain["parts"]),
        None if fold is None else fold.at(resolution),
        resolution,
        plain.get("size_us", 0),
        plain.get("slide_us", 0),
        tuple(plain.get("steps", ())),
        tuple([(from_us, _fold_of(each, resolution)) for from_us, each in plain.get("folds", ())]),
        plain.get(UNIT, ""),
        plain.get(VARIES, False),
    )


def _fold_of(plain: Mapping[str, Any], resolution: Resolution) -> Fold | None:
    fold = folds.fold_of(plain)
    return None if fold is None else fold.at(resolution)


def _unit(window: Window) -> dict[str, object]:
    return {UNIT: window.source.unit} if window.source.unit else {}


def _varies(window: Window) -> dict[str, object]:
    is_one = window.controls.size is None and window.controls.slide is None
    return {} if is_one else {VARIES: True}


def _description(plan: Plan, result: Window | DynamicFold) -> dict[str, object]:
    described = {
        "program": plan.name,
        "stream": result.stream,
        "columns": list(result.fold.columns_named),
        "parts": list(result.fold.parts),
        "fold": result.fold.description(),
        "resolution": result.resolution.text,
    }
    if isinstance(result.fold, NewestBound):
        described["bound"] = result.fold.parameter
    binary = [column.name for column in result.fold.columns if column.binary]
    return described | ({"binary": binary} if binary else {})
