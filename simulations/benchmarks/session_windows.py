"""Spark's `session_window` over items, as a peer: one batch, from which nothing may come late."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import functions

from cloud_tier.job.streaming import LOCAL_CONF
from cloud_tier.spark.session import spark_session
from lasp_edge import Event
from lasp_edge.ordered.places import Place
from simulations.benchmarks.measure_spark import Cpu, least, written

GAP = "500 milliseconds"
WARM_S = 20
"""CPU seconds that are measured at least: the JVM compiles what ran long."""


def cpu_s(items: Sequence[tuple[Place, Event]], directory: Path, rounds: int) -> float:
    """Return the least CPU seconds of Python and JVM for the sessions of each key, counted.

    Args:
        items: their keys are in place of their devices.
        directory: for the items, in the form that Spark reads best.
        rounds: the least number of them.
    """
    spark = spark_session(app_name="sessions", conf=LOCAL_CONF)
    columns = {
        "time_us": [event.time_us for _, event in items],
        "key": [event.device for _, event in items],
    }
    path = str(directory / "items")
    spark.createDataFrame(pa.table(columns)).write.parquet(path)
    times = functions.timestamp_micros("time_us")
    sessions = (
        spark.read.parquet(path)
        .select("key", times.alias("time"))
        .groupBy("key", functions.session_window("time", GAP))
        .count()
    )
    try:
        return least(Cpu(spark), lambda: written(sessions), rounds, WARM_S)
    finally:
        spark.stop()
