"""Keeping the lake small: what was merged is stored once, in few files, and old files go.

Runs in the thread of the steps, between two of them. Putting files together conflicts with an
append whose plan reads the table, and a step's appends do; the lander's appends read nothing and
pass beside it.

    pack        often     the small files that steps make are put together, as they are
    maintain    seldom    each partition of `lattice` that has several files, or had, is rewritten
                          as its own join, and so is `shared`; small partitions of a month that is
                          long over become one; the small files of the other tables are put together
    vacuum      rarely    files that no version within the retention needs are deleted

A partition is rewritten with `dataChange=false`: readers see the same merged view before and after.
The entries that are no panes lose those that newer ones replace; of promises those stay, too, which
say since when windows wait (`lasp_edge.protocol.waiting`).

A step does nothing for shared variables: readers join their rows. A lander appends only news, so
rows of `shared` seldom repeat, but a counter's total replaces the one before, and a removed element
needs no live row. So now and then that table becomes its own join, too.

`VACUUM` deletes what is older than the table's `delta.deletedFileRetentionDuration` (7 days unless
set): that is how far back `versionAsOf` can look.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from functools import reduce
from typing import Final

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from cloud_tier.job import merge
from cloud_tier.job.bookmark import is_newest_bookmark
from cloud_tier.job.frames import frames, most_rows
from cloud_tier.job.job import Job
from cloud_tier.job.opened import FENCE
from cloud_tier.job.stored import StoredRows, device_rows
from cloud_tier.job.stored import steps as stored_steps
from cloud_tier.lake.coverage import liveness_of
from cloud_tier.lake.shared import SCHEMA
from cloud_tier.lake.sqltext import any_of, identifier, one_of
from cloud_tier.lake.tables import (
    BEGUN,
    CONTROL,
    CUT,
    HELD,
    LIVES,
    MARK,
    MEMBER,
    PANE,
    PROMISE,
    TICK,
    VARIABLE,
)
from cloud_tier.shared import relation
from lasp_edge.protocol.lake_columns import PANE_DATE
from lasp_edge.protocol.waiting import WindowWaiting

_LARGE_BYTES: Final = 32 << 20
"""What is as large as that is not written again."""
_KEPT: Final = (MEMBER, CONTROL, HELD, CUT, MARK)
"""The kinds of row that others do not replace: operators' commands and entries, held starts, and
of each cut, and of the marks of each cell, the newest."""
_AT_STEP: Final = "received_us = _received_us AND least(low_us, received_us) = _lead_us"
_NEWEST: Final = "max(struct(incarnation, nonce, seq, low_us, changed)) OVER (PARTITION BY device)"
_FURTHEST_FIRST: Final = "low_us DESC NULLS LAST, incarnation DESC, nonce DESC, seq DESC"
_PLACE: Final = f"row_number() OVER (PARTITION BY device, changed ORDER BY {_FURTHEST_FIRST})"
_IS_FURTHER: Final = (
    "_place = 1 AND changed <=> _newest.changed "
    "AND low_us IS NOT NULL AND coalesce(low_us > _newest.low_us, true)"
)
"""The promise by which a device had come further than it promises now."""
_AT_ONCE: Final = 16
"""Partitions that one commit rewrites: some million rows, which one machine holds."""
_EPOCH: Final = date(1970, 1, 1)
_MONTHS_AFTER: Final = timedelta(days=31)
"""How long a month is over before its partitions become one: readings of that age come seldom."""
_FEW_FILES: Final = 8
"""Files up to which the table stays as it is: a reader opens each of them."""


def pack(job: Job) -> None:
    """Put the small files together of the tables that a step appends to and holds open.

    Steps open the files that they read. And of a table that is held open, `deltalake` keeps 0.2 MB
    in memory for each file, also of `globals`, which no step reads.
    """
    job.tables.packed |= _of_several_files(job)
    for path in (job.lake.lattice, job.lake.windows, job.lake.results, job.lake.globals):
        job.tables.pack(path)


def maintain(spark: SparkSession, job: Job) -> None:
    """Rewrite the partitions that have several files, or had, as their join; join small files."""
    dates = sorted(_of_several_files(job) | job.tables.packed)
    for start in range(0, len(dates), _AT_ONCE):
        compact(spark, job, dates[start : start + _AT_ONCE])
    job.tables.packed.clear()
    for month in _months_over(job):
        compact(spark, job, month, month[0])
    compact_shared(spark, job)
    for path in job.lake.grown:
        if path != job.lake.lattice:
            # Not by Spark's OPTIMIZE: a plan costs seconds, also where nothing is to be done, and a
            # lander may commit at the same moment. Spark's commit would replace its own on an
            # object store that only `deltalake` asks for "put it unless it is there".
            job.tables.pack(path, _LARGE_BYTES)


def vacuum(job: Job) -> None:
    """Delete files that no version within the retention needs."""
    for path in job.lake.grown:
        job.tables.vacuum(path)


def compact(spark: SparkSession, job: Job, dates: Sequence[str], into: str = "") -> None:
    """Rewrite partitions of `lattice` as their join, in one commit.

    Args:
        spark: a session.
        job: the program over the lake.
        dates: the partitions, as ISO text.
        into: that of them which gets the panes of all; empty: each pane stays where it is.

    Raises:
        Superseded: a newer driver has claimed the lake; what it appended meanwhile stays.
    """
    partitions = _partitions(job)
    rows = sum(sum(partitions[date]) for date in dates)
    where = f"{PANE_DATE} IN ({', '.join(map(_date, dates))})"
    number = job.tables.next_commit(job.lake.lattice)  # before rows are read: later ones stay
    with frames(spark, few=rows <= most_rows()) as made:
        query = f"SELECT * FROM source WHERE {where}"  # noqa: S608 - of our own names
        few = job.tables.select(job.lake.lattice, query) if made.few else None
        stored = StoredRows(job.lake.lattice, where, few).rows(made).frame()
        # A pane keeps its partition, also where a job of another version had put it.
        panes = merge.joined_panes(
            stored.where(one_of("kind", [PANE])), job.landed_names, [PANE_DATE]
        )
        if into:
            panes = panes.withColumn(PANE_DATE, sql.expr(_date(into)))
        others = merge.joined(stored.where(f"NOT ({one_of('kind', [PANE])})"), job.landed_names)
        if made.few:  # Else each kind of them reads the table again, and joins all of it.
            others = made.rows(others.toArrow()).frame()
        promises = others.where(one_of("kind", [PROMISE]))
        at_step = sql.expr(_AT_STEP)
        further = promises.selectExpr("*", f"{_NEWEST} AS _newest", f"{_PLACE} AS _place").where(
            _IS_FURTHER
        )
        kept = [
            further.drop("_newest", "_place"),
            *(promises.join(made.rows(each).frame(), at_step, "leftsemi") for each in _steps(job)),
            others.where(any_of([one_of("kind", _KEPT), is_newest_bookmark(job)])),
            merge.latest(
                others.where(one_of("kind", (PROMISE, BEGUN, TICK, LIVES))), job.landed_names
            ),
            merge.standing(made.view(others.where(one_of("kind", [VARIABLE])))).frame(),
        ]
        dated = merge.with_date(reduce(DataFrame.unionByName, kept), job.windows)
        placed = panes.unionByName(dated)
        writer = placed.repartition(PANE_DATE).write.format("delta").mode("overwrite")
        writer = writer.option("txnAppId", FENCE).option("txnVersion", number)
        writer.option("replaceWhere", where).option("dataChange", "false").save(job.lake.lattice)
    job.tables.next_commit(job.lake.lattice)  # Delta passes over the commit of an older driver


def compact_shared(spark: SparkSession, job: Job) -> None:
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
        rows = counting_shared(spark, job.lake.shared, table.version()).toArrow()
    write_deltalake(table, rows.cast(SCHEMA), mode="overwrite")


def counting_shared(spark: SparkSession, path: str, version: int) -> DataFrame:
    """Return the rows of a version of `shared` that count: the join in the fewest rows."""
    source = f"(SELECT * FROM delta.{identifier(path)} VERSION AS OF {version})"  # noqa: S608
    return spark.sql(relation.counting(source)).select(*SCHEMA.names)


def _steps(job: Job) -> Iterator[pa.Table]:
    """Yield the promises' steps, from which follows since when windows wait, if there are some."""
    waiting = WindowWaiting.of(job.waits_us)
    if waiting.stairs:
        listening = liveness_of(device_rows(job)).listening
        now_us = None if listening is None else listening.now_us
        steps = sorted(waiting.joined(stored_steps(job), now_us).steps)
        if steps:
            received_us, leads_us = zip(*steps, strict=True)
            yield pa.table({"_received_us": received_us, "_lead_us": leads_us})


