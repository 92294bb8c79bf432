"""How rows come into Spark: few of them in one task and without generated code, many as they lie.

The operators are the same; only how Spark runs them differs. Spark compiles a plan into classes,
10 ms each, which pays for millions of rows and never for a few thousand. And it moves rows between
tasks, unless all of them are in one. So a step over few rows is one task a query, compiles nothing
and asks Spark's planner for nothing that depends on the data: what varies from step to step (which
windows, how far the frontier has come) are rows of small frames, not literals.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.pandas.types import from_arrow_schema

from cloud_tier.job.selection import Selection

MOST_ROWS: Final = 250_000
"""Rows up to which a step reads them into the driver: some 50 MB, the step of 10,000 devices with
20 windows each. A thousand rows cost 0.08 to 0.1 CPU-seconds in one task, however many they are.
The other way, plans for many rows, costs 12 before the first row, so it pays far above that.
All ask for it by `most_rows`, so that there is one limit, also where a test lowers it."""

_SLOWER: Final = (
    *(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}"
        for rule in (
            "BooleanSimplification",
            "ConstantPropagation",
            "EliminateOuterJoin",
            "FoldablePropagation",
            "InferFiltersFromConstraints",
            "InferFiltersFromGenerate",
            "InjectRuntimeFilter",
            "OptimizeOneRowRelationSubquery",
            "PruneFilters",
            "PushDownLeftSemiAntiJoin",
            "RemoveRedundantAliases",
            "ReorderAssociativeOperator",
            "SimplifyBinaryComparison",
            "SimplifyConditionals",
            "UnwrapCastInBinaryComparison",
        )
    ),
    "org.apache.spark.sql.delta.metric.OptimizeConditionalIncrementMetric",
    "org.apache.spark.sql.delta.optimizer.RangePartitionIdRewrite",
)
"""Spark's and Delta's rules that cost more than they save where rows are few: they move rows
between tasks again, optimize the whole plan a second time, find nothing in a step's queries, or
simplify what few rows are computed with."""
_FEW: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.optimizer.excludedRules": ",".join(_SLOWER),
}
MANY: Final[dict[str, str]] = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "64",
}
"""On one machine, whose session is set for small batches: many rows on all cores, each task's in
memory, and no more tasks than they fill. A cluster keeps its own settings."""


def most_rows() -> int:
    """Return up to how many rows a step reads them into the driver."""
    return MOST_ROWS


@dataclass(frozen=True)
class Frames:
    """Gives queries the rows that the driver holds.

    Attributes:
        spark: a session.
        few: whether all that the frames are joined with is small too.
    """

    spark: SparkSession
    few: bool
    _views: list[str] = field(default_factory=list)

    def rows(self, table: pa.Table) -> Selection:
        """Return rows that others are joined with."""
        # Spark Connect's client reads the types off the rows, and an empty table has no rows.
        schema = None if table.num_rows else from_arrow_schema(table.schema)
        frame = self.spark.createDataFrame(table, schema)
        hint = "SHUFFLE_HASH, COALESCE(1)" if self.few else "BROADCAST"
        return self.view(frame).select("*", hint=hint)

    def view(self, frame: DataFrame) -> Selection:
        """Return the rows of a frame, by a view that lasts until `close`."""
        name = f"_rows_{len(self._views)}"
        self._views.append(name)
        frame.createOrReplaceTempView(name)
        return Selection(self.spark, name)

    def resolved(self, rows: Selection) -> Selection:
        """Return rows of which Spark has resolved all names.

        It does so in rounds over the whole of a query, one for each level of it: a query of some
        levels that are resolved already costs half as much.
        """
        return self.view(rows.frame())

    def close(self) -> None:
        """Drop the views, and so what they hold."""
        for name in self._views:
            self.spark.catalog.dropTempView(name)
        self._views.clear()


@contextmanager
def frames(spark: SparkSession, *, few: bool = True) -> Iterator[Frames]:
    """Give the session the settings for few rows or for many, and take them back."""
    conf = spark.conf
    settings = _FEW if few else MANY if _is_local(conf) else {}
    before = {name: conf.get(name, None) for name in settings}
    before = {name: value for name, value in before.items() if value != settings[name]}
    for name in before:
        conf.set(name, settings[name])
    made = Frames(spark, few)
    try:
        yield made
    finally:
        made.close()
        for name, value in before.items():
            if value is None:
                conf.unset(name)
            else:
                conf.set(name, value)


def _is_local(conf: RuntimeConfig) -> bool:
    return (conf.get("spark.master", "") or "").startswith("local")


def at_most(rows: DataFrame, most: int) -> pa.Table | None:
    """Return the rows; None where there are more than `most`."""
    found = rows.coalesce(1).limit(most + 1).toArrow()
    return None if found.num_rows > most else found
