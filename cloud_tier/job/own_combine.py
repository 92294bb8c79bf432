"""Folds that combine by themselves: Spark runs their Python over batches of Arrow, group by group.

A fold is its columns and their ops, and Spark's own operators combine it. One that says
`combines_itself` means more than ops can say: its partials are brought together by group and given
to its `combine`, in Python's workers. A program without such a fold pays nothing for this.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

from cloud_tier.lake.sqltext import identifier, literal
from lasp_edge.errors import UsageError
from lasp_edge.folds.columns import Column, Op, Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.language.plan import Plan

OwnFolds = Mapping[int, Fold]
"""The folds that combine by themselves, by the stream of their rows."""

_ARROW: Final = {
    "BIGINT": pa.int64(),
    "BINARY": pa.binary(),
    "DECIMAL(38,0)": pa.decimal128(38, 0),
}


def of_streams(streams: Iterable[int]) -> str:
    """Return whether a row is of one of these streams, as SQL text."""
    return f"stream IN ({', '.join(f'{stream}L' for stream in sorted(streams))})"


def totals(
    rows: DataFrame,
    keys: Sequence[str],
    columns: Sequence[Column],
    folds: OwnFolds,
    is_partial: str = "true",
    *beside: str,
) -> DataFrame:
    """Return one row for each group of `keys`: its total, and what else is asked of it.

    Args:
        rows: with the keys and the columns; of the streams of `folds` only.
        keys: `stream` and others.
        columns: the program's; those that a fold lacks are NULL.
        folds: combine the partials.
        is_partial: which rows are partials, as SQL text.
        beside: further aggregates over all rows, as SQL text.
    """
    named = [identifier(column.name) for column in columns]
    partial = f"named_struct({_fields(columns)})"
    grouped = rows.groupBy(*keys).agg(
        sql.expr(f"collect_list(if({is_partial}, {partial}, NULL)) AS partials"),
        *map(sql.expr, beside),
    )
    types = {column.name: _type(column) for column in columns}
    schema = ", ".join(f"{identifier(name)}: {type_}" for name, type_ in types.items())
    struct = f"STRUCT<{schema}>"
    combine = arrow_udf(_combining(types, folds), struct, ArrowUDFType.SCALAR)
    found = grouped.withColumn("total", combine("stream", "partials"))
    return found.selectExpr("* EXCEPT (partials, total)", *(f"total.{name}" for name in named))


def check(spark: SparkSession, plan: Plan) -> None:
    """Check that Spark's workers can load the folds that combine by themselves.

    Raises:
        UsageError: they cannot.
    """
    folds = [window.fold for window in plan.windows.values()]
    folds += [fold.fold for fold in plan.dynamic_folds.values()]
    own = {at: fold for at, fold in enumerate(folds) if fold.combines_itself}
    if not own:
        return
    probe = spark.range(1).select(arrow_udf(_loading(own), "BIGINT", ArrowUDFType.SCALAR)("id"))
    try:
        probe.collect()
    except PySparkException:
        names = ", ".join(sorted({type(fold).__module__ for fold in own.values()}))
        raise UsageError(
            f"Spark's machines cannot import {names}, whose folds combine by themselves: install "
            "it there, or give it with --conf spark.submit.pyFiles=FILE"
        ) from None


def _loading(folds: OwnFolds) -> Callable[[pa.Array], pa.Array]:
    def load(numbers: pa.Array) -> pa.Array:
        for fold in folds.values():
            fold.combine(fold.zero, fold.zero)
        return numbers

    return load


def _combining(
    types: Mapping[str, str], folds: OwnFolds
) -> Callable[[pa.Array, pa.Array], pa.Array]:
    arrow = {name: _ARROW[type_] for name, type_ in types.items()}

    def combine(streams: pa.Array, groups: pa.Array) -> pa.Array:
        totals = []
        for stream, group in zip(streams.to_pylist(), groups.to_pylist(), strict=True):
            fold = folds[stream]
            names = fold.columns_named
            partials: list[Partial] = [
                tuple([partial[name] for name in names]) for partial in group
            ]
            total: Partial = reduce(fold.combine, partials, fold.zero)
            totals.append(dict(zip(names, total, strict=True)))
        columns = [
            pa.array([_exact(each.get(name), type_) for each in totals], type_)
            for name, type_ in arrow.items()
        ]
        return pa.StructArray.from_arrays(
            columns, fields=list(map(pa.field, arrow, arrow.values()))
        )

    return combine


def _exact(value: Any, type_: pa.DataType) -> Any:
    return Decimal(value) if pa.types.is_decimal(type_) and value is not None else value


def _fields(columns: Sequence[Column]) -> str:
    return ", ".join(f"{literal(column.name)}, {identifier(column.name)}" for column in columns)


def _type(column: Column) -> str:
    if column.op is Op.SUM:
        return "DECIMAL(38,0)"
    return "BINARY" if column.binary else "BIGINT"
