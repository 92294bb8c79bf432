"""Dynamic folds in the cloud: the same combination as on every device, with the same `inputs`.

`inputs` is a sum modulo 2**64 of one hash an entry (`lasp_edge.inputs`), so Spark computes it with
its own `sha2`. Equal `inputs`, equal value: a row is appended only where `inputs` is new.
"""

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import DataFrame

from cloud_tier import merge
from cloud_tier.merge import aggregates, any_of, quoted, text
from cloud_tier.plan import FoldPlan
from lasp_edge.inputs import MODULUS, text_hash

_IDENTITY = ("name", "key")
_RECORD = (*_IDENTITY, "inputs", "devices_in", "stream")


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
    """Return the newest row of each of the folds: its revision, inputs (a decimal) and stream."""
    wanted = any_of(f"name = {text(fold.name)}" for fold in folds)
    newest = aggregates(
        "max(revision) AS revision",
        "max_by(CAST(conv(inputs, 16, 10) AS DECIMAL(20, 0)), revision) AS inputs",
        "max_by(stream, revision) AS stream",
    )
    return rows.where(wanted).groupBy(*_IDENTITY).agg(*newest)


def revisions(values: DataFrame, current: DataFrame) -> DataFrame:
    """Return the rows to append: the values whose inputs differ from the current row's."""
    both = values.alias("new").join(current.alias("old"), list(_IDENTITY), "left")
    differs = any_of(f"NOT (new.{name} <=> old.{name})" for name in ("inputs", "stream"))
    return both.where(differs).selectExpr(
        *_IDENTITY,
        *(f"new.{quoted(name)}" for name in values.columns if name not in _RECORD),
        "lower(lpad(conv(CAST(new.inputs AS STRING), 10, 16), 16, '0')) AS inputs",
        "new.devices_in",
        "coalesce(old.revision + 1, 0) AS revision",
        "new.stream",
    )


def _value(entries: DataFrame, fold: FoldPlan) -> DataFrame:
    constant = (text_hash("") + text_hash(str(fold.stream))) % MODULUS
    digest = f"pmod(sum({_entry_hash(fold)}) + {_unsigned(constant)}, {_unsigned(MODULUS)})"
    record = aggregates(
        f"CAST({digest} AS DECIMAL(20, 0)) AS inputs", "CAST(count(1) AS INT) AS devices_in"
    )
    grouped = entries.where(f"stream = {fold.source_stream}L").groupBy("key")
    return grouped.agg(*record, *merge.combined(fold.parts)).selectExpr(
        f"{text(fold.name)} AS name",
        "key",
        "inputs",
        "devices_in",
        f"{fold.stream}L AS stream",
        *(quoted(part.name) for part in fold.parts),
    )


def _entry_hash(fold: FoldPlan) -> str:
    """Return `lasp_edge.inputs.entry_hash` of a row, as a decimal."""
    fields = ["incarnation", "nonce", "seq", *(quoted(part.name) for part in fold.parts)]
    shown = ", ".join(f"coalesce(CAST({field} AS STRING), '')" for field in fields)
    entry = f"concat_ws('\\u001f', key, device, {shown})"
    digits = f"substring(sha2(CAST({entry} AS BINARY), 256), 1, 16)"
    return f"CAST(conv({digits}, 16, 10) AS DECIMAL(20, 0))"


def _unsigned(number: int) -> str:
    return f"CAST('{number}' AS DECIMAL(38, 0))"
