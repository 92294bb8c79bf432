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
from cloud_tier.job.merge import day
from cloud_tier.job.step import read
from cloud_tier.lake.tables import MEMBER, PANE, PANE_DATE, PROMISE, TICK, VARIABLE
from cloud_tier.plan import Plan
from lasp_edge.protocol.limits import DAY_US


def maintain(spark: SparkSession, plan: Plan, frontier: int | None) -> None:
    """Compact closed partitions and join small files.

    Args:
        spark: a session.
        plan: the program over the lake.
        frontier: F; days before it are closed.
    """
    closed = [] if frontier is None else _closed(spark, plan, frontier // DAY_US)
    for date in ["1970-01-01", *closed]:
        compact(spark, plan, date)
    for path in plan.lake.grown:
        spark.sql(f"OPTIMIZE delta.`{path}`").collect()


def vacuum(spark: SparkSession, plan: Plan) -> None:
    """Delete files that no version within the retention needs."""
    for path in plan.lake.grown:
        spark.sql(f"VACUUM delta.`{path}`").collect()


def compact(spark: SparkSession, plan: Plan, date: str) -> None:
    """Rewrite one partition of `lattice` as its join.

    Args:
        spark: a session.
        plan: the program over the lake.
        date: the partition, as ISO text.
    """
    names = [part.name for part in plan.parts]
    where = f"{PANE_DATE} = '{date}'"
    joined = merge.joined(read(spark, plan.lake.lattice).where(where), names)
    kept = [
        joined.where(f"kind IN ('{PANE}', '{MEMBER}')"),
        merge.latest(joined.where(f"kind IN ('{PROMISE}', '{TICK}')"), names),
        merge.standing(joined.where(f"kind = '{VARIABLE}'")),
    ]
    writer = merge.with_date(reduce(DataFrame.unionByName, kept)).coalesce(1).write
    writer = writer.format("delta").mode("overwrite")
    writer.option("replaceWhere", where).option("dataChange", "false").save(plan.lake.lattice)


def _closed(spark: SparkSession, plan: Plan, today: int) -> list[str]:
    """Return the closed partitions, as ISO text, that hold more than one file."""
    stored = read(spark, plan.lake.lattice).where(f"{PANE_DATE} < {day(today)}")
    files = stored.selectExpr(PANE_DATE, "_metadata.file_path AS path").distinct()
    counted = files.where(f"{PANE_DATE} > {day(0)}").groupBy(PANE_DATE).count()
    return [str(row[0]) for row in counted.where("count > 1").orderBy(PANE_DATE).collect()]
