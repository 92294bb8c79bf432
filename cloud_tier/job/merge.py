"""The lattice join as relational algebra.

A lattice is stored as rows of its irreducibles, so Spark's own aggregates are the join: the
greatest version wins, column by column, in a HashAggregate over integers. Nothing that sorts, and
no Python, touches a row.

A payload must never be torn, that is, its columns taken from two rows. So no two different rows
may tie for the greatest version. Within one (entry, replica) `seq` orders the rows, and 23 bits of
a hash of the payload order two that claim one seq, which only a cloned device can make. Over
replicas, what adds up is combined (`combination`); what replaces goes by (incarnation, nonce),
which no two replicas of a device share. Words on members are few and no payload: they are kept
side by side, and joined by `crdts.Membership` itself.

Binary columns cannot be replaced within a row of Spark's hash tables, so a program that has some
pays for a sort.

Expressions are SQL text: a step builds some hundred of them, and text crosses to the JVM once.

Source: Almeida, Shoker and Baquero, "Delta State Replicated Data Types", JPDC 2018 (irreducibles).
"""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from cloud_tier.job.combination import aggregates, quoted
from cloud_tier.lake.tables import ENTRY, MEMBER, PANE_DATE, PROMISE
from lasp_edge.protocol.limits import DAY_US
from lasp_edge.protocol.spans import Span

_REPLICA = ("kind", "stream", "shard", "key", "pane_us", "device", "incarnation", "nonce")
_OWNER = ("kind", "stream", "key", "device")
_SHARD = ("stream", "device", "shard")
_LIFE = "shiftleft(incarnation, 32) | nonce"
_HASH_BITS = 23  # with a seq below 2**40 they fill a bigint


def joined(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return one row for each (entry, replica): its greatest.

    A promise keeps a row for each version, so that `received_us` stays the time at which that
    version was first heard: repeats do not make a device look alive. Every word on a member keeps
    its row.

    Args:
        rows: rows of `landing` or `lattice`; they may repeat.
        names: the part columns.
    """
    payload = ("low_us", "since_us", "done", "changed", *names)
    word = "xxhash64(seq, changed, done)"
    at_seq = (
        f"CASE kind WHEN '{PROMISE}' THEN seq WHEN '{MEMBER}' THEN {word} ELSE 0 END AS _at_seq"
    )
    ordered = rows.selectExpr(
        *(column for column in _REPLICA if column != "shard"),
        "coalesce(shard, 0) AS shard",  # rows that were landed before there were shards
        "seq",
        "received_us",
        *map(quoted, payload),
        f"{_order(payload)} AS _order",
        at_seq,
    )
    newest = aggregates(
        "max(seq) AS seq",
        "min(received_us) AS received_us",
        *(f"max_by({quoted(name)}, _order) AS {quoted(name)}" for name in payload),
    )
    grouped = ordered.groupBy(*_REPLICA, "_at_seq").agg(*newest)
    return grouped.select(*ENTRY, *map(quoted, names))


def latest(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return one row for each owner's entry: that with its greatest version.

    Args:
        rows: what `joined` gives, of kinds that replace each other.
        names: the part columns.
    """
    beside = ("low_us", "since_us", "received_us", "done", "shard", "changed")
    fields = ("pane_us", "seq", *beside, *names)
    in_replica = (f"max_by({quoted(name)}, seq) AS {quoted(name)}" for name in fields)
    replicas = rows.groupBy(*_OWNER, "incarnation", "nonce").agg(*aggregates(*in_replica))
    greatest = (
        f"max_by({quoted(name)}, {_LIFE}) AS {quoted(name)}"
        for name in ("incarnation", "nonce", *fields)
    )
    return replicas.groupBy(*_OWNER).agg(*aggregates(*greatest)).select(*ENTRY, *map(quoted, names))


def standing(rows: DataFrame) -> DataFrame:
    """Return the rows of variables that stand: those of each shard's newest version.

    A device's frame holds a shard whole, so a key that is missing in the newest is gone, and an
    older row of it does not count.

    Args:
        rows: rows of `landing` or `lattice`, of variables only; they may repeat.
    """
    lives = rows.selectExpr(*_SHARD, f"{_LIFE} AS life", "seq")
    replicas = lives.groupBy(*_SHARD, "life").agg(*aggregates("max(seq) AS seq"))
    greatest = aggregates("max(life) AS life", "max_by(seq, life) AS seq")
    newest = replicas.groupBy(*_SHARD).agg(*greatest).hint("shuffle_hash")
    same = " AND ".join(f"row.{name} = newest.{name}" for name in (*_SHARD, "seq"))
    at = sql.expr(f"{same} AND ({_LIFE}) = newest.life")
    return rows.alias("row").join(newest.alias("newest"), at, "leftsemi")


def with_date(rows: DataFrame) -> DataFrame:
    """Return the rows with `pane_date`, by which `lattice` is partitioned."""
    days = f"CAST((pane_us - pmod(pane_us, {DAY_US})) / {DAY_US} AS INT)"
    return rows.withColumn(PANE_DATE, sql.expr(f"date_add({day(0)}, {days})"))


def day(number: int) -> str:
    """Return a day, counted from the epoch, as an SQL date."""
    return f"DATE'{date(1970, 1, 1) + timedelta(days=number)}'"


def within(column: str, spans: Iterable[Span]) -> str:
    """Return whether the column lies in one of the spans."""
    return any_of(f"{column} BETWEEN {span.first} AND {span.last}" for span in spans)


def any_of(conditions: Iterable[str]) -> str:
    """Return whether one of the conditions holds."""
    return "(" + " OR ".join(conditions) + ")"


def text(value: str) -> str:
    """Return a text as an SQL literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _order(payload: Iterable[str]) -> str:
    # Hash functions pass over NULL, and (NULL, 1) must differ from (1, NULL).
    shown = (f"{quoted(name)}, {quoted(name)} IS NULL" for name in payload)
    tie = f"xxhash64({', '.join(shown)}) & {2**_HASH_BITS - 1}"
    return f"shiftleft(seq, {_HASH_BITS}) | ({tie})"
