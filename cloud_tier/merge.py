"""The lattice join as relational algebra.

A lattice is stored as rows of its irreducibles, so Spark's own aggregates are the join: the
greatest version wins, column by column, in a HashAggregate over integers. Nothing that sorts, and
no Python, touches a row.

A payload must never be torn, that is, its columns taken from two rows. So no two different rows
may tie for the greatest version. Within one (entry, replica) `seq` orders the rows, and 23 bits of
a hash of the payload order two that claim one seq, which only a cloned device can make. Over
replicas, what adds up is combined (`lasp_edge.fold.Op`); what replaces goes by (incarnation,
nonce), which no two replicas of a device share.

Expressions are SQL text: a step builds some hundred of them, and text crosses to the JVM once.

Source: Almeida, Shoker and Baquero, "Delta State Replicated Data Types", JPDC 2018 (irreducibles).
"""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from cloud_tier.plan import Part
from cloud_tier.spans import DAY_US, Span
from cloud_tier.tables import ENTRY, PANE_DATE, PROMISE
from lasp_edge.fold import Op

_REPLICA = ("kind", "stream", "key", "pane_us", "device", "incarnation", "nonce")
_OWNER = ("kind", "stream", "key", "device")
_HASH_BITS = 23  # with a seq below 2**40 they fill a bigint


def joined(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return one row for each (entry, replica): its greatest.

    A promise keeps a row for each version, so that `received_us` stays the time at which that
    version was first heard: repeats do not make a device look alive.

    Args:
        rows: rows of `landing` or `lattice`; they may repeat.
        names: the part columns.
    """
    payload = ("low_us", "since_us", "done", *names)
    at_seq = f"if(kind = '{PROMISE}', seq, 0) AS _at_seq"
    ordered = rows.selectExpr(
        *_REPLICA,
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
    fields = ("pane_us", "seq", "low_us", "since_us", "received_us", "done", *names)
    in_replica = (f"max_by({quoted(name)}, seq) AS {quoted(name)}" for name in fields)
    replicas = rows.groupBy(*_OWNER, "incarnation", "nonce").agg(*aggregates(*in_replica))
    life = "shiftleft(incarnation, 32) | nonce"
    greatest = (
        f"max_by({quoted(name)}, {life}) AS {quoted(name)}"
        for name in ("incarnation", "nonce", *fields)
    )
    return replicas.groupBy(*_OWNER).agg(*aggregates(*greatest)).select(*ENTRY, *map(quoted, names))


def combined(parts: Iterable[Part]) -> list[Column]:
    """Return the aggregates that combine partials. Totals are decimals: overflow is an error."""
    return aggregates(*map(_combination, parts))


def aggregates(*expressions: str) -> list[Column]:
    """Return SQL text as the arguments of `agg`."""
    return [sql.expr(expression) for expression in expressions]


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


def quoted(name: str) -> str:
    """Return the name of a column as SQL text; `tables` lets no backquote in."""
    return f"`{name}`"


def text(value: str) -> str:
    """Return a text as an SQL literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _order(payload: Iterable[str]) -> str:
    # Hash functions pass over NULL, and (NULL, 1) must differ from (1, NULL).
    shown = (f"coalesce(CAST({quoted(name)} AS BIGINT), {-(2**63)}L)" for name in payload)
    tie = f"xxhash64({', '.join(shown)}) & {2**_HASH_BITS - 1}"
    return f"shiftleft(seq, {_HASH_BITS}) | ({tie})"


def _combination(part: Part) -> str:
    column = quoted(part.name)
    if part.op is Op.SUM:
        return f"sum(CAST({column} AS DECIMAL(38, 0))) AS {column}"
    return f"{part.op}({column}) AS {column}"
