"""Sliding windows from panes: recompute what may have changed, append what did.

A window's partial is the combination of its panes over replicas, devices and time, so computing it
again is always right and never counts anything twice. A row is appended where the result differs
from the current one:

    revision   0, 1, 2, ... for each (window, key, start); the current row has the greatest
    status     tentative, final or revised (`lasp_edge.protocol.status`)

Differs means: the status, a column of the partial, or how many devices are in. The last is not
implied: a further device may leave a minimum as it was. Names of devices alone make a row where one
has sent everything since, or has lost some (`cloud_tier.job.renamed`), and where the frontier
passes the end of a window again that is longer than when it was final.
"""

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any, Final

from cloud_tier.job import own_combine, totals
from cloud_tier.job.finality import StepFinality
from cloud_tier.job.formed import RECORD, StepWindows
from cloud_tier.job.frames import Frames
from cloud_tier.job.renamed import IS_RENAMED
from cloud_tier.job.selection import Selection
from cloud_tier.lake.sqltext import (
    any_of,
    identifier,
    literal,
    one_of,
    standard_identifier,
    standard_literal,
    within,
)
from lasp_edge.folds.columns import Column, Op
from lasp_edge.protocol.spans import Starts
from lasp_edge.protocol.status import STATUSES, TENTATIVE, TRANSITIONS, Transition
from lasp_edge.protocol.window_rows import COMPARED, COUNTED, COVERED, LAKE_RECORD

_IDENTITY = ("window", "key", "start_us")
_RECORDED: Final = ("_size_us", "_of", *(name for name in RECORD if not name.endswith("_us")))
"""What a row takes over from its window's shape."""
_ENDS_IN_STRETCH: Final = "start_us + _size_us > _after_us AND start_us + _size_us <= _until_us"
_TENTATIVE: Final = STATUSES.index(TENTATIVE)
_WAS_SHORT: Final = "_old_frontier < _old_end_us"
"""Whether the window of a row that is not tentative had become longer, and was not over."""
_NOW: Final = {
    "end_us": "start_us + _size_us",
    "devices_in": "CAST(coalesce(_devices, 0) AS INT)",
    "stream": "_of",
}
"""The values with which a row may differ from its newest revision beside the fold's, as SQL."""
_WANTED: Final = (
    "window = _at AND (_key IS NULL OR _key = key) AND start_us BETWEEN _first_us AND _last_us "
    f"AND (_needs = 0 OR (_needs = 1 AND (status = {_TENTATIVE} OR {_WAS_SHORT}) "
    "AND _old_end_us <= _frontier) "
    "OR (_needs = 2 AND _devices IS NOT NULL) "
    "OR (_needs = 3 AND _devices IS NOT NULL AND status IS NULL))"
)
"""Which rows a step makes, by `cloud_tier.job.starts`, as SQL text."""


def written(starts: Starts, *, standard: bool) -> str:
    """Return which rows of `windows` have these starts, in Spark's dialect or the standard."""
    name = standard_identifier("window") if standard else "window"
    quoted = standard_literal if standard else literal
    return any_of(
        f"({name} = {quoted(window)} AND {within('start_us', spans_)})"
        for window, spans_ in starts.items()
    )


def recomputed(
    made: Frames,
    panes: Selection,
    rows: Selection,
    windows: StepWindows,
    finality: StepFinality,
) -> Selection:
    """Return the rows to append: the windows of a step that differ from their newest row.

    Args:
        made: makes frames.
        panes: rows of `lattice`, at least those that are needed.
        rows: those of `windows` that have the starts.
        windows: of the step.
        finality: the frontier and the devices to record, and what is due.
    """
    columns = windows.job.columns
    pieces, shapes = windows.pieces(), made.rows(windows.shapes(finality))
    found = computed(
        made,
        panes,
        columns,
        made.rows(windows.spans()),
        shapes,
        windows.folds,
        None if pieces is None else made.rows(pieces),
    )
    how = "FULL" if windows.changing else "LEFT"
    both = made.resolved(_beside(found, current(rows, columns), columns, how=how))
    if windows.changing:
        both = _changing(both, made, shapes, windows)
    held = windows.held()
    if held is not None:
        within_ = "window = _held AND start_us BETWEEN _least_us AND _most_us"
        both = both.join(made.rows(held).alias("held"), within_, "LEFT")
    renamed = windows.renamed.rows
    if renamed is not None:
        both = both.join(made.rows(renamed).alias("renamed"), IS_RENAMED, "LEFT")
    return _revisions(both, columns, windows, some_held=held is not None)