def _partitions(job: Job) -> dict[str, list[int]]:
    """Return the rows of each file by partition of `lattice`, as ISO text."""
    files = job.tables.files(job.lake.lattice)
    found: dict[str, list[int]] = defaultdict(list)
    dates: Iterable[object] = files[f"partition.{PANE_DATE}"].to_pylist()
    for day, rows in zip(dates, files["num_records"].to_pylist(), strict=True):
        found[str(day)].append(rows)
    return found


def _months_over(job: Job) -> Iterator[list[str]]:
    """Yield the small partitions of each month that ended long before the newest pane.

    Each file costs every step a little, and a pane of that age comes seldom.
    """
    files = job.tables.files(job.lake.lattice)
    sizes: dict[date, int] = defaultdict(int)
    dates: Iterable[date] = files[f"partition.{PANE_DATE}"].to_pylist()
    for at, size in zip(dates, files["size_bytes"].to_pylist(), strict=True):
        sizes[at] += size
    over = max(sizes, default=_EPOCH) - _MONTHS_AFTER
    months: dict[tuple[int, int], list[date]] = defaultdict(list)
    for at in sorted(sizes):
        if _EPOCH < at < over.replace(day=1):  # what is no pane is on the day of the epoch
            months[at.year, at.month].append(at)
    for several in months.values():
        if len(several) > 1 and sum(sizes[at] for at in several) <= _LARGE_BYTES:
            yield [str(at) for at in several]


def _of_several_files(job: Job) -> set[str]:
    return {date for date, rows in _partitions(job).items() if len(rows) > 1}


def _date(date: str) -> str:
    return f"DATE'{date}'"
