"""The lattice join as relational algebra.

A lattice is stored as rows of its irreducibles, so Spark's own aggregates are the join: the
greatest version wins, column by column, in a HashAggregate over integers. Nothing that sorts, and
no Python, touches a row.

A payload must never be torn, that is, its columns taken from two rows. So no two different rows
may tie for the greatest version. Within one (entry, replica) `seq` orders the rows, and 23 bits of
a hash of the payload order two that claim one seq, which only a cloned device can make. Over
replicas, what adds up is combined (`combination`); what replaces goes by (incarnation, nonce),
which no two replicas of a device share. Member commands and ticks are few and have no payload:
they are kept side by side, and joined by `crdts.Membership` and the frontier themselves.

Binary columns cannot be replaced within a row of Spark's hash tables, so a program that has some
pays for a sort.

Expressions are SQL text: a step builds some hundred of them, and text crosses to the JVM once.

Source: Almeida, Shoker and Baquero, "Delta State Replicated Data Types", JPDC 2018 (irreducibles).
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import Column as SqlColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from cloud_tier.job.selection import Selection
from cloud_tier.lake.sqltext import day, identifier, literal, one_of
from cloud_tier.lake.tables import ABSENT, CUT, MARK, PANE, VARIABLE
from lasp_edge.language.declarations import Window
from lasp_edge.protocol.lake_columns import KEPT_APART, LANDED, PANE_DATE, REPLACED
from lasp_edge.protocol.limits import DAY_US

PANE_IDENTITY: Final = ("stream", "key", "pane_us", "device", "incarnation", "nonce")
"""What tells panes apart: the other columns of `KEPT_APART` hold the same in all of them."""

ENTRY_IDENTITY: Final = ("stream", "shard", "key", "device", "incarnation", "nonce")
"""The same of variables."""

PARTITION_PANES: Final = 1_024
"""Panes that a partition of `lattice` holds at least; it always holds whole days. So twenty
years of hours are 171 partitions, and each is soon rewritten where one of its panes has changed."""

_OF_A_PANE: Final = {name: literal(str(value)) for name, value in {**ABSENT, "kind": PANE}.items()}
"""What columns that a pane has no use for hold in it, as SQL text; those not here are NULL."""

_OWNER = ("kind", "stream", "key", "device", "lander")
SHARD: Final = ("stream", "device", "shard")
"""What a frame of a variable holds whole: its newest version replaces all others."""
_LIFE = "shiftleft(incarnation, 32) | nonce"
_HASH_BITS = 23
"""Bits of a payload's hash below its seq: with a seq below 2**40 they fill a signed 64-bit long."""


def joined(rows: DataFrame, names: Sequence[str], beside: Sequence[str] = ()) -> DataFrame:
    """Return one row for each (entry, replica): its greatest.

    A promise keeps a row for each version, so that `received_us` stays the time at which that
    version first landed: repeats do not make a device look alive. Every member command and
    every tick keeps its row.

    Args:
        rows: rows of `landing` or `lattice`; they may repeat.
        names: the fold columns.
        beside: further columns, in which rows are kept apart too.
    """
    payload = (*REPLACED, *names)
    ordered = rows.selectExpr(
        *KEPT_APART,
        *beside,
        "seq",
        "received_us",
        *map(identifier, payload),
        f"{_order(payload)} AS _order",
        f"if({one_of('kind', (PANE, VARIABLE, CUT, MARK))}, 0, seq) AS _at_seq",
    )
    newest = _aggregates(
        "max(seq) AS seq",
        "min(received_us) AS received_us",
        *(f"max_by({name}, _order) AS {name}" for name in map(identifier, payload)),
    )
    grouped = ordered.groupBy(*KEPT_APART, *beside, "_at_seq").agg(*newest)
    return grouped.select(*LANDED, *beside, *map(identifier, names))


def joined_panes(rows: DataFrame, names: Sequence[str], beside: Sequence[str] = ()) -> DataFrame:
    """Return what `joined` gives for panes alone, grouped by the few columns that tell them apart.

    Args:
        rows: rows of `landing` or `lattice`, of panes only; they may repeat.
        names: the fold columns.
        beside: further columns, in which rows are kept apart too.
    """
    fields = [identifier(name) for name in names]
    ordered = rows.selectExpr(
        *PANE_IDENTITY, *beside, "received_us", *fields, f"{_order((*REPLACED, *names))} AS _order"
    )
    newest = _aggregates(
        f"shiftright(max(_order), {_HASH_BITS}) AS seq",
        "min(received_us) AS received_us",
        *(f"max_by({field}, _order) AS {field}" for field in fields),
    )
    kept = {*PANE_IDENTITY, "seq", "received_us"}
    columns = [
        name if name in kept else f"CAST({_OF_A_PANE.get(name, 'NULL')} AS {kind}) AS {name}"
        for name, kind in LANDED.items()
    ]
    return (
        ordered.groupBy(*PANE_IDENTITY, *beside).agg(*newest).selectExpr(*columns, *beside, *fields)
    )