def computed(
    made: Frames,
    panes: Selection,
    columns: Sequence[Column],
    spans_: Selection,
    shapes: Selection,
    own: own_combine.OwnFolds = MappingProxyType({}),
    pieces: Selection | None = None,
) -> Selection:
    """Return the windows with these starts as their panes give them now.

    Columns: window, key, start_us, one for each part, devices_in, and those of `shapes`.

    Args:
        made: makes frames.
        panes: rows of `lattice`, at least those that are needed.
        columns: the program's.
        spans_: what `StepWindows.spans` gives.
        shapes: what `StepWindows.shapes` gives.
        own: the folds that combine by themselves.
        pieces: what `StepWindows.pieces` gives.
    """
    names = [identifier(column.name) for column in columns]
    fleet = made.resolved(totals.of_panes(made, panes, columns, spans_, own, pieces)).alias("fleet")
    at = f"fleet.stream = shape._stream AND {_ENDS_IN_STRETCH}"
    return fleet.join(shapes.alias("shape"), at).select(
        "_window AS window", "key", "start_us", *names, "devices_in", *_RECORDED
    )


def current(rows: Selection, columns: Sequence[Column]) -> Selection:
    """Return the newest revision of each window, `status` as a number.

    Args:
        rows: rows of `windows`.
        columns: the program's.
    """
    number = " ".join(f"WHEN {literal(status)} THEN {n}" for n, status in enumerate(STATUSES))
    newest = [
        "max(revision) AS revision",
        "max_by(xxhash64(excluded), revision) AS _names",  # a text is aggregated by sorting
        f"max_by(CASE status {number} END, revision) AS status",
        *(
            f"max_by({name}, revision) AS {name}"
            for name in ("excluded", "frontier", *_compared(columns))
        ),
    ]
    return rows.grouped(_IDENTITY, newest)


def _beside(
    found: Selection, before: Selection, columns: Sequence[Column], *, how: str
) -> Selection:
    """Return one row for each window that is, or that was: its partial, beside its newest row."""
    names = [identifier(column.name) for column in columns]
    return (
        found.alias("new")
        .join(before.alias("old"), _IDENTITY, how)
        .select(
            *_IDENTITY,
            "new.devices_in AS _devices",
            *(f"new.{name} AS _new_{at}" for at, name in enumerate(names)),
            "old.revision AS _revision",
            "old.status AS status",
            "old.excluded AS _named",
            "old._names AS _old_names",
            "old.frontier AS _old_frontier",
            *(f"old.{name} AS _old_{name}" for name in COMPARED),
            *(f"old.{name} AS _old_{at}" for at, name in enumerate(names)),
            *_RECORDED,
        )
    )


def _changing(both: Selection, made: Frames, shapes: Selection, windows: StepWindows) -> Selection:
    """Return the rows that a step makes of windows that operators can change.

    Such a window may lose all that it held, or not exist any more. So its shape is found by its
    name; and its starts are those of some keys, or need a row that is there.
    """
    named = f"window = _window AND start_us BETWEEN _from_us AND _to_us AND {_ENDS_IN_STRETCH}"
    kept = both.select(f"* EXCEPT ({', '.join(_RECORDED)})").join(shapes.alias("shape"), named)
    return kept.join(made.rows(windows.needs()).alias("start"), _WANTED, "LEFT SEMI")


