"""Devices are offline for hours, and one has a fast clock: which windows are right in the end.

Readings and arrival are the same for both: a device that is offline sends what it has when it is
back. Ours waits for what devices promise; Spark's watermark follows the greatest time of all.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from cloud_tier.job.job import Job
from cloud_tier.job.step import MergedState, step
from cloud_tier.lake.query import selected
from cloud_tier.lake.tables import LakeTables
from lasp_edge.language.plan import Plan
from simulations.benchmarks.cloud_rows import BEGIN_US, SPAN_US, greenhouse, landed
from simulations.benchmarks.measure import MET, MISSED, OURS, Line
from simulations.benchmarks.measure_spark import Cpu, measured

MINUTE_US, HOUR_US = 60_000_000, 3_600_000_000
HOURS = 6
BATCH_US = 30 * MINUTE_US
READ_US = 5 * MINUTE_US
"""Microseconds between two readings of a device."""
OFFLINE = 10
FAST_US = 2 * HOUR_US
DEAD_AFTER_US = 10 * MINUTE_US
WATERMARK = "10 minutes"

Windows = dict[tuple[str, int], tuple[int, int]]
"""(key, start) -> (count, total) of a window."""


class FleetReading(NamedTuple):
    """A reading of one device, and when it is sent."""

    device: int
    time_us: int
    value_q: int
    sent_us: int

    @property
    def key(self) -> str:
        """The device's room."""
        return f"room {self.device % 7}"


