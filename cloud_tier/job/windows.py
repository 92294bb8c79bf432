"""Sliding windows from panes: recompute what may have changed, append what did.

A window's partial is the combination of its panes over replicas, devices and time, so computing it
again is always right and never counts anything twice. A row is appended where the result differs
from the current one:

    revision   0, 1, 2, ... for each (window, key, start); the current row has the greatest
    status     tentative, final or revised (`lasp_edge.protocol.status`)

Differs means: the status, a column of the partial, or how many devices are in. The last is not
implied: a further device may leave a minimum as it was.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from pyspark.sql import DataFrame

from cloud_tier.job import merge
from cloud_tier.job.combination import aggregates, combined, pooled
from cloud_tier.lake.sqltext import any_of, identifier, literal, one_of, within, within_days
from cloud_tier.lake.tables import PANE
from lasp_edge.folds.columns import Column
from lasp_edge.language.declarations import Window
from lasp_edge.protocol import spans
from lasp_edge.protocol.frontier import Coverage
from lasp_edge.protocol.lake_columns import PANE_DATE
from lasp_edge.protocol.spans import Span
from lasp_edge.protocol.status import STATUSES, TRANSITIONS, Transition

Starts = Mapping[str, Sequence[Span]]
"""Which starts of each window to look at, by the window's name."""

_IDENTITY = ("window", "key", "start_us")


def affected(
    windows: Iterable[Window],
    panes_us: Mapping[int, Iterable[int]],
    before: int | None,
    after: int | None,
    retain_us: int,
) -> Starts:
    """Return the starts of the windows that were touched or that the frontier has passed.

    The floor is that of the frontier before, so that whatever F passes becomes final, however far
    it moves at once.

    Args:
        windows: the program's windows.
        panes_us: the touched panes by stream.
        before: the frontier so far; None is bottom.
        after: the frontier now.
        retain_us: how far below the frontier the floor lies.
    """
    floor_us = None if before is None else before - retain_us
    starts = {}
    for window in windows:
        wanted = spans.touched(window, panes_us.get(window.stream, ()))
        wanted += spans.passed(window, before, after)
        starts[window.name] = spans.joined(spans.above(wanted, floor_us))
    return {name: wanted for name, wanted in starts.items() if wanted}


def computed(
    lattice: DataFrame, windows: Iterable[Window], columns: Sequence[Column], starts: Starts
) -> DataFrame:
    """Return the windows with these starts as their panes give them now.

    Columns: window, key, start_us, end_us, one for each part, devices_in, stream.
    """
    looked_at = [window for window in windows if window.name in starts]
    names = [identifier(column.name) for column in columns]
    panes = merge.joined(
        lattice.where(_panes(looked_at, starts)), [column.name for column in columns]
    )
    slide_us = _by_stream(looked_at, lambda window: window.slide_us)
    least_us = f"pane_us - {_by_stream(looked_at, lambda window: window.size_us - window.span_us)}"
    first_us = f"({least_us}) + pmod(-({least_us}), {slide_us})"
    last_us = f"pane_us - pmod(pane_us, {slide_us})"
    every_start = f"explode(sequence({first_us}, {last_us}, {slide_us})) AS start_us"
    wanted = _by_stream(looked_at, lambda window: within("start_us", starts[window.name]))
    placed = panes.selectExpr("stream", "key", "device", every_start, *names).where(wanted)
    keys = ("stream", "key", "start_us")
    devices = placed.groupBy(*keys, "device").agg(*pooled(columns))
    devices_in = aggregates("CAST(count(1) AS INT) AS devices_in")
    fleet = devices.groupBy(*keys).agg(*combined(columns), *devices_in)
    return fleet.selectExpr(
        f"{_by_stream(looked_at, lambda window: literal(window.name))} AS window",
        "key",
        "start_us",
        f"start_us + {_by_stream(looked_at, lambda window: window.size_us)} AS end_us",
        *names,
        "devices_in",
        "stream",
    )


def current(windows: DataFrame, columns: Sequence[Column], starts: Starts) -> DataFrame:
    """Return the newest revision of the windows with these starts, `status` as a number."""
    wanted = any_of(
        f"(window = {literal(name)} AND {within('start_us', spans_)})"
        for name, spans_ in starts.items()
    )
    number = " ".join(f"WHEN {literal(status)} THEN {n}" for n, status in enumerate(STATUSES))
    newest = aggregates(
        "max(revision) AS revision",
        f"max_by(CASE status {number} END, revision) AS status",
        *(f"max_by({name}, revision) AS {name}" for name in _compared(columns)),
    )
    return windows.where(wanted).groupBy(*_IDENTITY).agg(*newest)


def revisions(
    computed: DataFrame, current: DataFrame, columns: Sequence[Column], coverage: Coverage
) -> DataFrame:
    """Return the rows to append: the computed windows that differ from the current ones.

    Args:
        computed: what `computed` gives.
        current: what `current` gives for the same starts.
        columns: the program's.
        coverage: the frontier and the devices to record.
    """
    both = computed.alias("new").join(current.alias("old"), list(_IDENTITY), "left")
    differs = any_of(f"NOT (new.{name} <=> old.{name})" for name in _compared(columns))
    frontier = "CAST(NULL AS BIGINT)" if coverage.frontier is None else f"{coverage.frontier}L"
    after = status_after(passed=f"coalesce(new.end_us <= {frontier}, false)", differs=differs)
    statuses = ", ".join(map(literal, STATUSES))
    return both.where(f"{differs} OR NOT ({after} <=> old.status)").selectExpr(
        *_IDENTITY,
        "new.end_us",
        *(f"new.{identifier(column.name)}" for column in columns),
        "new.devices_in",
        f"{len(coverage.expected)} AS devices_expected",
        f"{literal(','.join(coverage.excluded))} AS excluded",
        f"element_at(array({statuses}), {after} + 1) AS status",
        "coalesce(old.revision + 1, 0) AS revision",
        f"{frontier} AS frontier",
        "new.stream",
    )


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


def _by_stream(windows: Iterable[Window], value: Callable[[Window], object]) -> str:
    """Return each stream's value, for rows of these streams only."""
    cases = " ".join(f"WHEN {window.stream}L THEN {value(window)}" for window in windows)
    return f"(CASE stream {cases} END)"


def _panes(windows: Iterable[Window], starts: Starts) -> str:
    """Return which lattice rows the windows need, as conditions by which Delta skips files."""
    needed = [(window.stream, spans.panes_of(window, starts[window.name])) for window in windows]
    streams = any_of(
        f"(stream = {stream}L AND {within('pane_us', ranges)})" for stream, ranges in needed
    )
    dated = within_days(PANE_DATE, spans.days(span for _, ranges in needed for span in ranges))
    return f"{one_of('kind', [PANE])} AND {dated} AND {streams}"