def _revisions(
    both: Selection, columns: Sequence[Column], windows: StepWindows, *, some_held: bool
) -> Selection:
    """Return the rows to append: the windows that differ from their newest row.

    A window that waits for devices and is not due has no row yet.
    """
    held = "_held IS NOT NULL AND NOT coalesce(start_us + _size_us <= _promised, false)"
    ready = both.select(
        "*",
        *_values(columns, windows),
        *(f"{_NOW[name]} AS _now_{name}" for name in COMPARED),
        "coalesce(start_us + _size_us <= _frontier, false) AS _is_passed",
        f"{held if some_held else 'false'} AS _is_held",
        f"{'_due_under_log' if some_held else 'NULL'} AS _due_anyway",
    )
    same = [f"_value_{at} <=> _old_{at}" for at in range(len(columns))]
    same += [f"_now_{name} <=> _old_{name}" for name in COMPARED]
    is_open = f"coalesce(status = {_TENTATIVE}, false)"
    is_final = f"(status IS NOT NULL AND status <> {_TENTATIVE})"
    held = f"((_is_passed OR {is_final}) AND _is_held)"
    excluded, excluded_devices = (
        f"if({held}, _either{of}, _excluded{of})" for of in ("", "_devices")
    )
    names = "false" if windows.renamed.rows is None else "_at_window IS NOT NULL"
    names = f"(_old_names <> xxhash64({excluded}) AND ({_WAS_SHORT} OR {names}))"
    renamed = f"coalesce({is_final} AND _is_passed AND {names}, false)"
    differs = f"(NOT ({' AND '.join(same)}) OR {renamed})"
    passed = f"(_is_passed AND ({is_final} OR NOT _is_held))"
    after = status_after(passed=passed, differs=differs)
    tentative = f"{after} = {_TENTATIVE}"
    waits, held_back = (
        f"NOT coalesce(_now_end_us <= {due}, false)" for due in ("_due", "_due_anyway")
    )
    may_vanish = one_of("window", windows.changing) if windows.changing else "false"
    statuses = ", ".join(map(literal, STATUSES))
    record = {
        **{name: f"_now_{name}" if name in COMPARED else f"_{name}" for name in LAKE_RECORD},
        "excluded": f"if({tentative}, _missing, {excluded})",
        COUNTED[0]: f"if({tentative}, _missing_devices, 0)",
        COVERED: "start_us >= _since",
        COUNTED[1]: f"if({tentative}, 0, {excluded_devices})",
        "status": f"element_at(array({statuses}), {after} + 1)",
        "revision": "coalesce(_revision + 1, 0)",
    }
    return (
        ready.alias("old")
        .where(
            f"({differs} OR NOT ({after} <=> old.status)) "
            f"AND NOT ({held} AND NOT {is_open} AND {held_back}) "
            f"AND NOT (status IS NULL AND {tentative} AND {waits}) "
            f"AND (_devices IS NOT NULL OR {may_vanish})"
        )
        .select(
            *_IDENTITY,
            "_now_end_us AS end_us",
            *(f"_value_{at} AS {identifier(column.name)}" for at, column in enumerate(columns)),
            *(f"{value} AS {name}" for name, value in record.items()),
        )
    )


def _values(columns: Sequence[Column], windows: StepWindows) -> Iterator[str]:
    """Yield the columns of a partial, as SQL text; a window that holds nothing has the zero."""
    zeros = {
        window.name: dict(zip(window.fold.columns_named, window.fold.zero, strict=True))
        for window in windows.changing.values()
    }
    for at, column in enumerate(columns):
        value = f"_new_{at}"
        if zeros:
            value = f"if(_devices IS NULL, {_zero(column, zeros)}, {value})"
        yield f"{value} AS _value_{at}"


def _zero(column: Column, zeros: dict[str, dict[str, Any]]) -> str:
    """Return what a column holds of a window that holds nothing, as SQL text."""
    type_ = "DECIMAL(38, 0)" if column.op is Op.SUM else "BINARY" if column.binary else "BIGINT"
    cases = []
    for name, parts in zeros.items():
        value = parts.get(column.name)
        if value is not None:
            text = f"X'{value.hex()}'" if isinstance(value, bytes) else str(value)
            cases.append(f"WHEN {literal(name)} THEN CAST({text} AS {type_})")
    if not cases:
        return f"CAST(NULL AS {type_})"
    return f"(CASE window {' '.join(cases)} END)"


def read_columns(columns: Iterable[Column]) -> list[str]:
    """Return the columns of `windows` that `current` reads."""
    named = (column.name for column in columns)
    return [*_IDENTITY, "revision", "status", "excluded", "frontier", *COMPARED, *named]


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
    return [*COMPARED, *(identifier(column.name) for column in columns)]
