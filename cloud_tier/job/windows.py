"""Sliding windows from panes: recompute what may have changed, append what did.

A window's partial is the combination of its panes over replicas, devices and time, so computing it
again is always right and never counts anything twice. A row is appended where the result differs
from the current one:

    revision   0, 1, 2, ... for each (window, key, start); the current row has the greatest
    status     tentative, final or revised (`lasp_edge.protocol.status`)

Differs means: the status, a column of the partial, or how many devices are in. The last is not
implied: a further device may leave a minimum as it was.
"""

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from cloud_tier.job import own_combine, totals
from cloud_tier.job.combination import aggregates
from cloud_tier.job.finality import StepFinality
from cloud_tier.job.frames import Frames
from cloud_tier.lake.sqltext import (
    any_of,
    identifier,
    literal,
    one_of,
    standard_identifier,
    standard_literal,
    within,
)
from cloud_tier.lake.tables import PANE
from lasp_edge.folds.columns import Column
from lasp_edge.language.declarations import Window
from lasp_edge.language.plan import Plan
from lasp_edge.protocol import spans
from lasp_edge.protocol.spans import Span, Starts
from lasp_edge.protocol.status import STATUSES, TENTATIVE, TRANSITIONS, Transition

_IDENTITY = ("window", "key", "start_us")
_SPANS = pa.schema(
    [(f"_{name}", pa.int64()) for name in ("stream", "first_us", "last_us", "slide_us", "reach_us")]
)
RECORD: Final = {
    "_frontier": pa.int64(),
    "_expected": pa.int32(),
    "_excluded": pa.string(),
    "_due": pa.int64(),
    "_after_us": pa.int64(),
    "_until_us": pa.int64(),
    "_missing": pa.string(),
}
"""What all rows of a window that end in one stretch of time have to know in one step."""
_SHAPES = pa.schema(
    {
        "_stream": pa.int64(),
        "_window": pa.string(),
        "_size_us": pa.int64(),
        **RECORD,
    }
)


def needed(windows: Iterable[Window], starts: Starts) -> str:
    """Return which rows of `lattice` these windows are made of, in Spark's dialect or the standard.

    Delta and DataFusion leave unread the files that hold none of them.
    """
    streams = any_of(
        f"(stream = {window.stream} AND "
        f"{within('pane_us', spans.panes_of(window, starts[window.name]))})"
        for window in windows
        if window.name in starts
    )
    return f"{one_of('kind', [PANE])} AND {streams}"


def written(starts: Starts, *, standard: bool) -> str:
    """Return which rows of `windows` have these starts, in Spark's dialect or the standard."""
    name = standard_identifier("window") if standard else "window"
    quoted = standard_literal if standard else literal
    return any_of(
        f"({name} = {quoted(window)} AND {within('start_us', spans_)})"
        for window, spans_ in starts.items()
    )


class SpannedWindow(Protocol):
    """What of a window says which panes it is made of."""

    @property
    def name(self) -> str:
        """What its starts are known by."""

    @property
    def stream(self) -> int:
        """The id of its panes."""

    @property
    def size_us(self) -> int:
        """From its start to its end."""

    @property
    def slide_us(self) -> int:
        """From a start to the next."""

    @property
    def span_us(self) -> int:
        """Length of a pane."""


def spans_of(windows: Iterable[SpannedWindow], starts: Starts) -> pa.Table:
    """Return one row for each span of starts: which panes make which windows."""
    rows = [
        (
            window.stream,
            span.first,
            span.last,
            window.slide_us,
            window.size_us - window.span_us,
        )
        for window in windows
        for span in starts.get(window.name, ())
    ]
    return _table(_SPANS, rows)


def shapes_of(windows: Iterable[Window], starts: Starts, finality: StepFinality) -> pa.Table:
    """Return the windows' shapes, and what their rows of this step record, by stretches of ends."""
    rows = [
        (window.stream, window.name, window.size_us, *record)
        for window in windows
        for record in records_of(
            window.name, ends_of(window, starts.get(window.name, ()), window.slide_us), finality
        )
    ]
    return _table(_SHAPES, rows)


def ends_of(window: SpannedWindow, spans_: Iterable[Span], grid_us: int) -> Iterator[range]:
    """Yield the ends of the windows that start in some spans, at multiples of `grid_us`."""
    for first_us, last_us in spans_:
        least_us = first_us + -first_us % grid_us
        yield range(least_us + window.size_us, last_us + window.size_us + 1, grid_us)


def records_of(
    window: str, ends: Iterable[range], finality: StepFinality
) -> Iterator[tuple[Any, ...]]:
    """Yield what all rows of a window in one step have to know, by stretches of its ends."""
    coverage = finality.coverage
    record = (coverage.frontier, len(coverage.expected), ",".join(coverage.excluded))
    for stretch in finality.missing.stretches(finality.lead_us[window], ends):
        yield (*record, finality.due_us[window], *stretch)


