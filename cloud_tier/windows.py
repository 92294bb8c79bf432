"""Sliding windows from panes: recompute what may have changed, append what did.

A window's partial is the combination of its panes over replicas, devices and time, so computing it
again is always right and never counts anything twice. A row is appended where the result differs
from the current one:

    revision   0, 1, 2, ... for each (window, key, start); the current row has the greatest
    status     tentative while F is before the end; final once, when F has passed it (at once, if
               its first reading comes after that); revised whenever a later result differs

Differs means: the status, an integer of the partial, or how many devices are in.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from cloud_tier import merge, spans
from cloud_tier.frontier import Coverage
from cloud_tier.plan import Part, WindowPlan
from cloud_tier.spans import Span
from cloud_tier.tables import FINAL, PANE, PANE_DATE, REVISED, TENTATIVE

Starts = Mapping[str, Sequence[Span]]
"""Which starts of each window to look at, by the window's name."""

_STATUS = (TENTATIVE, FINAL, REVISED)
_IDENTITY = ("window", "key", "start_us")


def affected(
    windows: Iterable[WindowPlan],
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
    lattice: DataFrame, windows: Iterable[WindowPlan], parts: Sequence[Part], starts: Starts
) -> DataFrame:
    """Return the windows with these starts as their panes give them now.

    Columns: window, key, start_us, end_us, one for each part, devices_in, stream.
    """
    plans = [window for window in windows if window.name in starts]
    names = [part.name for part in parts]
    panes = merge.joined(lattice.where(_panes(plans, starts)), names)
    slide_us = _by_stream(plans, lambda window: sql.lit(window.slide_us))
    least_us = sql.col("pane_us") + _by_stream(
        plans, lambda window: sql.lit(window.span_us - window.size_us)
    )
    first_us = least_us + sql.pmod(-least_us, slide_us)
    last_us = sql.col("pane_us") - sql.pmod("pane_us", slide_us)
    start_us = sql.explode(sql.sequence(first_us, last_us, slide_us)).alias("start_us")
    placed = panes.select("stream", "key", "device", start_us, *names)
    wanted = _by_stream(plans, lambda window: merge.within("start_us", starts[window.name]))
    keys = ("stream", "key", "start_us")
    devices = placed.where(wanted).groupBy(*keys, "device").agg(*merge.combined(parts))
    fleet = devices.groupBy(*keys).agg(
        *merge.combined(parts), sql.count(sql.lit(1)).cast("int").alias("devices_in")
    )
    size_us = _by_stream(plans, lambda window: sql.lit(window.size_us))
    return fleet.select(
        _by_stream(plans, lambda window: sql.lit(window.name)).alias("window"),
        "key",
        "start_us",
        (sql.col("start_us") + size_us).alias("end_us"),
        *names,
        "devices_in",
        "stream",
    )


def current(windows: DataFrame, parts: Sequence[Part], starts: Starts) -> DataFrame:
    """Return the newest revision of the windows with these starts, `status` as a number."""
    wanted = [
        (sql.col("window") == name) & merge.within("start_us", spans_)
        for name, spans_ in starts.items()
    ]
    newest = [sql.max_by(name, "revision").alias(name) for name in _compared(parts)]
    number = sql.coalesce(*(sql.when(sql.col("status") == s, n) for n, s in enumerate(_STATUS)))
    return (
        windows.where(_any(wanted))
        .groupBy(*_IDENTITY)
        .agg(
            sql.max("revision").alias("revision"),
            sql.max_by(number, "revision").alias("status"),
            *newest,
        )
    )


def revisions(
    computed: DataFrame, current: DataFrame, parts: Sequence[Part], coverage: Coverage
) -> DataFrame:
    """Return the rows to append: the computed windows that differ from the current ones.

    Args:
        computed: what `computed` gives.
        current: what `current` gives for the same starts.
        parts: the part columns.
        coverage: the frontier and the devices to record.
    """
    both = computed.alias("new").join(current.alias("old"), list(_IDENTITY), "left")
    differs = _any(
        ~sql.col(f"new.{name}").eqNullSafe(sql.col(f"old.{name}")) for name in _compared(parts)
    )
    before = sql.col("old.status")
    open_ = before.isNull() | (before == 0)
    passed = sql.lit(coverage.frontier).cast("long") >= sql.col("new.end_us")
    after = sql.when(open_, sql.when(passed, 1).otherwise(0)).otherwise(
        sql.when(differs, 2).otherwise(before)
    )
    revision = sql.coalesce(sql.col("old.revision") + 1, sql.lit(0))
    return both.where(differs | ~after.eqNullSafe(before)).select(
        *_IDENTITY,
        "new.end_us",
        *(f"new.{part.name}" for part in parts),
        "new.devices_in",
        sql.lit(len(coverage.expected)).cast("int").alias("devices_expected"),
        sql.lit(",".join(coverage.excluded)).alias("excluded"),
        sql.element_at(sql.array(*map(sql.lit, _STATUS)), after + 1).alias("status"),
        revision.cast("int").alias("revision"),
        sql.lit(coverage.frontier).cast("long").alias("frontier"),
        "new.stream",
    )


def _compared(parts: Iterable[Part]) -> list[str]:
    return ["end_us", "devices_in", "stream", *(part.name for part in parts)]


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions)


def _by_stream(windows: Iterable[WindowPlan], value: Callable[[WindowPlan], Column]) -> Column:
    """Return each stream's value, for rows of these streams only."""
    return sql.coalesce(
        *(sql.when(sql.col("stream") == window.stream, value(window)) for window in windows)
    )


def _panes(windows: Iterable[WindowPlan], starts: Starts) -> Column:
    """Return which lattice rows the windows need, in words by which Delta leaves files unread."""
    needed = {window: spans.panes_of(window, starts[window.name]) for window in windows}
    streams = _any(
        (sql.col("stream") == window.stream) & merge.within("pane_us", ranges)
        for window, ranges in needed.items()
    )
    days = spans.days(span for ranges in needed.values() for span in ranges)
    dated = _any(sql.col(PANE_DATE).between(merge.day(d.first), merge.day(d.last)) for d in days)
    return (sql.col("kind") == PANE) & dated & streams
