"""One micro-batch: join, frontier, windows, globals. Each part is a join or appends what differs.

    1 join the batch in itself and append it to `lattice`           one commit
    2 the frontier, from all promises, ticks and member commands
      that were merged
    3 windows: touched ones and those that F has passed; what
      differs is appended, with F in the same commit                at most one commit
    4 globals, where variables or member commands came in          at most one commit

So a batch that dies between two commits is simply done again: what was appended to `lattice`
joins to the same, touched are the panes of all input rows, new or not, and F is recorded by the
commit that made windows final. Nothing here reads a clock or draws a random number. What a step
must know of earlier ones is in the tables; `MergedState` is the small part of it that the driver
keeps between steps, replaced only after the commits returned, and read back at every start of a
query.
"""

import json
from types import MappingProxyType
from typing import NamedTuple

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql

from cloud_tier.job import dynamic, merge, windows
from cloud_tier.job.job import Job
from cloud_tier.lake.sqltext import day, identifier, one_of
from cloud_tier.lake.tables import MEMBER, PANE, PROMISE, TICK, VARIABLE
from crdts import Frontier, Member, Membership, Version
from crdts.frontier import Promise
from lasp_edge.protocol.frontier import (
    NOTHING_HEARD,
    Coverage,
    Listening,
    Liveness,
    Tick,
    advance,
)
from lasp_edge.protocol.lake_columns import LANDED, PANE_DATE
from lasp_edge.protocol.status import TENTATIVE


class MergedState(NamedTuple):
    """What is merged already, as far as the driver needs it.

    Attributes:
        frontier: F; None is bottom.
        liveness: every promise and tick, and who was retired.
        current_rows: the newest rows of `globals`.
    """

    frontier: int | None
    liveness: Liveness
    current_rows: dynamic.CurrentRows = MappingProxyType({})


class Outcome(NamedTuple):
    """What a step did.

    Attributes:
        known: what the next step is given.
        coverage: the frontier now, and over whom.
        rows: how many rows came in, after the join inside the batch.
        panes: how many of them are pane rows.
        variables: how many of them are rows of variables or member commands.
        windows: how many window rows were appended.
        globals: how many rows of dynamic folds were appended.
    """

    known: MergedState
    coverage: Coverage
    rows: int = 0
    panes: int = 0
    variables: int = 0
    windows: int = 0
    globals: int = 0


class BatchSummary(NamedTuple):
    """What a batch holds: its panes by stream, its rows by kind, and what it tells of devices."""

    panes_us: dict[int, set[int]]
    rows: dict[str, int]
    liveness: Liveness


def step(batch: DataFrame, batch_id: int, job: Job, known: MergedState) -> Outcome:
    """Merge a batch of landing rows into the lake.

    Args:
        batch: rows of `landing`, perhaps none, perhaps rows that were merged before.
        batch_id: the streaming query's number for it; it changes nothing.
        job: the program over the lake.
        known: what the last step returned, or `recalled` at a start.
    """
    del batch_id
    summary = append_joined(batch, job)
    liveness = known.liveness.joined(summary.liveness)
    coverage = advance(known.frontier, liveness, job.roster, job.dead_after_us)
    starts = windows.affected(
        job.windows, summary.panes_us, known.frontier, coverage.frontier, job.retain_us
    )
    spark, rows = batch.sparkSession, known.current_rows
    appended = append_windows(spark, job, starts, coverage)
    variables = summary.rows.get(VARIABLE, 0) + summary.rows.get(MEMBER, 0)
    news = append_globals(spark, job, liveness.membership, rows) if variables else {}
    return Outcome(
        MergedState(coverage.frontier, liveness, {**rows, **news} if news else rows),
        coverage,
        sum(summary.rows.values()),
        summary.rows.get(PANE, 0),
        variables,
        appended,
        len(news),
    )


def append_joined(batch: DataFrame, job: Job) -> BatchSummary:
    """Join a batch in itself, append it to `lattice`, and return what it holds."""
    joined = merge.joined(batch, job.names).persist()
    try:
        summary = _summary(joined)
        if summary.rows:
            _append(merge.with_date(joined), job.lake.lattice)
    finally:
        joined.unpersist()
    return summary


def append_windows(
    spark: SparkSession, job: Job, starts: windows.Starts, coverage: Coverage
) -> int:
    """Recompute the windows with these starts, append what differs, and return how many did."""
    if not starts:
        return 0
    lattice, written = read(spark, job.lake.lattice), read(spark, job.lake.windows)
    computed = windows.computed(lattice, job.windows, job.columns, starts)
    current = windows.current(written, job.columns, starts)
    rows = windows.revisions(computed, current, job.columns, coverage)
    return _append(rows, job.lake.windows, json.dumps({"frontier": coverage.frontier}))


