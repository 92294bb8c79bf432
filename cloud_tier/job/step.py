"""One micro-batch: join, frontier, windows, globals. Each part is a join or appends what differs.

    1 join the batch in itself and append it to `lattice`           one commit
    2 the frontier, from all promises, ticks and words on members
      that were merged
    3 windows: touched ones and those that F has passed; what
      differs is appended, with F in the same commit                at most one commit
    4 globals, where variables or words on members came in          at most one commit

So a batch that dies between two commits is simply done again: what was appended to `lattice`
joins to the same, touched are the panes of all input rows, new or not, and F is recorded by the
commit that made windows final. Nothing here reads a clock or draws a random number. What a step
must know of earlier ones is in the tables; `Known` is the small part of it that the driver keeps
between steps, replaced only after the commits returned, and read back at every start of a query.
"""

import json
from types import MappingProxyType
from typing import NamedTuple

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql

from cloud_tier.job import dynamic, merge, windows
from cloud_tier.lake.tables import MEMBER, PANE, PANE_DATE, PROMISE, TENTATIVE, TICK, VARIABLE
from cloud_tier.plan import Plan
from crdts import Frontier, Member, Membership, Version
from crdts.frontier import Promise
from lasp_edge.protocol.frontier import Coverage, Listening, Liveness, Tick, advance


class Known(NamedTuple):
    """What is merged already, as far as the driver needs it.

    Attributes:
        frontier: F; None is bottom.
        heard: every promise and tick, and who was retired.
        said: what the newest rows of `globals` say.
    """

    frontier: int | None
    heard: Liveness
    said: dynamic.Current = MappingProxyType({})


class Outcome(NamedTuple):
    """What a step did.

    Attributes:
        known: what the next step is given.
        coverage: the frontier now, and over whom.
        rows: how many rows came in, after the join inside the batch.
        panes: how many of them are pane rows.
        variables: how many of them are rows of variables or words on members.
        windows: how many window rows were appended.
        globals: how many rows of dynamic folds were appended.
    """

    known: Known
    coverage: Coverage
    rows: int = 0
    panes: int = 0
    variables: int = 0
    windows: int = 0
    globals: int = 0


class Brought(NamedTuple):
    """What a batch brought: panes by stream, rows by kind, and what they say of devices."""

    panes_us: dict[int, set[int]]
    rows: dict[str, int]
    heard: Liveness


def step(batch: DataFrame, batch_id: int, plan: Plan, known: Known) -> Outcome:
    """Merge a batch of landing rows into the lake.

    Args:
        batch: rows of `landing`, perhaps none, perhaps rows that were merged before.
        batch_id: the streaming query's number for it; it changes nothing.
        plan: the program over the lake.
        known: what the last step returned, or `recalled` at a start.
    """
    del batch_id
    brought = append_joined(batch, plan)
    heard = known.heard.joined(brought.heard)
    coverage = advance(known.frontier, heard, plan.roster, plan.dead_after_us)
    starts = windows.affected(
        plan.windows, brought.panes_us, known.frontier, coverage.frontier, plan.retain_us
    )
    spark, said = batch.sparkSession, known.said
    appended = append_windows(spark, plan, starts, coverage)
    variables = brought.rows.get(VARIABLE, 0) + brought.rows.get(MEMBER, 0)
    news = append_globals(spark, plan, heard.membership, said) if variables else {}
    return Outcome(
        Known(coverage.frontier, heard, {**said, **news} if news else said),
        coverage,
        sum(brought.rows.values()),
        brought.rows.get(PANE, 0),
        variables,
        appended,
        len(news),
    )


def append_joined(batch: DataFrame, plan: Plan) -> Brought:
    """Join a batch in itself, append it to `lattice`, and return what it brought."""
    joined = merge.joined(batch, [part.name for part in plan.parts]).persist()
    try:
        brought = _brought(joined)
        if brought.rows:
            _append(merge.with_date(joined), plan.lake.lattice)
    finally:
        joined.unpersist()
    return brought


def append_windows(
    spark: SparkSession, plan: Plan, starts: windows.Starts, coverage: Coverage
) -> int:
    """Recompute the windows with these starts, append what differs, and return how many did."""
    if not starts:
        return 0
    lattice, written = read(spark, plan.lake.lattice), read(spark, plan.lake.windows)
    computed = windows.computed(lattice, plan.windows, plan.parts, starts)
    current = windows.current(written, plan.parts, starts)
    rows = windows.revisions(computed, current, plan.parts, coverage)
    return _append(rows, plan.lake.windows, json.dumps({"frontier": coverage.frontier}))


