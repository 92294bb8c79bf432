"""Shared variables in the job: now and then the table `shared` becomes its own join.

A step does nothing for them: whoever reads joins. The lander appends only what is news, so rows
seldom repeat, but a counter's total replaces the one before, and what is gone needs no live row.
"""

from typing import Final

from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

from cloud_tier.job.frames import frames, most_rows
from cloud_tier.job.job import Job
from cloud_tier.lake.shared import SCHEMA
from cloud_tier.lake.sqltext import identifier
from cloud_tier.shared import relation

_FEW_FILES: Final = 8
"""Files up to which the table stays as it is: a reader opens each of them."""


def compact(spark: SparkSession, job: Job) -> None:
    """Rewrite `shared` as its join, in one commit, if it has become many files.

    Landers append meanwhile. Only the files of the version that was read are replaced, so what came
    later stays beside the join, and is joined to it by every reader.

    Args:
        spark: a session.
        job: the program over the lake.
    """
    sizes = job.tables.files(job.lake.shared)["num_records"].to_pylist()
    if len(sizes) <= _FEW_FILES:
        return
    table = job.lake.table(job.lake.shared)
    with frames(spark, few=sum(sizes) <= most_rows()):
        rows = counting(spark, job.lake.shared, table.version()).toArrow()
    write_deltalake(table, rows.cast(SCHEMA), mode="overwrite")


def counting(spark: SparkSession, path: str, version: int) -> DataFrame:
    """Return the rows of a version of `shared` that count: the join in the fewest rows."""
    source = f"(SELECT * FROM delta.{identifier(path)} VERSION AS OF {version})"  # noqa: S608
    return spark.sql(relation.counting(source)).select(*SCHEMA.names)
