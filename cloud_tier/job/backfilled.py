"""Panes of a former window as panes of the one that they count for (`cloud_tier.lake.backfill`)."""

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from cloud_tier.job import merge
from cloud_tier.job.job import Job
from cloud_tier.job.stored import append, read
from cloud_tier.lake.backfill import Backfill
from cloud_tier.lake.sqltext import identifier, one_of
from cloud_tier.lake.tables import PANE
from lasp_edge.protocol.lake_columns import LANDED


def backfilled(rows: DataFrame, several: Iterable[Backfill]) -> DataFrame:
    """Return landed rows, and beside them those of former streams as rows of the later ones."""
    return reduce(DataFrame.unionByName, (counted(rows, each) for each in several), rows)


def counted(rows: DataFrame, each: Backfill) -> DataFrame:
    """Return the panes of a former stream among some rows, as panes of the later one."""
    values = {"stream": f"CAST({each.stream} AS BIGINT)"}
    if each.former_span_us != each.span_us:
        into_us = f"pmod(pane_us, {each.span_us})"
        values["pane_us"] = f"pane_us - {into_us}"
        part = f"CAST({into_us} div {each.former_span_us} AS BIGINT) + 1"
        values["nonce"] = f"nonce + shiftleft({part}, 32)"
    named = [f"{values.get(name, identifier(name))} AS {identifier(name)}" for name in rows.columns]
    panes = rows.where(f"{one_of('kind', [PANE])} AND stream = {each.former_stream}")
    return panes.selectExpr(*named)


def backfill(spark: SparkSession, job: Job) -> None:
    """Let the panes that were merged before count, too; to do it again changes nothing."""
    merged = read(spark, job.lake.lattice).select(*LANDED, *job.landed_names)
    for each in job.backfills:
        rows = merge.with_date(counted(merged, each), job.windows)
        append(rows, job, job.lake.lattice)
