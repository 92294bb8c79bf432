"""The lattice join as relational algebra.

A lattice is stored as rows of its irreducibles, so Spark's own aggregates are the join: the
greatest version wins, column by column, in a HashAggregate over integers. Nothing that sorts, and
no Python, touches a row.

A payload must never be torn, that is, its columns taken from two rows. So no two different rows
may tie for the greatest version. Within one (entry, replica) `seq` orders the rows, and 23 bits of
a hash of the payload order two that claim one seq, which only a cloned device can make. Over
replicas, what adds up is combined (`lasp_edge.fold.Op`); what replaces goes by (incarnation,
nonce), which no two replicas of a device share.

Source: Almeida, Shoker and Baquero, "Delta State Replicated Data Types", JPDC 2018 (irreducibles).
"""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from cloud_tier.plan import Part
from cloud_tier.spans import DAY_US, Span
from cloud_tier.tables import ENTRY, PANE_DATE, PROMISE
from lasp_edge.fold import Op

_REPLICA = ("kind", "stream", "key", "pane_us", "device", "incarnation", "nonce")
_OWNER = ("kind", "stream", "key", "device")
_HASH_BITS = 23  # with a seq below 2**40 they fill a bigint
_LEAST = -(2**63)


def joined(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return one row for each (entry, replica): its greatest.

    A promise keeps a row for each version, so that `received_us` stays the time at which that
    version was first heard: repeats do not make a device look alive.

    Args:
        rows: rows of `landing` or `lattice`; they may repeat.
        names: the part columns.
    """
    payload = ("low_us", "since_us", "done", *names)
    at_seq = sql.when(sql.col("kind") == PROMISE, sql.col("seq")).otherwise(0)
    grouped = rows.groupBy(*_REPLICA, at_seq.alias("_at_seq"))
    order = _order(payload)
    newest = [sql.max_by(name, order).alias(name) for name in payload]
    joined = grouped.agg(
        sql.max("seq").alias("seq"), sql.min("received_us").alias("received_us"), *newest
    )
    return joined.select(*ENTRY, *names)


def latest(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return one row for each owner's entry: that with its greatest version.

    Args:
        rows: what `joined` gives, of kinds that replace each other.
        names: the part columns.
    """
    fields = ("pane_us", "seq", "low_us", "since_us", "received_us", "done", *names)
    in_replica = [sql.max_by(name, "seq").alias(name) for name in fields]
    replicas = rows.groupBy(*_OWNER, "incarnation", "nonce").agg(*in_replica)
    life = sql.shiftleft("incarnation", 32).bitwiseOR(sql.col("nonce"))
    greatest = [sql.max_by(name, life).alias(name) for name in ("incarnation", "nonce", *fields)]
    return replicas.groupBy(*_OWNER).agg(*greatest).select(*ENTRY, *names)


def combined(parts: Iterable[Part]) -> list[Column]:
    """Return the aggregates that combine partials. Totals are decimals: overflow is an error."""
    return [_combination(part).alias(part.name) for part in parts]


def with_date(rows: DataFrame) -> DataFrame:
    """Return the rows with `pane_date`, by which `lattice` is partitioned."""
    midnight_us = sql.col("pane_us") - sql.pmod("pane_us", sql.lit(DAY_US))
    days = (midnight_us / sql.lit(DAY_US)).cast("int")
    return rows.withColumn(PANE_DATE, sql.date_add(day(0), days))


def day(number: int) -> Column:
    """Return a day as a date, counted from the epoch."""
    return sql.lit(date(1970, 1, 1) + timedelta(days=number))


def within(column: str, spans: Iterable[Span]) -> Column:
    """Return whether the column lies in one of the spans."""
    between = (sql.col(column).between(span.first, span.last) for span in spans)
    return reduce(or_, between, sql.lit(False))  # noqa: FBT003 - an SQL literal


def _order(payload: Iterable[str]) -> Column:
    # Hash functions pass over NULL, and (NULL, 1) must differ from (1, NULL).
    shown = [sql.coalesce(sql.col(name).cast("long"), sql.lit(_LEAST)) for name in payload]
    tie = sql.xxhash64(*shown).bitwiseAND(2**_HASH_BITS - 1)
    return sql.shiftleft("seq", _HASH_BITS).bitwiseOR(tie)


def _combination(part: Part) -> Column:
    column = sql.col(part.name)
    if part.op is Op.SUM:
        return sql.sum(column.cast("decimal(38,0)"))
    return sql.min(column) if part.op is Op.MIN else sql.max(column)
