"""Rows of the lake's tables that a step reads and appends: in the driver where they are few.

Few rows are read through `deltalake` in 40 ms and appended in 10; many, Spark reads and writes by
itself (`cloud_tier.job.frames`). What is computed from rows is written once, for both.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql

from cloud_tier.job import merge, prefilter, windows
from cloud_tier.job.frames import Frames, most_rows
from cloud_tier.job.job import Job
from cloud_tier.job.opened import FENCE
from cloud_tier.job.selection import Selection
from cloud_tier.lake import promises
from cloud_tier.lake.sqltext import standard_identifier
from lasp_edge.protocol.lake_columns import REPLACED
from lasp_edge.protocol.spans import Starts
from lasp_edge.protocol.waiting import Step

_MOST_REPEATED: Final = 2
"""Times that a row is there on average, up to which repeats are read and left out by the driver."""


class StoredRows(NamedTuple):
    """Some rows of a table.

    Attributes:
        path: of the table.
        where: which rows, in Spark's dialect.
        few: the rows; None where they are many.
    """

    path: str
    where: str
    few: pa.Table | None

    @property
    def are_none(self) -> bool:
        """Whether there is no such row."""
        return self.few is not None and not self.few.num_rows

    def rows(self, made: Frames) -> Selection:
        """Return the rows, read by Spark unless they are few and all that they are joined with."""
        if made.few and self.few is not None:
            return made.rows(self.few)
        return made.view(read(made.spark, self.path)).where(self.where)


def panes(job: Job, needed: str) -> StoredRows:
    """Return panes of `lattice`, without those that a newer entry replaces where they are few."""
    columns = [*merge.PANE_IDENTITY, "seq", *REPLACED, *job.names]
    return newest(job, columns, needed, merge.PANE_IDENTITY, ["seq"])


def window_rows(job: Job, starts: Starts, *, may_be_few: bool) -> StoredRows:
    """Return the rows of `windows` that have these starts; many, if they may not be few."""
    rows = None
    if may_be_few:
        written = windows.written(starts, standard=True)
        columns = windows.read_columns(job.columns)
        rows = select(job, job.lake.windows, columns, f"{written} LIMIT {most_rows() + 1}")
    few = None if rows is None or rows.num_rows > most_rows() else rows
    return StoredRows(job.lake.windows, windows.written(starts, standard=False), few)


def newest(
    job: Job, columns: Iterable[str], where: str, entry: Sequence[str], order: Sequence[str]
) -> StoredRows:
    """Return rows of `lattice`, without those that a newer one replaces where they are few.

    Args:
        job: the program over the lake.
        columns: that are read.
        where: which rows, in Spark's dialect and the standard.
        entry: the columns that tell entries apart.
        order: the columns by which a row replaces another of its entry.
    """
    most = _MOST_REPEATED * most_rows()
    found = select(job, job.lake.lattice, columns, f"{where} LIMIT {most + 1}")
    kept = None if found.num_rows > most else prefilter.newest(found, entry, order)
    few = None if kept is None or kept.num_rows > most_rows() else kept
    return StoredRows(job.lake.lattice, where, few)


def device_rows(job: Job) -> list[dict[str, Any]]:
    """Return the newest merged rows of `DEVICE_KINDS`."""
    return promises.device_rows(partial(job.tables.select, job.lake.lattice))


def steps(job: Job, control: int | None = None) -> list[Step]:
    """Return the steps of the merged promises; see `cloud_tier.lake.promises.steps`."""
    return promises.steps(partial(job.tables.select, job.lake.lattice), job.waits_us, control)


def select(job: Job, path: str, columns: Iterable[str], where: str) -> pa.Table:
    """Return columns of the rows that a condition in the standard's dialect leaves."""
    named = ", ".join(map(standard_identifier, columns))
    return job.tables.select(path, f"SELECT {named} FROM source WHERE {where}")  # noqa: S608


def read(spark: SparkSession, path: str) -> DataFrame:
    """Return a table of the lake, as Spark reads it."""
    return spark.read.format("delta").load(path)


def append_windows(made: Frames, job: Job, rows: Selection, frontier: int | None) -> int:
    """Append rows to `windows` in one commit that records the frontier; return how many."""
    if not made.few:
        return append(rows.frame(), job, job.lake.windows, frontier)
    revised = rows.frame().toArrow()
    job.tables.append(job.lake.windows, revised, frontier)
    return int(revised.num_rows)


def append(rows: DataFrame, job: Job, path: str, frontier: int | None = None) -> int:
    """Append rows by Spark to a table that only jobs write to, and return how many they were."""
    number, metadata = job.tables.next_commit(path), job.tables.statement(path, frontier)
    counted = Observation()
    observed = rows.observe(counted, sql.count(sql.lit(1)).alias("rows"))
    writer = observed.write.format("delta").mode("append")
    writer = writer.option("txnAppId", FENCE).option("txnVersion", number)
    if metadata:
        writer = writer.option("userMetadata", metadata)
    writer.save(path)
    job.tables.check_committed(path, number)
    return int(counted.get["rows"])
