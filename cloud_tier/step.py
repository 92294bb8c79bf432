"""One micro-batch: join, frontier, windows, globals. Each part is a join or appends what differs.

    1 join the batch in itself and append it to `lattice`           one commit
    2 the frontier, from the merged promises and ticks
    3 windows: touched ones and those that F has passed; what
      differs is appended, with F in the same commit                at most one commit
    4 globals, where variables came in                              at most one commit

So a batch that dies between two commits is simply done again: what was appended to `lattice`
joins to the same, touched are the panes of all input rows, new or not, and F is recorded by the
commit that made windows final. Nothing here reads a clock or draws a random number, and all that
is known of earlier steps is in the tables and the `before` that the caller hands in.
"""

import json
from typing import NamedTuple

from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as sql

from cloud_tier import dynamic, merge, windows
from cloud_tier.frontier import Coverage, Listening, Promise, advance
from cloud_tier.plan import Plan
from cloud_tier.tables import PANE, PANE_DATE, PROMISE, TENTATIVE, TICK, VARIABLE


class Outcome(NamedTuple):
    """What a step did.

    Attributes:
        coverage: the frontier now, and over whom.
        heard: how many devices were ever heard.
        panes: how many pane rows came in, after the join inside the batch.
        variables: how many variable rows came in, likewise.
        windows: how many window rows were appended.
        globals: how many rows of dynamic folds were appended.
    """

    coverage: Coverage
    heard: int = 0
    panes: int = 0
    variables: int = 0
    windows: int = 0
    globals: int = 0


class Touched(NamedTuple):
    """What a batch brought: panes by stream, and the number of rows by kind."""

    panes_us: dict[int, set[int]]
    rows: dict[str, int]


def step(batch: DataFrame, batch_id: int, plan: Plan, before: int | None) -> Outcome:
    """Merge a batch of landing rows into the lake.

    Args:
        batch: rows of `landing`, perhaps none, perhaps rows that were merged before.
        batch_id: the streaming query's number for it; it changes nothing.
        plan: the program over the lake.
        before: the frontier that the last step returned, or `recorded_frontier` at a start.

    Returns:
        What was done. Its frontier is the next step's `before`.
    """
    del batch_id
    touched = append_joined(batch, plan)
    if not touched.rows:
        return Outcome(Coverage(before, (), ()))
    spark = batch.sparkSession
    coverage = merged_coverage(spark, plan, before)
    starts = windows.affected(
        plan.windows, touched.panes_us, before, coverage.frontier, plan.retain_us
    )
    return Outcome(
        coverage,
        len(coverage.expected),
        touched.rows.get(PANE, 0),
        touched.rows.get(VARIABLE, 0),
        append_windows(spark, plan, starts, coverage),
        append_globals(spark, plan) if VARIABLE in touched.rows else 0,
    )


def append_joined(batch: DataFrame, plan: Plan) -> Touched:
    """Join a batch in itself, append it to `lattice`, and return what it touched."""
    joined = merge.joined(batch, [part.name for part in plan.parts]).persist()
    try:
        touched = _touched(joined)
        if touched.rows:
            _append(merge.with_date(joined), plan.lake.lattice)
    finally:
        joined.unpersist()
    return touched


def merged_coverage(spark: SparkSession, plan: Plan, before: int | None) -> Coverage:
    """Return the frontier and the expected devices, from everything that was merged."""
    rows = _small(spark, plan, PROMISE, TICK)
    promises, ticks = [], []
    for row in rows.select("kind", "device", "low_us", "since_us", "received_us", "done").collect():
        (promises if row.kind == PROMISE else ticks).append(row)
    return advance(
        before,
        [Promise(row.device, row.low_us, bool(row.done), row.received_us) for row in promises],
        _listening(ticks),
        plan.roster,
        plan.dead_after_us,
    )


def append_windows(
    spark: SparkSession, plan: Plan, starts: windows.Starts, coverage: Coverage
) -> int:
    """Recompute the windows with these starts, append what differs, and return how many did."""
    if not starts:
        return 0
    lattice, written = _read(spark, plan.lake.lattice), _read(spark, plan.lake.windows)
    computed = windows.computed(lattice, plan.windows, plan.parts, starts)
    current = windows.current(written, plan.parts, starts)
    rows = windows.revisions(computed, current, plan.parts, coverage)
    return _append(rows, plan.lake.windows, json.dumps({"frontier": coverage.frontier}))


def append_globals(spark: SparkSession, plan: Plan) -> int:
    """Recompute the dynamic folds, append what differs, and return how many did."""
    if not plan.folds:
        return 0
    values = dynamic.values(_small(spark, plan, VARIABLE), plan.folds)
    current = dynamic.current(_read(spark, plan.lake.globals), plan.folds)
    return _append(dynamic.revisions(values, current), plan.lake.globals)


def recorded_frontier(spark: SparkSession, plan: Plan) -> int | None:
    """Return the frontier that the windows table records: what a query starts with.

    It is the greater of that in the newest commit that carries one and that in the rows which it
    made final; None is bottom.
    """
    history = spark.sql(f"DESCRIBE HISTORY delta.`{plan.lake.windows}`")
    told = history.where("userMetadata IS NOT NULL").orderBy(sql.desc("version"))
    newest = told.select("userMetadata").first()
    final = _read(spark, plan.lake.windows).where(sql.col("status") != TENTATIVE)
    greatest = final.agg(sql.max("frontier")).first()
    found = [json.loads(newest[0]).get("frontier")] if newest else []
    found += [greatest[0]] if greatest else []
    return max((frontier for frontier in found if frontier is not None), default=None)


def _touched(joined: DataFrame) -> Touched:
    panes_us: dict[int, set[int]] = {}
    rows: dict[str, int] = {}
    for kind, stream, pane_us, count in (
        joined.groupBy("kind", "stream", "pane_us").count().collect()
    ):
        rows[kind] = rows.get(kind, 0) + count
        if kind == PANE:
            panes_us.setdefault(stream, set()).add(pane_us)
    return Touched(panes_us, rows)


def _small(spark: SparkSession, plan: Plan, *kinds: str) -> DataFrame:
    """Return the merged entries of these kinds, which stand in one partition of `lattice`."""
    names = [part.name for part in plan.parts]
    stored = _read(spark, plan.lake.lattice).where(sql.col(PANE_DATE) == merge.day(0))
    # Everything that follows groups by the device and more, so the rows move once.
    rows = stored.where(sql.col("kind").isin(*kinds)).repartition("device")
    return merge.latest(merge.joined(rows, names), names)


def _listening(ticks: list[Row]) -> Listening | None:
    if not ticks:
        return None
    return Listening(max(t.low_us for t in ticks), max(t.since_us for t in ticks))


def _read(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("delta").load(path)


def _append(rows: DataFrame, path: str, metadata: str = "") -> int:
    counted = Observation()
    observed = rows.observe(counted, sql.count(sql.lit(1)).alias("rows"))
    writer = observed.write.format("delta").mode("append")
    if metadata:
        writer = writer.option("userMetadata", metadata)
    writer.save(path)
    return int(counted.get["rows"])
