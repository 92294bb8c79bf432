"""Keeping the lake small: what was merged is stored once, in few files, and old files go.

Runs in the thread of the steps, between two of them. `OPTIMIZE` conflicts with an append whose plan
reads the table, and a step's appends do; the lander's appends read nothing and pass beside it.

A partition of `lattice` is rewritten as its own join, `dataChange=false`: readers see the same
merged view before and after. A pane's partition is rewritten once it is closed, that is, once F
has passed its day; the entries that are no panes are rewritten each time, without those that newer
ones replace.

`VACUUM` deletes what is older than the table's `delta.deletedFileRetentionDuration` (7 days unless
set): that is how far back `versionAsOf` can look.
"""

from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from cloud_tier.job import merge
from cloud_tier.job.job import Job
from cloud_tier.job.step import read
from cloud_tier.lake.sqltext import day, identifier, one_of
from cloud_tier.lake.tables import MEMBER, PANE, PROMISE, TICK, VARIABLE
from lasp_edge.protocol.lake_columns import PANE_DATE
from lasp_edge.protocol.limits import DAY_US


def maintain(spark: SparkSession, job: Job, frontier: int | None) -> None:
    """Compact closed partitions and join small files.

    Args:
        spark: a session.
        job: the program over the lake.
        frontier: F; days before it are closed.
    """
    closed = [] if frontier is None else _closed(spark, job, frontier // DAY_US)
    for date in ["1970-01-01", *closed]:
        compact(spark, job, date)
    for path in job.lake.grown:
        spark.sql(f"OPTIMIZE delta.{identifier(path)}").collect()


def vacuum(spark: SparkSession, job: Job) -> None:
    """Delete files that no version within the retention needs."""
    for path in job.lake.grown:
        spark.sql(f"VACUUM delta.{identifier(path)}").collect()


def compact(spark: SparkSession, job: Job, date: str) -> None:
    """Rewrite one partition of `lattice` as its join.

    Args:
        spark: a session.
        job: the program over the lake.
        date: the partition, as ISO text.
    """
    names = [column.name for column in job.columns]
    where = f"{PANE_DATE} = '{date}'"
    joined = merge.joined(read(spark, job.lake.lattice).where(where), names)
    kept = [
        joined.where(one_of("kind", (PANE, MEMBER))),
        merge.latest(joined.where(one_of("kind", (PROMISE, TICK))), names),
        merge.standing(joined.where(one_of("kind", [VARIABLE]))),
    ]
    writer = merge.with_date(reduce(DataFrame.unionByName, kept)).coalesce(1).write
    writer = writer.format("delta").mode("overwrite")
    writer.option("replaceWhere", where).option("dataChange", "false").save(job.lake.lattice)


def _closed(spark: SparkSession, job: Job, today: int) -> list[str]:
    """Return the closed partitions, as ISO text, that hold more than one file."""
    stored = read(spark, job.lake.lattice).where(f"{PANE_DATE} < {day(today)}")
    files = stored.selectExpr(PANE_DATE, "_metadata.file_path AS path").distinct()
    counted = files.where(f"{PANE_DATE} > {day(0)}").groupBy(PANE_DATE).count()
    return [str(row[0]) for row in counted.where("count > 1").orderBy(PANE_DATE).collect()]
