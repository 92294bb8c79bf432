"""A batch: its rows go to `lattice`, and a summary of them to the step."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from cloud_tier.job import control, merge
from cloud_tier.job.control import ControlState
from cloud_tier.job.frames import at_most, frames, most_rows
from cloud_tier.job.job import Job
from cloud_tier.job.lives import DeviceLives, lives_after
from cloud_tier.job.starts import SentPanes
from cloud_tier.job.stored import append
from cloud_tier.lake.coverage import liveness_of
from cloud_tier.lake.promises import DEVICE_KINDS
from cloud_tier.lake.sqltext import one_of
from cloud_tier.lake.tables import CONTROL, PANE, VARIABLE
from lasp_edge.protocol.frontier import Liveness
from lasp_edge.protocol.lake_columns import LANDED

_COUNTED: Final = ("kind", "stream", "pane_us", "shard")
_SENT: Final = (*_COUNTED, "key", "device")
"""The same of a program with parameters: devices differ in which of their panes count."""


class BatchSummary(NamedTuple):
    """A summary of a batch's rows.

    Attributes:
        panes_us: rows by stream and pane.
        shards: of variables, by stream.
        rows: by kind.
        liveness: of the devices, as these rows report it.
        device_rows: the rows of `DEVICE_KINDS`, and the entries of the control log.
        sent: the panes one by one, of a program with parameters.
        control: the log of parameters, with the entries of the batch.
        lives: the earlier lives of devices, with those that its promises replace.
    """

    panes_us: dict[int, dict[int, int]]
    shards: dict[int, set[int]]
    rows: dict[str, int]
    liveness: Liveness
    device_rows: list[dict[str, Any]]
    sent: SentPanes
    control: ControlState
    lives: DeviceLives


class BeforeBatch(NamedTuple):
    """What was known before a batch, as far as rows follow from it.

    Attributes:
        frontier_us: F; None is bottom.
        liveness: every promise.
        control: the log of parameters.
        lives: the earlier lives of devices.
    """

    frontier_us: int | None
    liveness: Liveness
    control: ControlState
    lives: DeviceLives

    def after(self, job: Job, rows: list[dict[str, Any]]) -> tuple[ControlState, DeviceLives]:
        """Return the log and the lives after a batch of these rows; what is new of them is written.

        It is there before the rows that it is about.
        """
        state = control.joined_log(job, self.control, self.frontier_us, rows)
        lives = lives_after(self.lives, self.liveness, rows, self.frontier_us)
        job.tables.append(job.lake.lattice, lives.rows_after(self.lives))
        return state, lives


def append_joined(batch: DataFrame, job: Job, known: BeforeBatch) -> BatchSummary:
    """Append a batch to `lattice`, joined in itself if it is large, and return its summary.

    The join of a small batch would cost as much as a query over it, and save rows which the next
    compaction joins anyhow. What the batch's entries of the control log touch, and earlier lives of
    which its promises tell, are written before it.

    Args:
        batch: rows of `landing`.
        job: the program over the lake.
        known: before the batch.
    """
    kinds: Sequence[str] = DEVICE_KINDS
    counted: Sequence[str] = _COUNTED
    if job.has_parameters:
        kinds, counted = (*DEVICE_KINDS, CONTROL), _SENT
    landed = batch.select(*LANDED, *job.landed_names)
    with frames(batch.sparkSession):
        rows = at_most(_dated(landed, job), most_rows())
    if rows is not None:
        device_rows = rows.filter(pc.is_in(rows["kind"], value_set=pa.array(kinds))).to_pylist()
        after = known.after(job, device_rows)
        job.tables.append(job.lake.lattice, rows)
        counts = rows.group_by(counted).aggregate([([], "count_all")])
        return _summary(counts, counted, device_rows, *after)
    joined = merge.joined(landed, job.landed_names).persist()
    try:
        counts = joined.groupBy(*counted).agg(sql.count(sql.lit(1)).alias("count_all")).toArrow()
        device_rows = joined.where(one_of("kind", kinds)).toArrow().to_pylist()
        after = known.after(job, device_rows)
        append(_dated(joined, job), job, job.lake.lattice)
    finally:
        joined.unpersist()
    return _summary(counts, counted, device_rows, *after)


def _dated(rows: DataFrame, job: Job) -> DataFrame:
    return merge.with_date(rows, job.windows)


def _summary(
    counts: pa.Table,
    counted: Sequence[str],
    device_rows: list[dict[str, Any]],
    state: ControlState,
    lives: DeviceLives,
) -> BatchSummary:
    """Return the summary of a batch.

    Args:
        counts: how many rows it has of each kind, stream, pane and shard.
        counted: by which columns they were counted.
        device_rows: its rows of `DEVICE_KINDS`, and its entries of the control log.
        state: after its entries of the log.
        lives: after its promises.
    """
    sent: dict[int, set[tuple[str, str, int]]] = {}
    panes_us: dict[int, dict[int, int]] = {}
    shards: dict[int, set[int]] = {}
    rows: dict[str, int] = {}
    columns = (counts[name].to_pylist() for name in ("count_all", *counted))
    for count, kind, stream, pane_us, shard, *source in zip(*columns, strict=True):
        rows[kind] = rows.get(kind, 0) + count
        if kind == PANE:
            of_stream = panes_us.setdefault(stream, {})
            of_stream[pane_us] = of_stream.get(pane_us, 0) + count
            if source:
                sent.setdefault(stream, set()).add((*source, pane_us))
        elif kind == VARIABLE:
            shards.setdefault(stream, set()).add(shard)
    liveness = liveness_of(device_rows, state.digest)
    return BatchSummary(panes_us, shards, rows, liveness, device_rows, sent, state, lives)
