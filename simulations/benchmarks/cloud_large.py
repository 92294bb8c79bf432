"""A large lake: what a step, the newest windows and a repair cost over millions of panes."""

from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from cloud_tier.job import merge
from cloud_tier.job.job import Job
from cloud_tier.job.repair import repair
from cloud_tier.job.step import MergedState, step
from cloud_tier.lake.definitions import record
from cloud_tier.lake.lake import Lake
from cloud_tier.lake.tables import LakeTables
from lasp_edge.language.plan import Plan
from simulations.benchmarks.cloud_queries import pane_rows
from simulations.benchmarks.cloud_rows import BEGIN_US, SPAN_US, fleet_rows, greenhouse, landed
from simulations.benchmarks.measure import OURS, Line
from simulations.benchmarks.measure_spark import Cpu, least, measured

DEVICES = 200
STEP_DEVICES = 20
ROUNDS = 3


def lines(spark: SparkSession, folder: Path, panes: int) -> Iterator[Line]:
    """Yield what is asked of a lake of this many panes."""
    made, cpu = greenhouse(), Cpu(spark)
    lake = filled(spark, made, folder, panes)
    job = Job(made, lake)
    known = MergedState.of(job)
    with measured(cpu) as figures:
        written = repair(spark, job, known)
    what = f"a lake of {panes:,} panes"
    note = f"{figures[0]:,.1f} s of real time; it writes {written:,} windows"
    yield Line(f"{what}: repair", OURS, figures[1], figures[1], "s", note=note)
    numbers = iter(range(100))

    def one_step() -> None:
        nonlocal known
        number = next(numbers)
        batch = landed(made, list(fleet_rows(made, number, STEP_DEVICES)))
        known = step(spark.createDataFrame(batch), number, job, known).known

    spent_s = least(cpu, one_step, ROUNDS)
    yield Line(f"{what}: a step of {10 * STEP_DEVICES} rows", OURS, spent_s, spent_s, "s")
    windows = Lake(folder).windows("by_room")
    spent_s = least(cpu, lambda: windows.current(key="room 3"), ROUNDS)
    yield Line(f"{what}: the newest windows of a room", OURS, spent_s, spent_s, "s")


def filled(spark: SparkSession, made: Plan, folder: Path, panes: int) -> LakeTables:
    """Return a lake of this many panes, all from before the first step."""
    lake = LakeTables(folder)
    lake.create(made.columns)
    record(made, lake)
    before = panes // DEVICES
    pane_us = f"{BEGIN_US} - ({before} - id div {DEVICES}) * {SPAN_US}"
    numbered = spark.range(panes).selectExpr("id", f"id % {DEVICES} AS device_number")
    rows = pane_rows(
        numbered,
        made,
        pane_us=pane_us,
        seq=f"id div {DEVICES} + 1",
        count="id % 60 + 1",
        total_q="id % 99991",
    )
    stored = merge.with_date(rows, made.windows.values()).repartition("pane_date")
    stored.write.format("delta").mode("append").save(lake.lattice)
    return lake
