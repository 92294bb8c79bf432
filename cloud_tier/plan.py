"""What the job needs of a program: plain data, which travels to Spark where a program cannot."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cloud_tier.tables import Lake
from lasp_edge.fold import Op
from lasp_edge.program import Program

_DAY_US = 86_400_000_000


class Part(NamedTuple):
    """One integer column of a partial, and how two of them combine."""

    name: str
    op: Op


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
    program: Program,
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
    ops = program.columns()
    windows = [
        WindowPlan(
            window.name,
            window.stream,
            window.size_us,
            window.slide_us,
            window.span_us,
            _parts(window.fold.columns_named, ops),
        )
        for window in program.windows.values()
    ]
    folds = [
        FoldPlan(fold.name, fold.stream, fold.source.stream, _parts(fold.fold.columns_named, ops))
        for fold in program.dynamic_folds.values()
    ]
    return Plan(
        lake.root,
        _parts(ops, ops),
        tuple(windows),
        tuple(folds),
        None if roster is None else tuple(sorted(set(roster))),
        dead_after_us,
        retain_us,
    )


def _parts(names: Iterable[str], ops: dict[str, Op]) -> tuple[Part, ...]:
    return tuple(Part(name, ops[name]) for name in names)
