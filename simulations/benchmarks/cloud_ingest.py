"""From frames to rows in Delta, and from a process's start to its first append."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from cloud_tier.lake.tables import LakeTables
from simulations.benchmarks.cloud_replay import FRAME_PANES, FleetReplay, RecordedFleet
from simulations.benchmarks.cloud_rows import SPAN_US
from simulations.benchmarks.measure import Line
from simulations.benchmarks.measure_spark import Cpu, beside, measured

DEVICES = 200
_FIRST_APPEND = """
import sys
from simulations.benchmarks.measure_spark import Cpu
if sys.argv[2] == "ours":
    from cloud_tier.spark.session import spark_session
    spark = spark_session(app_name="start", short_run=True)
else:
    from pyspark.sql import SparkSession
    from cloud_tier.spark.jars import delta_jars
    from cloud_tier.spark.java import find_java, launcher_home
    from cloud_tier.spark.session import DELTA
    import os
    java = find_java()
    os.environ["JAVA_HOME"] = str(launcher_home(java))
    jars = ",".join(map(str, delta_jars(java=java)))
    conf = {**DELTA, "spark.jars": jars, "spark.ui.enabled": "false"}
    spark = SparkSession.builder.master("local[*]").config(map=conf).getOrCreate()
spark.range(10).write.format("delta").save(sys.argv[1])
print(Cpu(spark)())
"""


def ingest_lines(spark: SparkSession, folder: Path, rows: int) -> Iterator[Line]:
    """Yield what it costs until rows are in Delta: of frames, and of Parquet files by Spark."""
    panes = max(1, rows // DEVICES)
    recording = RecordedFleet("ingest", SPAN_US, panes, 60, DEVICES, parts=max(1, rows // 100_000))
    lake, cpu = LakeTables(folder / "ingested"), Cpu(spark)
    lake.create(recording.plan().columns)
    replay = FleetReplay(recording, lake)
    ours_s = 0.0
    arrived = folder / "as parquet"
    arrived.mkdir()
    for number, part in enumerate(recording.spans()):
        records = list(replay.records(part))
        with measured(cpu) as figures:
            replay.take(records, part)
        ours_s += figures[1]
        newest = lake.table(lake.landing).file_uris()[0]
        pq.write_table(pq.read_table(newest), arrived / f"{number:04}.parquet")
    schema = spark.read.parquet(str(arrived)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    writer = reader.parquet(str(arrived)).writeStream.format("delta").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "of parquet"))
    with measured(cpu) as figures:
        writer.trigger(availableNow=True).start(str(folder / "streamed")).awaitTermination()
    what = f"{recording.rows:,} rows of frames, {FRAME_PANES} in each, until they are in Delta"
    yield from beside(what, ours_s, "Parquet stream", figures[1], 2.0)


def start_lines(_spark: SparkSession, folder: Path, _size: int) -> Iterator[Line]:
    """Yield what a process costs until its first append to a Delta table."""
    spent = {}
    for way in ("ours", "spark"):
        words = [sys.executable, "-c", _FIRST_APPEND, str(folder / way), way]
        ran = subprocess.run(words, capture_output=True, text=True, check=True)  # noqa: S603 - ours
        spent[way] = float(ran.stdout.split()[-1])
    what = "a process, until its first Delta append"
    yield from beside(what, spent["ours"], "Spark's launcher", spent["spark"], 1 / 3)
