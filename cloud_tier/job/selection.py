"""Rows as the text of one query, which Spark analyses once.

A step is some forty relational operators. As a call on a `DataFrame` each of them would cross to
the JVM a dozen times. So operators are put together as text here, and `Selection.frame` gives Spark
the whole.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Selection:
    """Rows that Spark can compute.

    Attributes:
        spark: the session that has the views which the text names.
        source: what stands after FROM: a view, a query in parentheses, or a join of such.
        condition: which of these rows, as SQL text; empty for all.
    """

    spark: SparkSession
    source: str
    condition: str = ""

    def select(self, *columns: str, hint: str = "") -> "Selection":
        """Return these columns of the rows.

        Args:
            columns: SQL text.
            hint: for Spark's planner, as it stands between `/*+` and `*/`.
        """
        return self._query(columns, hint=hint)

    def where(self, condition: str) -> "Selection":
        """Return the rows for which a condition holds."""
        both = f"({self.condition}) AND ({condition})" if self.condition else condition
        return Selection(self.spark, self.source, both)

    def grouped(self, keys: Sequence[str], aggregates: Iterable[str]) -> "Selection":
        """Return one row for each value of some columns: these columns, then the aggregates."""
        return self._query([*keys, *aggregates], f" GROUP BY {', '.join(keys)}")

    def alias(self, name: str) -> "Selection":
        """Return the rows under a name, to be joined."""
        rows = self.select("*") if self.condition else self
        return Selection(self.spark, f"{rows.source} AS {name}")

    def join(self, other: "Selection", on: str | Sequence[str], how: str = "INNER") -> "Selection":
        """Return both joined, to be selected from.

        Args:
            other: rows without a condition.
            on: when rows belong together, as SQL text; or columns in which they are equal.
            how: the kind of join in SQL.
        """
        rows = self.select("*") if self.condition else self
        at = f"ON {on}" if isinstance(on, str) else f"USING ({', '.join(on)})"
        return Selection(self.spark, f"{rows.source} {how} JOIN {other.source} {at}")

    def union(self, other: "Selection") -> "Selection":
        """Return the rows of both, whose columns are the same in the same order."""
        return Selection(self.spark, f"({self.text} UNION ALL {other.text})")

    def frame(self) -> DataFrame:
        """Return the rows as Spark computes them; the query is analysed here."""
        return self.spark.sql(self.text)

    @property
    def text(self) -> str:
        """The query, as SQL text."""
        return f"SELECT * FROM {self._restricted}"  # noqa: S608 - of our own names

    @property
    def _restricted(self) -> str:
        return f"{self.source} WHERE {self.condition}" if self.condition else self.source

    def _query(self, columns: Iterable[str], end: str = "", hint: str = "") -> "Selection":
        hinted = f"/*+ {hint} */ " if hint else ""
        text = f"SELECT {hinted}{', '.join(columns)} FROM {self._restricted}{end}"  # noqa: S608
        return Selection(self.spark, f"({text})")
