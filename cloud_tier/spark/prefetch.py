"""Bring all that a first start needs, once: Java, Delta's JARs and the driver's class archive.

`python -m cloud_tier.spark.prefetch`, which `make setup` runs. Where all is there it does nothing.
"""

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cloud_tier.spark.driver import Driver, end, spark_class_path, started
from cloud_tier.spark.jars import delta_jars
from cloud_tier.spark.java import find_java
from cloud_tier.spark.session import LOCAL, spark_session
from lasp_edge.errors import EnvironmentLacks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def prefetch() -> Driver:
    """Bring what is missing and return the driver that it makes.

    Raises:
        EnvironmentLacks: Something is missing and cannot be had.
    """
    java = find_java()
    _say(str(java))
    jars = delta_jars(java=java)
    _say(f"Delta: {', '.join(jar.name for jar in jars)} in {jars[0].parent}")
    driver = Driver(java, spark_class_path(jars), short_run=True)
    if not driver.archive.is_file():
        _say("Class archive: running a small job to learn which classes Spark needs ...")
        train(driver)
    _say(f"Class archive: {driver.archive}")
    return driver


def train(driver: Driver) -> None:
    """Run a small job, list the classes that it loads, and make their archive.

    Raises:
        EnvironmentLacks: The archive could not be written.
    """
    with tempfile.TemporaryDirectory(prefix="lasp-edge-") as scratch:
        class_list = Path(scratch) / "classes"
        with started(driver, f"-XX:DumpLoadedClassList={class_list}") as jvm:
            spark = spark_session(app_name="lasp-edge prefetch", master="local[2]", conf=LOCAL)
        _run_typical_job(spark, Path(scratch))
        spark.stop()
        end(jvm)
        driver.make_archive(class_list)


def _run_typical_job(spark: "SparkSession", folder: Path) -> None:
    """Stream one batch from Delta to Delta, with the operators that the cloud's step uses."""

    def step(batch: "DataFrame", _batch_id: int) -> None:
        # A query's batches run in a session of their own.
        batch.createOrReplaceTempView("batch")
        largest = "SELECT device, max(version) AS version, max_by(total, version) AS total"
        merged = batch.sparkSession.sql(f"{largest} FROM batch GROUP BY device")
        merged.write.format("delta").mode("append").save(str(folder / "merged"))

    readings = "id % 7 AS device, id AS version, id * 3 AS total"
    source = spark.range(100).selectExpr(*readings.split(", "))
    source.write.format("delta").save(str(folder / "landing"))
    stream = spark.readStream.format("delta").load(str(folder / "landing")).writeStream
    query = stream.foreachBatch(step).option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    merged = spark.read.format("delta").load(str(folder / "merged"))
    answer = merged.selectExpr("sum(CAST(total AS DECIMAL(38, 0))) AS total")
    answer.join(merged.where("device BETWEEN 1 AND 2"), on="total", how="left").toArrow()


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    try:
        prefetch()
    except EnvironmentLacks as error:
        _say(str(error))
        sys.exit(int(error.exit_code))
