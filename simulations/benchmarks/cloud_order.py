"""What streams over the whole fleet add to a step: their items read, stepped, and rows appended.

Devices measure once a second; a step brings ten seconds of each, in one cell, and as many promises.
So there are ten steps' items live. The same step without the evaluator lands the same rows; the
peer is Spark's own way for a user's function in order, `groupByKey` over the live items, which has
to begin again at each step.

Run: `python -m simulations.benchmarks.cloud order`.
"""

import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from cloud_tier.job.job import Job
from cloud_tier.job.step import MergedState, step
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import ABSENT, LakeTables, landed_schema
from lasp_edge import Event
from lasp_edge.language.plan import Plan
from lasp_edge.ordered.cells import CELL_US, PRESENT, Item, packed
from lasp_edge.units import SECOND_US
from simulations.benchmarks.fleet_order import SCANS, TOGETHER, plan_of, value_at
from simulations.benchmarks.measure import MET, MISSED, OURS, Line
from simulations.benchmarks.measure_spark import Cpu, measured

BEGIN_US: Final = 1_700_000_000 * SECOND_US
WARM, SHOWN, LIVE = 4, 6, 10
"""Steps that are not counted, steps that are, and steps whose items are live."""
GOAL_S: Final = 0.5
"""CPU seconds that 5,000 new items beside 50,000 live ones may add to a step."""
PER_CELL: Final = 10
PEER: Final = "Spark's groupByKey"
BARE: Final = "the step without streams"


def rows_of(plan: Plan, number: int, devices: int) -> pa.Table:
    """Return what the devices send in a step: a cell each, and a promise."""
    cell_us, stream = BEGIN_US + number * CELL_US, plan.item_streams["x"].stream
    rows = []
    for device in range(devices):
        own = {"device": f"pi-{device}", "incarnation": 1, "nonce": 7, "received_us": cell_us}
        tags = f'{{"room":"{device // TOGETHER}"}}'
        cell = {
            Item(
                cell_us + n * SECOND_US + device, value_at(device, number * PER_CELL + n), tags
            ): PRESENT
            for n in range(PER_CELL)
        }
        sent = {"kind": "pane", "stream": stream, "pane_us": cell_us, "items": packed(cell)}
        low = {"kind": "promise", "low_us": cell_us + CELL_US, "done": False}
        rows += [own | sent | {"seq": 2 * number}, own | low | {"seq": 2 * number + 1}]
    clock = {"lander": "lander", "now_us": cell_us, "since_us": BEGIN_US - 10**10}
    rows.append({"kind": "tick", "seq": number + 1, "received_us": cell_us, **clock})
    results = plan.stream_results.values()
    schema = landed_schema(plan.columns, results, plan.parameters, plan.item_streams.values())
    columns = {name: [row.get(name, ABSENT.get(name)) for row in rows] for name in schema.names}
    return pa.table(columns, schema=schema)


def steps_s(
    spark: SparkSession, plan: Plan, root: Path, devices: int, *, streams: bool
) -> tuple[float, float]:
    """Return the median CPU seconds of a step, and how many rows it appends.

    Args:
        spark: a session.
        plan: the program.
        root: of a new lake.
        devices: how many send.
        streams: whether they are evaluated.
    """
    lake = LakeTables(root)
    prepare(plan, lake)
    job = Job(plan, lake, roster=tuple(f"pi-{n}" for n in range(devices)), dead_after_us=10**12)
    known = MergedState.of(job)
    if not streams:
        known = known._replace(streams=None)
    found, appended, cpu = [], [], Cpu(spark)
    for number in range(LIVE + WARM + SHOWN):
        batch = spark.createDataFrame(rows_of(plan, number, devices))
        with measured(cpu) as figures:
            outcome = step(batch, number, job, known)
        found.append(figures[1])
        appended.append(outcome.results)
        known = outcome.known
    return statistics.median(found[-SHOWN:]), statistics.median(appended[-SHOWN:])


def peer_s(spark: SparkSession, devices: int) -> float:
    """Return the median CPU seconds in which Spark steps the live items by key, in order.

    Those of its Python workers are not among them.
    """
    scan = SCANS["changes"]

    def stepped(readings: Iterable[tuple[int, int]]) -> Iterator[tuple[int, float]]:
        state = scan.zero
        for at_us, value in sorted(readings):
            state, values = scan.step(state, Event("x", float(value), at_us, "", {}))
            yield from ((at_us, float(each)) for each in values)

    items = [
        (str(device // TOGETHER), (BEGIN_US + at * SECOND_US + device, value_at(device, at)))
        for at in range((LIVE + 1) * PER_CELL)
        for device in range(devices)
    ]
    live = spark.sparkContext.parallelize(items, 2).cache()
    found, cpu = [], Cpu(spark)
    for _ in range(WARM):
        with measured(cpu) as figures:
            live.groupByKey().flatMapValues(stepped).collect()
        found.append(figures[1])
    return statistics.median(found[1:])


def lines(spark: SparkSession, folder: Path, devices: int) -> Iterator[Line]:
    """Yield what the streams of a step cost, beside the step without, and beside Spark."""
    plan = plan_of(SCANS["changes"])
    bare_s, _ = steps_s(spark, plan, folder / "bare", devices, streams=False)
    whole_s, rows = steps_s(spark, plan, folder / "lake", devices, streams=True)
    added_s, new = whole_s - bare_s, devices * PER_CELL
    what = f"{new:,} new items of a stream, {new * LIVE:,} live, beyond a bare step"
    goal = f"<= {GOAL_S} s{MET if added_s <= GOAL_S else MISSED}"
    yield Line(what, OURS, added_s, added_s, "s", goal=goal, note=f"{rows:,.0f} rows appended")
    yield Line(what, BARE, bare_s, bare_s, "s", bare_s / added_s)
    spark_s = peer_s(spark, devices)
    yield Line(what, PEER, spark_s, spark_s, "s", spark_s / added_s)
