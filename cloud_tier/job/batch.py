"""What a batch holds: its rows go to `lattice`, and what a step must know of them comes back."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sql

from cloud_tier.job import control, merge
from cloud_tier.job.control import ControlState
from cloud_tier.job.frames import at_most, frames, most_rows
from cloud_tier.job.job import Job
from cloud_tier.job.starts import SentPanes
from cloud_tier.lake.coverage import liveness_of
from cloud_tier.lake.sqltext import one_of
from cloud_tier.lake.tables import CONTROL, MEMBER, PANE, PROMISE, TICK, VARIABLE
from lasp_edge.protocol.frontier import Liveness
from lasp_edge.protocol.lake_columns import LANDED

TELLING: Final = (PROMISE, TICK, MEMBER)
"""The kinds of row that tell which devices there are and how far they have come."""
_COUNTED: Final = ("kind", "stream", "pane_us", "shard")
_SENT: Final = (*_COUNTED, "key", "device")
"""The same of a program with parameters: which of its panes count differs from device to device."""


class BatchSummary(NamedTuple):
    """What a batch holds.

    Attributes:
        panes_us: rows by stream and pane.
        shards: of variables, by stream.
        rows: by kind.
        liveness: what is told of devices.
        told: the rows that tell it.
        sent: the panes one by one, of a program with parameters.
        control: the log of parameters, with the entries of the batch.
    """

    panes_us: dict[int, dict[int, int]]
    shards: dict[int, set[int]]
    rows: dict[str, int]
    liveness: Liveness
    told: list[dict[str, Any]]
    sent: SentPanes
    control: ControlState


def append_joined(
    batch: DataFrame, job: Job, known: ControlState, frontier_us: int | None
) -> BatchSummary:
    """Append a batch to `lattice`, joined in itself if it is large, and return what it holds.

    The join of a small batch would cost as much as a query over it, and save rows which the next
    compaction joins anyhow. What the batch's entries of the control log touch is written before it.

    Args:
        batch: rows of `landing`.
        job: the program over the lake.
        known: the log of parameters before.
        frontier_us: F before the batch; None is bottom.
    """
    telling_kinds: Sequence[str] = TELLING
    counted: Sequence[str] = _COUNTED
    if job.has_parameters:
        telling_kinds, counted = (*TELLING, CONTROL), _SENT
    landed = batch.select(*LANDED, *job.landed_names)
    with frames(batch.sparkSession):
        rows = at_most(_dated(landed, job), most_rows())
    if rows is not None:
        told = rows.filter(pc.is_in(rows["kind"], value_set=pa.array(telling_kinds))).to_pylist()
        state = control.joined_log(job, known, frontier_us, told)
        job.tables.append(job.lake.lattice, rows)
        counts = rows.group_by(counted).aggregate([([], "count_all")])
        return _summary(counts, counted, told, state)
    joined = merge.joined(landed, job.landed_names).persist()
    try:
        counts = joined.groupBy(*counted).agg(sql.count(sql.lit(1)).alias("count_all")).toArrow()
        told = joined.where(one_of("kind", telling_kinds)).toArrow().to_pylist()
        state = control.joined_log(job, known, frontier_us, told)
        append(_dated(joined, job), job.lake.lattice)
    finally:
        joined.unpersist()
    return _summary(counts, counted, told, state)


def _dated(rows: DataFrame, job: Job) -> DataFrame:
    return merge.with_date(rows, job.windows, has_parameters=job.has_parameters)


def _summary(
    counts: pa.Table, counted: Sequence[str], told: list[dict[str, Any]], state: ControlState
) -> BatchSummary:
    """Return what a batch holds.

    Args:
        counts: how many rows it has of each kind, stream, pane and shard.
        counted: by which columns they were counted.
        told: its rows that tell of devices.
        state: after its entries of the log.
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
    liveness = liveness_of(told, state.control)
    return BatchSummary(panes_us, shards, rows, liveness, told, sent, state)


def append(rows: DataFrame, path: str, metadata: str = "") -> int:
    """Append rows by Spark, and return how many they were."""
    counted = Observation()
    observed = rows.observe(counted, sql.count(sql.lit(1)).alias("rows"))
    writer = observed.write.format("delta").mode("append")
    if metadata:
        writer = writer.option("userMetadata", metadata)
    writer.save(path)
    return int(counted.get["rows"])