def append_globals(
    spark: SparkSession, job: Job, membership: Membership, before: dynamic.CurrentRows
) -> dynamic.CurrentRows:
    """Recompute the dynamic folds, append what differs, and return what was appended.

    Args:
        spark: a session.
        job: the program over the lake.
        membership: who was retired.
        before: the newest rows of `globals` so far.
    """
    if not job.folds:
        return {}
    standing = merge.standing(_stored(spark, job, VARIABLE))
    entries = merge.joined(standing, job.names)
    values = dynamic.values(entries, job.folds, membership)
    current = dynamic.frame_of(spark, before)
    rows = dynamic.revisions(values, current, job.folds, membership).persist()
    try:
        return dynamic.current_rows(rows) if _append(rows, job.lake.globals) else {}
    finally:
        rows.unpersist()


def recalled(spark: SparkSession, job: Job) -> MergedState:
    """Return what the tables know: what a query starts with."""
    clocks = merge.joined(_stored(spark, job, PROMISE, TICK), job.names)
    newest = _liveness(merge.latest(clocks, job.names))
    liveness = newest.joined(_liveness(_stored(spark, job, MEMBER)))
    rows = dynamic.current(read(spark, job.lake.globals), job.folds) if job.folds else {}
    return MergedState(recorded_frontier(spark, job), liveness, rows)


def recorded_frontier(spark: SparkSession, job: Job) -> int | None:
    """Return the frontier that the windows table records; None is bottom.

    It is the greater of that in the newest commit that carries one and that in the rows which it
    made final.
    """
    history = spark.sql(f"DESCRIBE HISTORY delta.{identifier(job.lake.windows)}")
    told = history.where("userMetadata LIKE '{\"frontier\"%'").orderBy(sql.desc("version"))
    newest = told.select("userMetadata").first()
    final = read(spark, job.lake.windows).where(f"NOT ({one_of('status', [TENTATIVE])})")
    greatest = final.agg(sql.max("frontier")).first()
    found = [json.loads(newest[0])["frontier"]] if newest else []
    found += [greatest[0]] if greatest else []
    return max((frontier for frontier in found if frontier is not None), default=None)


def read(spark: SparkSession, path: str) -> DataFrame:
    """Return a table of the lake."""
    return spark.read.format("delta").load(path)


def _summary(joined: DataFrame) -> BatchSummary:
    panes_us: dict[int, set[int]] = {}
    rows: dict[str, int] = {}
    counted = joined.groupBy("kind", "stream", "pane_us").count()
    for kind, stream, pane_us, count in counted.collect():
        rows[kind] = rows.get(kind, 0) + count
        if kind == PANE:
            panes_us.setdefault(stream, set()).add(pane_us)
    tells = rows.keys() & {PROMISE, TICK, MEMBER}
    return BatchSummary(panes_us, rows, _liveness(joined) if tells else NOTHING_HEARD)


def _liveness(rows: DataFrame) -> Liveness:
    """Return the promises, ticks and member commands among rows."""
    promises = Frontier()
    ticks: dict[str, Tick] = {}
    membership = Membership()
    telling = rows.where(one_of("kind", (PROMISE, TICK, MEMBER)))
    for row in telling.select(*LANDED).collect():
        version = Version(row.incarnation, row.nonce, row.seq)
        if row.kind == TICK:
            tick = Tick(row.seq, Listening(row.now_us, row.since_us))
            ticks[row.lander] = max(tick, ticks.get(row.lander, tick))
        elif row.kind == MEMBER:
            membership |= Membership({row.device: Member(row.control, row.retired, version)})
        else:
            promise = Promise(version, row.low_us, bool(row.done), row.received_us)
            promises |= Frontier({row.device: promise})
    return Liveness(promises, ticks, membership)


def _stored(spark: SparkSession, job: Job, *kinds: str) -> DataFrame:
    """Return the rows of kinds that are not panes: they are in one partition of `lattice`."""
    stored = read(spark, job.lake.lattice).where(f"{PANE_DATE} = {day(0)}")
    # Everything that follows groups by the device and more, so the rows move once.
    return stored.where(one_of("kind", kinds)).repartition("device")


def _append(rows: DataFrame, path: str, metadata: str = "") -> int:
    counted = Observation()
    observed = rows.observe(counted, sql.count(sql.lit(1)).alias("rows"))
    writer = observed.write.format("delta").mode("append")
    if metadata:
        writer = writer.option("userMetadata", metadata)
    writer.save(path)
    return int(counted.get["rows"])
