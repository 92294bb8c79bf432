"""What the job needs of a program: plain data, which travels to Spark where a program cannot."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cloud_tier.lake.tables import Lake
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.language import plan as language

_DAY_US = 86_400_000_000


class Part(NamedTuple):
    """One column of a partial, and how two of them combine; as `lasp_edge.folds.fold.Column`."""

    name: str
    op: Op
    by: str = ""
    size: int = 0

    @property
    def binary(self) -> bool:
        """Whether it holds bytes."""
        return Column(self.name, self.op).binary


@dataclass(frozen=True)
class WindowPlan:
    """A window: the panes of its stream, and how they make its rows. A stream has one window."""

    name: str
    stream: int
    size_us: int
    slide_us: int
    span_us: int
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class FoldPlan:
    """A dynamic fold: the stream whose entries it combines.

    Attributes:
        stream: the dynamic fold's own id, which its `inputs` digest holds.
        source_stream: the id that travels with the entries.
        parts: the columns of its partial, in order.
    """

    name: str
    stream: int
    source_stream: int
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Plan:
    """A program over a lake.

    Attributes:
        root: the lake.
        parts: every column of the program's partials.
        roster: the devices that are expected; None for whoever was ever heard.
        dead_after_us: a device that was silent for longer is not waited for.
        retain_us: windows that start further below the frontier are never recomputed.
    """

    root: str
    parts: tuple[Part, ...]
    windows: tuple[WindowPlan, ...]
    folds: tuple[FoldPlan, ...]
    roster: tuple[str, ...] | None = None
    dead_after_us: int = 60_000_000
    retain_us: int = 7 * _DAY_US

    @property
    def lake(self) -> Lake:
        """The lake's tables."""
        return Lake(self.root)


def plan_of(
    program: language.Plan,
    lake: Lake,
    *,
    roster: Iterable[str] | None = None,
    dead_after_us: int = 60_000_000,
    retain_us: int = 7 * _DAY_US,
) -> Plan:
    """Return the plan of a program over a lake.

    Args:
        program: a validated program.
        lake: where its tables are.
        roster: the devices that are expected; None for whoever was ever heard.
        dead_after_us: a device that was silent for longer is not waited for.
        retain_us: windows that start further below the frontier are never recomputed.
    """
    windows = [
        WindowPlan(
            window.name,
            window.stream,
            window.size_us,
            window.slide_us,
            window.span_us,
            parts_of(window.fold.columns),
        )
        for window in program.windows.values()
    ]
    folds = [
        FoldPlan(fold.name, fold.stream, fold.source.stream, parts_of(fold.fold.columns))
        for fold in program.dynamic_folds.values()
    ]
    return Plan(
        lake.root,
        _every_part(program),
        tuple(windows),
        tuple(folds),
        None if roster is None else tuple(sorted(set(roster))),
        dead_after_us,
        retain_us,
    )


def parts_of(columns: Iterable[Column]) -> tuple[Part, ...]:
    """Return what Spark needs of a fold's columns."""
    return tuple(Part(column.name, column.op, column.by, column.size) for column in columns)


def _every_part(program: language.Plan) -> tuple[Part, ...]:
    """Return the parts of all windows and local folds, sorted by name; each means one thing."""
    folds: list[Fold] = [window.fold for window in program.windows.values()]
    folds += [local.fold for local in program.local_folds.values()]
    parts = {part.name: part for fold in folds for part in parts_of(fold.columns)}
    return tuple(parts[name] for name in sorted(parts))
