"""The job: one streaming query from `landing`, a step a batch, maintenance now and then.

Exactly once comes from the lattice: a batch that is done again, whole or in part, under this or a
fresh checkpoint, gives the same lake. So a query that failed is simply started again.
"""

import logging
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cloud_tier.job import bookmark
from cloud_tier.job.job import Job
from cloud_tier.job.maintenance import maintain, pack, vacuum
from cloud_tier.job.step import MergedState, Outcome, recalled, step
from cloud_tier.lake.checkpoint import merged_up_to, planned_up_to
from cloud_tier.lake.room import need_room
from cloud_tier.lake.store_id import store_id

log = logging.getLogger(__name__)

LOCAL_CONF: Final = {
    # Batches are small and plans many, so planning again at every shuffle costs more than it
    # saves: 2.7 instead of 3.1 s a step on two cores, with one partition.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


class Upkeep(NamedTuple):
    """How often the lake is kept small, in batches.

    Attributes:
        pack_every: the small files that steps make are put together.
        maintain_every: partitions are compacted and small files joined.
        vacuum_every: old files are deleted.
    """

    pack_every: int = 20
    maintain_every: int = 200
    vacuum_every: int = 2_000


USUAL: Final = Upkeep()


class Batches:
    """The function of `foreachBatch`: a step, now and then maintenance, in one thread.

    Args:
        job: the program over the lake.
        report: is given the outcome of each step.
        upkeep: how often the lake is kept small.
    """

    def __init__(self, job: Job, report: Callable[[Outcome], None], upkeep: Upkeep = USUAL) -> None:
        self._job = job
        self._report = report
        self._upkeep = upkeep
        self._known: MergedState | None = None
        self._bookmark_is_due = False

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Merge one batch."""
        spark, lake, tables = batch.sparkSession, self._job.lake, self._job.tables
        need_room(lake)
        if self._known is None:
            tables.landed = merged_up_to(lake)
            tables.store = store_id(lake.table(lake.landing))
            self._known = recalled(self._job)
            self._bookmark_is_due = bookmark.is_due(self._job)
        tables.landed = planned_up_to(lake, batch_id)
        began_s = time.monotonic()  # noqa: TID251 - for people who watch, and for nothing else
        outcome = step(batch, batch_id, self._job, self._known)
        took_s = time.monotonic() - began_s  # noqa: TID251 - the same
        # Only now: a step that died before is done again with what was known before it.
        self._known = outcome.known
        # What maintenance commits to `landing` comes back as a batch of no rows.
        if outcome.rows:
            self._maintain(spark, batch_id, outcome.known)
        self._report(outcome._replace(seconds=took_s))

    def _maintain(self, spark: SparkSession, batch_id: int, known: MergedState) -> None:
        """Keep the lake small, by the number of the batch, which goes on over many short runs."""
        number = batch_id + 1
        is_long_ago = number % self._upkeep.maintain_every == 0
        if is_long_ago or self._bookmark_is_due:
            rows = known.current_rows
            bookmark.put_bookmark(self._job, known.frontier, rows, complete=known.complete)
            self._bookmark_is_due = False
        if is_long_ago:
            maintain(spark, self._job)
        elif number % self._upkeep.pack_every == 0:
            pack(self._job)
        if number % self._upkeep.vacuum_every == 0:
            vacuum(self._job)


_REFUSES_LEFTOVERS = "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart"
"""Spark's setting by which it starts no first batch over any file in the checkpoint. A driver that
was killed while it planned that batch has left such a file, which is never read."""


def start(
    spark: SparkSession,
    job: Job,
    report: Callable[[Outcome], None],
    *,
    trigger_s: float | None = 2.0,
    upkeep: Upkeep = USUAL,
) -> StreamingQuery:
    """Start the streaming query.

    Args:
        spark: a session.
        job: the program over a lake whose tables exist.
        report: is given the outcome of each step, in the query's thread.
        trigger_s: the least time between the beginnings of two batches; None to merge what has
            landed by now, and end.
        upkeep: how often the lake is kept small.
    """
    lake = job.lake
    spark.conf.set(_REFUSES_LEFTOVERS, "false")
    # What `lake forget` and `lake retain` delete is no news, and no reason to end.
    landing = spark.readStream.format("delta").option("skipChangeCommits", "true")
    landed = landing.load(lake.landing)
    writer = landed.writeStream.foreachBatch(Batches(job, report, upkeep))
    writer = writer.option("checkpointLocation", lake.checkpoint)
    if trigger_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{round(trigger_s * 1000)} milliseconds").start()


def failure(query: StreamingQuery) -> str:
    """Return the text of the exception that ended a query; empty where it was stopped."""
    error: PySparkException | None = query.exception()
    return str(error) if error else ""