def append_globals(
    spark: SparkSession, plan: Plan, membership: Membership, said: dynamic.Current
) -> dynamic.Current:
    """Recompute the dynamic folds, append what differs, and return what was appended.

    Args:
        spark: a session.
        plan: the program over the lake.
        membership: who was retired.
        said: what the newest rows say.
    """
    if not plan.folds:
        return {}
    standing = merge.standing(_stored(spark, plan, VARIABLE))
    entries = merge.joined(standing, [part.name for part in plan.parts])
    values = dynamic.values(entries, plan.folds, membership)
    current = dynamic.frame_of(spark, said)
    rows = dynamic.revisions(values, current, plan.folds, membership).persist()
    try:
        return dynamic.said(rows) if _append(rows, plan.lake.globals) else {}
    finally:
        rows.unpersist()


def recalled(spark: SparkSession, plan: Plan) -> Known:
    """Return what the tables know: what a query starts with."""
    names = [part.name for part in plan.parts]
    words = merge.joined(_stored(spark, plan, PROMISE, TICK), names)
    heard = _heard(merge.latest(words, names)).joined(_heard(_stored(spark, plan, MEMBER)))
    said = dynamic.current(read(spark, plan.lake.globals), plan.folds) if plan.folds else {}
    return Known(recorded_frontier(spark, plan), heard, said)


def recorded_frontier(spark: SparkSession, plan: Plan) -> int | None:
    """Return the frontier that the windows table records; None is bottom.

    It is the greater of that in the newest commit that carries one and that in the rows which it
    made final.
    """
    history = spark.sql(f"DESCRIBE HISTORY delta.`{plan.lake.windows}`")
    told = history.where("userMetadata LIKE '{\"frontier\"%'").orderBy(sql.desc("version"))
    newest = told.select("userMetadata").first()
    final = read(spark, plan.lake.windows).where(f"status != '{TENTATIVE}'")
    greatest = final.agg(sql.max("frontier")).first()
    found = [json.loads(newest[0])["frontier"]] if newest else []
    found += [greatest[0]] if greatest else []
    return max((frontier for frontier in found if frontier is not None), default=None)


def read(spark: SparkSession, path: str) -> DataFrame:
    """Return a table of the lake."""
    return spark.read.format("delta").load(path)


def _brought(joined: DataFrame) -> Brought:
    panes_us: dict[int, set[int]] = {}
    rows: dict[str, int] = {}
    counted = joined.groupBy("kind", "stream", "pane_us").count()
    for kind, stream, pane_us, count in counted.collect():
        rows[kind] = rows.get(kind, 0) + count
        if kind == PANE:
            panes_us.setdefault(stream, set()).add(pane_us)
    return Brought(panes_us, rows, _heard(joined))


def _heard(rows: DataFrame) -> Liveness:
    """Return the promises, ticks and words on members among rows."""
    promises = Frontier()
    ticks: dict[str, Tick] = {}
    membership = Membership()
    for row in rows.where(f"kind IN ('{PROMISE}', '{TICK}', '{MEMBER}')").select(*_SAID).collect():
        version = Version(row.incarnation, row.nonce, row.seq)
        if row.kind == TICK:
            tick = Tick(row.seq, Listening(row.low_us, row.since_us))
            ticks[row.device] = max(tick, ticks.get(row.device, tick))
        elif row.kind == MEMBER:
            membership |= Membership({row.device: Member(row.changed, row.done, version)})
        else:
            promise = Promise(version, row.low_us, bool(row.done), row.received_us)
            promises |= Frontier({row.device: promise})
    return Liveness(promises, ticks, membership)


_SAID = (
    "kind",
    "device",
    "incarnation",
    "nonce",
    "seq",
    "low_us",
    "since_us",
    "received_us",
    "done",
    "changed",
)


def _stored(spark: SparkSession, plan: Plan, *kinds: str) -> DataFrame:
    """Return the rows of kinds that are not panes: they are in one partition of `lattice`."""
    wanted = ", ".join(f"'{kind}'" for kind in kinds)
    stored = read(spark, plan.lake.lattice).where(f"{PANE_DATE} = {merge.day(0)}")
    # Everything that follows groups by the device and more, so the rows move once.
    return stored.where(f"kind IN ({wanted})").repartition("device")


def _append(rows: DataFrame, path: str, metadata: str = "") -> int:
    counted = Observation()
    observed = rows.observe(counted, sql.count(sql.lit(1)).alias("rows"))
    writer = observed.write.format("delta").mode("append")
    if metadata:
        writer = writer.option("userMetadata", metadata)
    writer.save(path)
    return int(counted.get["rows"])