def readings(devices: int) -> list[FleetReading]:
    """Return what a fleet reads; the first devices are offline, and the last has a fast clock."""
    found = []
    for device in range(devices):
        for number in range(HOURS * HOUR_US // READ_US):
            read_us = BEGIN_US + number * READ_US + device * 997
            lost_us = BEGIN_US + HOUR_US + device * BATCH_US // 5
            back_us = lost_us + HOUR_US + device * 2 * HOUR_US // OFFLINE
            is_lost = device < OFFLINE and lost_us <= read_us < back_us
            time_us = read_us + (FAST_US if device == devices - 1 else 0)
            sent_us = back_us if is_lost else read_us
            found.append(FleetReading(device, time_us, (7 * number + device) % 997, sent_us))
    return sorted(found, key=lambda reading: reading.sent_us)


def truth(read: list[FleetReading], made: Plan) -> Windows:
    """Return every window, by going through its readings."""
    window = made.windows["by_room"]
    found: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for reading in read:
        last_us = reading.time_us // window.slide_us * window.slide_us
        for start_us in range(last_us, last_us - window.size_us, -window.slide_us):
            found[reading.key, start_us][0] += 1
            found[reading.key, start_us][1] += reading.value_q
    return {at: (count, total) for at, (count, total) in found.items()}


def lines(spark: SparkSession, folder: Path, devices: int) -> Iterator[Line]:
    """Yield how many windows are right in the end, and what that costs."""
    made, cpu = greenhouse(), Cpu(spark)
    read = readings(devices)
    right = truth(read, made)
    with measured(cpu) as figures:
        ours, finals = _merged(spark, folder / "lake", made, read)
    with measured(cpu) as theirs_figures:
        theirs = _watermarked(spark, folder, read)
    share, their_share = _share(ours, right), _share(theirs, right)
    is_met = share == 1.0 and max(finals.values()) == 1 and finals.keys() == right.keys()
    what = f"{devices} devices, {OFFLINE} offline for 1 to 3 h, one 2 h fast: windows right"
    words = f"all, each final once{MET if is_met else MISSED}"
    yield Line(what, OURS, figures[1], 100 * share, "%", goal=words)
    spent_s = theirs_figures[1]
    yield Line(what, "Spark watermark", spent_s, 100 * their_share, "%", share / their_share)


def _share(found: Windows, right: Windows) -> float:
    return sum(found.get(at) == value for at, value in right.items()) / len(right)


def _merged(
    spark: SparkSession, folder: Path, made: Plan, read: list[FleetReading]
) -> tuple[Windows, Counter[tuple[str, int]]]:
    """Return the newest row of each window, and how often each was final."""
    lake = LakeTables(folder)
    lake.create(made.columns)
    job = Job(made, lake, dead_after_us=DEAD_AFTER_US)
    known, devices = MergedState.of(job), len({each.device for each in read})
    for number, batch in enumerate(_batches(read)):
        rows = spark.createDataFrame(landed(made, list(_rows(made, number, batch, devices))))
        known = step(rows, number, job, known).known
    query = "SELECT key, start_us, revision, status, count, total_q FROM source ORDER BY revision"
    newest: Windows = {}
    finals: Counter[tuple[str, int]] = Counter()
    for row in selected(lake.table(lake.windows), query).to_pylist():
        at = row["key"], row["start_us"]
        newest[at] = int(row["count"]), int(row["total_q"])
        finals[at] += row["status"] == "final"
    return newest, finals


def _batches(read: list[FleetReading]) -> Iterator[list[FleetReading]]:
    """Yield what comes in each half hour, and at the end nothing, when all devices are done."""
    by_batch: dict[int, list[FleetReading]] = defaultdict(list)
    for reading in read:
        by_batch[(reading.sent_us - BEGIN_US) // BATCH_US].append(reading)
    for number in range(max(by_batch) + 2):
        yield by_batch[number]


def _rows(
    made: Plan, number: int, batch: list[FleetReading], devices: int
) -> Iterator[dict[str, Any]]:
    """Yield a batch as rows: a pane for each reading, a promise of who spoke, a tick.

    With an empty one all devices are done.
    """
    now_us = BEGIN_US + (number + 1) * BATCH_US
    stream = made.windows["by_room"].stream
    heard: dict[int, int] = {}
    for reading in batch:
        seq = (reading.time_us - BEGIN_US) // READ_US + 1
        heard[reading.device] = max(heard.get(reading.device, 0), reading.time_us)
        yield _own(reading.device, now_us) | {
            "kind": "pane",
            "stream": stream,
            "key": reading.key,
            "pane_us": reading.time_us // SPAN_US * SPAN_US,
            "seq": seq,
            "count": 1,
            "total_q": reading.value_q,
        }
    for device, time_us in heard.items():
        promise = {"kind": "promise", "seq": number + 1, "low_us": time_us, "done": False}
        yield _own(device, now_us) | promise
    if not batch:
        end_us = BEGIN_US + HOURS * HOUR_US + FAST_US + HOUR_US
        for device in range(devices):
            promise = {"kind": "promise", "seq": number + 1, "low_us": end_us, "done": True}
            yield _own(device, now_us) | promise
    clock = {"now_us": now_us, "since_us": BEGIN_US - HOUR_US, "received_us": now_us}
    yield {"kind": "tick", "lander": "benchmark", "seq": number + 1, **clock}


def _own(device: int, now_us: int) -> dict[str, Any]:
    return {"device": f"pi-{device}", "incarnation": 1, "nonce": 7, "received_us": now_us}


def _watermarked(spark: SparkSession, folder: Path, read: list[FleetReading]) -> Windows:
    """Return the windows that Spark's own streaming aggregate gives, over the same arrivals."""
    arrived = folder / "arrived"
    arrived.mkdir()
    end = FleetReading(0, BEGIN_US + 2 * HOURS * HOUR_US, 0, 0)  # passes all other windows
    for number, arriving in enumerate(_batches(read)):
        batch = arriving or [end]
        columns = {
            "key": pa.array([reading.key for reading in batch], pa.string()),
            "time_us": pa.array([reading.time_us for reading in batch], pa.int64()),
            "value_q": pa.array([reading.value_q for reading in batch], pa.int64()),
        }
        pq.write_table(pa.table(columns), arrived / f"{number:04}.parquet")
    schema = "key STRING, time_us BIGINT, value_q BIGINT"
    files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(arrived))
    timed = files.selectExpr("key", "value_q", "timestamp_micros(time_us) AS at")
    timed.withWatermark("at", WATERMARK).createOrReplaceTempView("arriving")
    found = spark.sql(
        "SELECT key, unix_micros(window.start) AS start_us, count(1) AS count, "
        "sum(value_q) AS total_q FROM arriving "
        "GROUP BY key, window(at, '60 seconds', '10 seconds')"
    )
    writer = found.writeStream.format("delta").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "their checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "theirs"))
    query.awaitTermination()
    rows = spark.read.format("delta").load(str(folder / "theirs")).toArrow().to_pylist()
    return {(row["key"], row["start_us"]): (row["count"], row["total_q"]) for row in rows}