def recomputed(
    made: Frames,
    panes: DataFrame,
    rows: DataFrame,
    plan: Plan,
    starts: Starts,
    finality: StepFinality,
) -> DataFrame:
    """Return the rows to append: the windows with these starts that differ from their newest row.

    Args:
        made: makes frames.
        panes: rows of `lattice`, at least those that are needed.
        rows: those of `windows` that have these starts.
        plan: the program's.
        starts: which windows.
        finality: the frontier and the devices to record, and what is due.
    """
    columns = tuple(plan.columns.values())
    spans_ = made.rows(spans_of(plan.windows.values(), starts))
    shapes = made.rows(shapes_of(plan.windows.values(), starts, finality))
    own = {
        window.stream: window.fold
        for window in plan.windows.values()
        if window.fold.combines_itself
    }
    found = computed(panes, columns, spans_, shapes, own)
    return revisions(found, current(rows, columns), columns)


def computed(
    panes: DataFrame,
    columns: Sequence[Column],
    spans_: DataFrame,
    shapes: DataFrame,
    own: own_combine.OwnFolds = MappingProxyType({}),
    pieces: DataFrame | None = None,
) -> DataFrame:
    """Return the windows with these starts as their panes give them now.

    Columns: window, key, start_us, end_us, one for each part, devices_in, stream, and what
    `shapes_of` records.

    Args:
        panes: rows of `lattice`, at least those that are needed.
        columns: the program's.
        spans_: what `spans_of` gives.
        shapes: what `shapes_of` gives.
        own: the folds that combine by themselves.
        pieces: which panes count for which forms of windows; None without parameters.
    """
    names = [identifier(column.name) for column in columns]
    fleet = totals.of_panes(panes, columns, spans_, own, pieces)
    at = sql.expr(
        "fleet.stream = shape._stream AND start_us + _size_us > _after_us "
        "AND start_us + _size_us <= _until_us"
    )
    return (
        fleet.alias("fleet")
        .join(shapes.alias("shape"), at)
        .selectExpr(
            "_window AS window",
            "key",
            "start_us",
            "start_us + _size_us AS end_us",
            *names,
            "devices_in",
            "stream" if pieces is None else "_of AS stream",
            *RECORD,
        )
    )


def current(rows: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Return the newest revision of each window, `status` as a number.

    Args:
        rows: rows of `windows`.
        columns: the program's.
    """
    number = " ".join(f"WHEN {literal(status)} THEN {n}" for n, status in enumerate(STATUSES))
    newest = aggregates(
        "max(revision) AS revision",
        f"max_by(CASE status {number} END, revision) AS status",
        *(f"max_by({name}, revision) AS {name}" for name in _compared(columns)),
    )
    return rows.groupBy(*_IDENTITY).agg(*newest)


def revisions(computed: DataFrame, current: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Return the rows to append: the computed windows that differ from the current ones.

    A window that waits for devices and is not due has no row yet.

    Args:
        computed: what `computed` gives.
        current: what `current` gives for the same starts.
        columns: the program's.
    """
    both = computed.alias("new").join(current.alias("old"), list(_IDENTITY), "left")
    differs = any_of(f"NOT (new.{name} <=> old.{name})" for name in _compared(columns))
    passed = "coalesce(new.end_us <= new._frontier, false)"
    after = status_after(passed=passed, differs=differs)
    is_held = f"old.status IS NULL AND NOT {passed} AND NOT coalesce(new.end_us <= new._due, false)"
    tentative = f"{after} = {STATUSES.index(TENTATIVE)}"
    statuses = ", ".join(map(literal, STATUSES))
    news = f"({differs} OR NOT ({after} <=> old.status)) AND NOT ({is_held})"
    return both.where(news).selectExpr(
        *_IDENTITY,
        "new.end_us",
        *(f"new.{identifier(column.name)}" for column in columns),
        "new.devices_in",
        "new._expected AS devices_expected",
        f"if({tentative}, new._missing, new._excluded) AS excluded",
        f"element_at(array({statuses}), {after} + 1) AS status",
        "coalesce(old.revision + 1, 0) AS revision",
        "new._frontier AS frontier",
        "new.stream",
    )


def read_columns(columns: Iterable[Column]) -> list[str]:
    """Return the columns of `windows` that `current` reads."""
    named = (column.name for column in columns)
    return [*_IDENTITY, "revision", "status", "end_us", "devices_in", "stream", *named]


def status_after(*, passed: str, differs: str) -> str:
    """Return the status that follows, as SQL text over the newest row's `old.status`.

    A status is its place in `STATUSES`: numbers stay in a HashAggregate. The cases are those of
    `lasp_edge.protocol.status`, which also says when a row is appended.

    Args:
        passed: whether the frontier has passed the window's end, as SQL text.
        differs: whether the result differs from the newest row's, as SQL text.
    """
    cases = " ".join(
        f"WHEN {_applies(case, passed, differs)} THEN {STATUSES.index(case.after)}"
        for case in TRANSITIONS
    )
    return f"(CASE {cases} END)"


def _applies(case: Transition, passed: str, differs: str) -> str:
    before = "IS NULL" if case.before is None else f"= {STATUSES.index(case.before)}"
    conditions = [f"old.status {before}"]
    for holds, condition in ((case.passed, passed), (case.differs, differs)):
        if holds is not None:
            conditions.append(condition if holds else f"NOT {condition}")
    return " AND ".join(conditions)


def _compared(columns: Iterable[Column]) -> list[str]:
    return ["end_us", "devices_in", "stream", *(identifier(column.name) for column in columns)]


def _table(schema: pa.Schema, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
