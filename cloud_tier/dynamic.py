"""Dynamic folds in the cloud: the same combination as on every device, with the same `inputs`.

`inputs` is a sum modulo 2**64 of one hash an entry (`lasp_edge.inputs`), so Spark computes it with
its own `sha2`. Equal `inputs`, equal value: a row is appended only where `inputs` is new.
"""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from cloud_tier import merge
from cloud_tier.plan import FoldPlan
from lasp_edge.inputs import MODULUS, text_hash

_IDENTITY = ("name", "key")
_RECORD = (*_IDENTITY, "inputs", "devices_in", "stream")
_SEPARATOR = "\x1f"


def values(entries: DataFrame, folds: Iterable[FoldPlan]) -> DataFrame:
    """Return each fold's value over the entries of all devices.

    Columns: name, key, inputs (a decimal), devices_in, stream, and the parts of all these folds.

    Args:
        entries: `merge.latest` of the variables: one row a device and key.
        folds: the program's dynamic folds.
    """
    each = (_value(entries, fold) for fold in folds)
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), each)


def current(rows: DataFrame, folds: Iterable[FoldPlan]) -> DataFrame:
    """Return the newest row of each of the folds: its revision, inputs and stream."""
    wanted = reduce(or_, (sql.col("name") == fold.name for fold in folds))
    inputs = sql.conv("inputs", 16, 10).cast("decimal(20,0)")
    return (
        rows.where(wanted)
        .groupBy(*_IDENTITY)
        .agg(
            sql.max("revision").alias("revision"),
            sql.max_by(inputs, "revision").alias("inputs"),
            sql.max_by("stream", "revision").alias("stream"),
        )
    )


def revisions(values: DataFrame, current: DataFrame) -> DataFrame:
    """Return the rows to append: the values whose inputs differ from the current row's."""
    both = values.alias("new").join(current.alias("old"), list(_IDENTITY), "left")
    differs = reduce(
        or_,
        (~sql.col(f"new.{n}").eqNullSafe(sql.col(f"old.{n}")) for n in ("inputs", "stream")),
    )
    revision = sql.coalesce(sql.col("old.revision") + 1, sql.lit(0))
    digits = sql.conv(sql.col("new.inputs").cast("string"), 10, 16)
    return both.where(differs).select(
        *_IDENTITY,
        *(f"new.{name}" for name in values.columns if name not in _RECORD),
        sql.lower(sql.lpad(digits, 16, "0")).alias("inputs"),
        "new.devices_in",
        revision.cast("int").alias("revision"),
        "new.stream",
    )


def _value(entries: DataFrame, fold: FoldPlan) -> DataFrame:
    names = [part.name for part in fold.parts]
    constant = (text_hash("") + text_hash(str(fold.stream))) % MODULUS
    digest = (sql.sum(_entry_hash(names)) + _unsigned(constant)) % _unsigned(MODULUS)
    grouped = entries.where(sql.col("stream") == fold.source_stream).groupBy("key")
    combined = grouped.agg(
        digest.cast("decimal(20,0)").alias("inputs"),
        sql.count(sql.lit(1)).cast("int").alias("devices_in"),
        *merge.combined(fold.parts),
    )
    own = (sql.lit(fold.name).alias("name"), "key", "inputs", "devices_in")
    return combined.select(*own, sql.lit(fold.stream).alias("stream"), *names)


def _entry_hash(names: Iterable[str]) -> Column:
    """Return `lasp_edge.inputs.entry_hash` of a row, as a decimal."""
    version = ("incarnation", "nonce", "seq")
    shown = [sql.coalesce(sql.col(n).cast("string"), sql.lit("")) for n in (*version, *names)]
    text = sql.concat_ws(_SEPARATOR, "key", "device", *shown)
    digits = sql.substring(sql.sha2(text.cast("binary"), 256), 1, 16)
    return sql.conv(digits, 16, 10).cast("decimal(20,0)")


def _unsigned(number: int) -> Column:
    return sql.lit(str(number)).cast("decimal(38,0)")
