"""The lattice join and the windows as queries, beside what Spark does without them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cloud_tier.job import merge, windows
from cloud_tier.job.control import ControlState
from cloud_tier.job.finality import MissingDevices, StepFinality
from cloud_tier.job.formed import StepWindows
from cloud_tier.job.frames import Frames
from cloud_tier.job.job import Job
from cloud_tier.job.starts import RecomputedStarts
from cloud_tier.lake.tables import LakeTables
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.frontier import AwaitedDevices, Coverage
from lasp_edge.protocol.lake_columns import LANDED
from lasp_edge.protocol.spans import EVERYTHING
from simulations.benchmarks.cloud_rows import BEGIN_US, SPAN_US, greenhouse
from simulations.benchmarks.measure import Line
from simulations.benchmarks.measure_spark import Cpu, beside, least, written

ROUNDS = 3
WARM_S = 100
"""CPU seconds that the rounds of each way take at least: the JVM compiles Spark that long."""
DEVICES = 200
HZ = 10
"""Readings of a device in a second."""
_STEP = 7_919
"""A prime: multiples of it modulo a number of rows shuffle them."""
_FILLED: Mapping[str, str] = {
    "kind": "'pane'",
    "key": "concat('room ', device_number % 7)",
    "device": "concat('pi-', device_number)",
    "incarnation": "1L",
    "nonce": "7L",
    "received_us": f"{BEGIN_US}L",
    "lander": "''",
    "shard": "0L",
}


def pane_rows(rows: DataFrame, made: Plan, **columns: str) -> DataFrame:
    """Return rows of `landing` from rows with a `device_number` and further columns as SQL."""
    lake = {**dict.fromkeys(LANDED, "NULL"), **_FILLED}
    lake |= {"stream": f"{made.windows['by_room'].stream}L", **columns}
    types = {"long": "BIGINT", "string": "STRING", "boolean": "BOOLEAN"}
    fields = [f"CAST({lake[name]} AS {types[kind]}) AS {name}" for name, kind in LANDED.items()]
    parts = [f"CAST({columns[name]} AS BIGINT) AS {name}" for name in made.columns]
    return rows.selectExpr(*fields, *parts)


def join_lines(spark: SparkSession, folder: Path, rows: int) -> Iterator[Line]:
    """Yield what it costs to join entries of which each is there three times, shuffled."""
    made, path = greenhouse(), str(folder / "entries")
    entry = f"CAST((id * {_STEP} % {rows}) div 3 AS BIGINT)"
    numbered = spark.range(rows).selectExpr("id", f"{entry} AS entry")
    numbered = numbered.selectExpr("*", f"entry % {DEVICES} AS device_number")
    pane_us = f"{BEGIN_US} + entry div {DEVICES} * {SPAN_US}"
    found = pane_rows(
        numbered, made, pane_us=pane_us, seq="id + 1", count="id % 60 + 1", total_q="id % 99991"
    )
    found.write.parquet(path)
    stored, names, cpu = spark.read.parquet(path), list(made.columns), Cpu(spark)
    greatest = dict.fromkeys(("seq", "received_us", *names), "max")
    ours_s = least(cpu, lambda: written(merge.joined_panes(stored, names)), ROUNDS, WARM_S)
    bare = stored.groupBy(*merge.PANE_IDENTITY)
    bare_s = least(cpu, lambda: written(bare.agg(greatest)), ROUNDS, WARM_S)
    what = f"join of {rows:,} entry rows, each entry three times"
    yield from beside(what, ours_s, "max, group by", bare_s, 1.3)


def window_lines(spark: SparkSession, folder: Path, events: int) -> Iterator[Line]:
    """Yield what windows of 60 s, one every 10 s, cost from stored panes and from readings."""
    made, cpu = greenhouse(), Cpu(spark)
    time_us = f"{BEGIN_US} + id div {DEVICES} * {1_000_000 // HZ}"
    read = spark.range(events).selectExpr(
        f"id % {DEVICES} AS device_number",
        f"{time_us} AS time_us",
        f"concat('room ', id % {DEVICES} % 7) AS key",
        "id * 31 % 9973 AS value_q",
    )
    read.write.parquet(str(folder / "events"))
    stored = spark.read.parquet(str(folder / "events"))
    panes = stored.selectExpr("*", f"time_us div {SPAN_US} * {SPAN_US} AS pane_us")
    panes = panes.groupBy("device_number", "pane_us").agg({"value_q": "sum", "time_us": "count"})
    columns = {"count": "`count(time_us)`", "total_q": "`sum(value_q)`", "pane_us": "pane_us"}
    lake = LakeTables(folder / "panes")
    lake.create(made.columns)
    held = merge.with_date(pane_rows(panes, made, seq="1", **columns), made.windows.values())
    held.write.format("delta").mode("append").save(lake.lattice)
    ours: dict[Any, Any] = {}
    theirs: dict[Any, Any] = {}
    ours_s = least(cpu, lambda: ours.update(_from_panes(spark, made, lake)), ROUNDS, WARM_S)
    theirs_s = least(cpu, lambda: theirs.update(_from_events(stored)), ROUNDS, WARM_S)
    note = "the same results" if ours == theirs else "THE RESULTS DIFFER"
    what = f"windows over {events:,} readings of {DEVICES} devices, {HZ} a second"
    yield from beside(what, ours_s, "Spark window()", theirs_s, 0.1, note)


def _from_panes(spark: SparkSession, made: Plan, lake: LakeTables) -> dict[Any, Any]:
    job, frames = Job(made, lake), Frames(spark, few=False)
    starts = [RecomputedStarts("by_room", None, *EVERYTHING)]
    step_windows = StepWindows(job, ControlState.of(job), starts)
    nobody = AwaitedDevices((), 0)
    coverage, missing = Coverage(None, (), ()), MissingDevices(nobody, None)
    finality = StepFinality(coverage, {"by_room": None}, missing, {"by_room": 0}, nobody)
    spans, shapes = (frames.rows(t) for t in (step_windows.spans(), step_windows.shapes(finality)))
    rows = frames.view(spark.read.format("delta").load(lake.lattice))
    found = windows.computed(frames, rows, job.columns, spans, shapes)
    return _by_window(found.select("key", "start_us", "count", "total_q").frame())


def _from_events(read: DataFrame) -> dict[Any, Any]:
    timed = read.selectExpr("key", "value_q", "timestamp_micros(time_us) AS at")
    timed.createOrReplaceTempView("readings")
    found = read.sparkSession.sql(
        "SELECT key, unix_micros(window.start) AS start_us, count(1) AS count, "
        "sum(value_q) AS total_q FROM readings "
        "GROUP BY key, window(at, '60 seconds', '10 seconds')"
    )
    return _by_window(found)


def _by_window(found: DataFrame) -> dict[Any, Any]:
    columns = (column.to_pylist() for column in found.toArrow().columns)
    return {
        (key, start_us): (int(count), int(total_q))
        for key, start_us, count, total_q in zip(*columns, strict=True)
    }