def newest(
    rows: Selection, names: Sequence[str], identity: Sequence[str], kept: Sequence[str] = ()
) -> Selection:
    """Return what `joined` gives for rows of one kind, with fewer columns to group by.

    Columns: `identity`, `kept`, and the fold columns.

    Args:
        rows: rows of `landing` or `lattice`; they may repeat.
        names: the fold columns.
        identity: what tells rows of this kind apart.
        kept: columns among `seq` and those that are replaced.
    """
    payload = (*REPLACED, *names)
    ordered = rows.select(
        *identity, "seq", *map(identifier, payload), f"{_order(payload)} AS _order"
    )
    fields = [identifier(name) for name in (*kept, *names)]
    greatest = (f"max_by({name}, _order) AS {name}" for name in fields)
    return ordered.grouped(identity, greatest)


def latest(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return one row for each owner's entry: that with its greatest version.

    Args:
        rows: what `joined` gives, of kinds that replace each other.
        names: the fold columns.
    """
    beside = [column for column in LANDED if column not in {*_OWNER, "incarnation", "nonce"}]
    fields = [identifier(name) for name in (*beside, *names)]
    in_replica = (f"max_by({field}, seq) AS {field}" for field in fields)
    replicas = rows.groupBy(*_OWNER, "incarnation", "nonce").agg(*_aggregates(*in_replica))
    greatest = (
        f"max_by({field}, {_LIFE}) AS {field}" for field in ("incarnation", "nonce", *fields)
    )
    newest = replicas.groupBy(*_OWNER).agg(*_aggregates(*greatest))
    return newest.select(*LANDED, *map(identifier, names))


def standing(rows: Selection) -> Selection:
    """Return the rows of variables that stand: those of each shard's newest version.

    A device's frame holds a shard whole, so a key that is missing in the newest is gone, and an
    older row of it does not count.

    Args:
        rows: rows of `landing` or `lattice`, of variables only; they may repeat.
    """
    lives = rows.select(*SHARD, f"{_LIFE} AS life", "seq")
    replicas = lives.grouped([*SHARD, "life"], ["max(seq) AS seq"])
    greatest = ["max(life) AS life", "max_by(seq, life) AS seq"]
    newest = replicas.grouped(SHARD, greatest).select("*", hint="SHUFFLE_HASH")
    same = " AND ".join(f"row.{name} = newest.{name}" for name in (*SHARD, "seq"))
    at = f"{same} AND ({_LIFE}) = newest.life"
    return rows.alias("row").join(newest.alias("newest"), at, "LEFT SEMI").select("row.*")


def with_date(rows: DataFrame, windows: Iterable[Window]) -> DataFrame:
    """Return the rows with `pane_date`, by which `lattice` is partitioned: a partition's first day.

    What has a time and is no pane, such as an entry of the log, is on the day of the epoch.

    Args:
        rows: rows of `landing`.
        windows: the program's.
    """
    several = {window.stream: _days(window) for window in windows if _days(window) > 1}
    cases = " ".join(f"WHEN {stream} THEN {days * DAY_US}" for stream, days in several.items())
    length_us = f"(CASE stream {cases} ELSE {DAY_US} END)" if cases else str(DAY_US)
    pane_us = f"if({one_of('kind', [PANE])}, pane_us, 0)"
    days = f"CAST(({pane_us} - pmod({pane_us}, {length_us})) div {DAY_US} AS INT)"
    return rows.withColumn(PANE_DATE, sql.expr(f"date_add({day(0)}, {days})"))


def _aggregates(*expressions: str) -> list[SqlColumn]:
    return [sql.expr(expression) for expression in expressions]


def _days(window: Window) -> int:
    """Return how many days of a window's panes are in one partition."""
    return -(-PARTITION_PANES * window.span_us // DAY_US)


def _order(payload: Iterable[str]) -> str:
    """Return what orders the rows of one (entry, replica): the seq, then a hash of the payload."""
    # Hash functions pass over NULL, and (NULL, 1) must differ from (1, NULL).
    shown = (f"{name}, {name} IS NULL" for name in map(identifier, payload))
    tie = f"xxhash64({', '.join(shown)}) & {2**_HASH_BITS - 1}"
    return f"shiftleft(seq, {_HASH_BITS}) | ({tie})"
