"""A lake's results as Arrow tables: windows, fleet-wide values, streams' results; no Spark.

One class for all of them, since all are tables of revisions: a row is one revision of one entry,
rows are only ever appended, and the row of an entry with the greatest `revision` is current.

    current      the newest revision of each entry
    revisions    all of them
    changes      those that were appended after a version of the table
    spark_frame  the newest revisions, read by Spark itself

Rows of `windows` and `results` carry the frontier at which they were appended, so what was known at
an earlier frontier is a condition on rows: the newest revision among those at most that old. It
needs no old version of the table, and holds however often the table was compacted.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import compute

from cloud_tier.lake.feed import COMMIT, AppendedRows, appended_since
from cloud_tier.lake.lowering import lowered
from cloud_tier.lake.query import selected
from cloud_tier.lake.readable import as_pandas, readable
from cloud_tier.lake.shapes import SHAPES, are_rows_of, rows_of
from cloud_tier.lake.sqltext import (
    identifier,
    literal,
    newest_of,
    standard_identifier,
    standard_literal,
)
from cloud_tier.lake.tables import LakeTables
from lasp_edge.language.described import ResultDefinition
from lasp_edge.language.shown_names import shown_names
from lasp_edge.tool.times import Time, microseconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Choice(TypedDict, total=False):
    """Which rows and columns of a window or result are wanted: all of them by default.

    Attributes:
        key: only this key.
        since: only windows that start, and rows that date from, then or later.
        until: only windows that start, and rows that date from, before then.
        as_of: as the table was when results were final up to this time and no further.
        columns: only these, in this order.
    """

    key: str | None
    since: Time | None
    until: Time | None
    as_of: Time | None
    columns: Sequence[str] | None


class RevisedRows:
    """The rows of one window, one dynamic fold or one result.

    Args:
        tables: of the lake.
        meaning: what the rows mean.

    Attributes:
        meaning: the same.
    """

    def __init__(self, tables: LakeTables, meaning: ResultDefinition) -> None:
        self.tables, self.meaning = tables, meaning
        shape = SHAPES[meaning.kind]
        self._path = f"{tables.root}/{shape.table}"
        there = {field.name for field in tables.table(self._path).schema().fields}
        # An earlier release wrote fewer columns; the job's next start adds the others.
        self._shape = shape._replace(after=tuple(name for name in shape.after if name in there))
        self.columns = (*self._shape.before, *meaning.value_columns, *self._shape.after)

    @property
    def table(self) -> DeltaTable:
        """The lake's table in which they are, as it is now.

        >>> lake.windows("temperature_by_room").table.metadata().name  # doctest: +SKIP
        'windows'
        """
        return self.tables.table(self._path)

    def spark_frame(self, spark: "SparkSession") -> "DataFrame":
        """Return the current rows as a frame that Spark reads by itself, on all its machines.

        Its columns are those that are stored: integers, and bytes of sketches. A mean is
        `total_q / count` times the resolution; `current` has it ready.

        Args:
            spark: a session that reads Delta tables (`cloud_tier.spark.session.spark_session`).
        """
        stored = [*self._shape.before, *self.meaning.columns, *self._shape.after]
        listed = ", ".join(map(identifier, stored))
        named, name = identifier(self._shape.named), literal(self.meaning.name)
        query = newest_of(
            f"delta.{identifier(self._path)}",
            listed,
            f"{named} = {name} AND {rows_of(self.meaning)}",
            ", ".join(self._shape.entry),
        )
        return spark.sql(query)

    def changes(self, since_version: int | None = None) -> AppendedRows:
        """Return the rows that were appended after a version of the table.

        >>> appended = lake.windows("temperature_by_room").changes()  # doctest: +SKIP
        >>> appended.rows.num_rows, appended.version  # doctest: +SKIP
        (3, 1)

        For a consumer downstream: it keeps `version` of what it got, and asks with that the next
        time. Each row comes once, whatever was compacted in between; a row replaces the one of
        the same entry whose `revision` is smaller.

        Args:
            since_version: what an earlier call returned; None for all rows there are.

        Returns:
            The rows in the order of their commits, with the columns of `revisions` and
            `commit_version`; and the version up to which they are.

        Raises:
            NotFound: there is no such lake, or a commit after that version is deleted already
                (the table's log is kept for 30 days, replaced files for 7); ask without a
                version then.
            ValueError: the table has not come to that version.
        """
        table = self.table
        if since_version is None:
            rows = self._rows((), None, all_revisions=True, table=table)
            versions = pa.array([table.version()] * rows.num_rows, COMMIT.type)
            return AppendedRows(rows.append_column(COMMIT, versions), table.version())
        stored = [*self._stored(self.columns), self._shape.named, "stream"]
        found = appended_since(table, since_version, list(dict.fromkeys(stored)))
        is_ours = compute.and_(
            compute.equal(found.column(self._shape.named), self.meaning.name),
            are_rows_of(self.meaning, found),
        )
        order = (COMMIT.name, *self._shape.entry, "revision")
        ours = found.filter(is_ours).sort_by([(name, "ascending") for name in order])
        rows = self._finished(ours, self.columns)
        return AppendedRows(rows.append_column(COMMIT, ours.column(COMMIT.name)), table.version())

    def _rows(
        self,
        conditions: Sequence[str],
        columns: Sequence[str] | None,
        *,
        all_revisions: bool,
        table: DeltaTable | None = None,
    ) -> pa.Table:
        wanted = self.columns if columns is None else tuple(columns)
        unknown = [name for name in wanted if name not in self.columns]
        if unknown:
            raise ValueError(f"no column {unknown[0]!r}; there are: {', '.join(self.columns)}")
        named, name = standard_identifier(self._shape.named), standard_literal(self.meaning.name)
        where = " AND ".join([f"{named} = {name}", rows_of(self.meaning), *conditions])
        listed = ", ".join(map(standard_identifier, self._stored(wanted)))
        entry = ", ".join(self._shape.entry)
        query = newest_of("source", listed, where, entry, all_revisions=all_revisions)
        query += f" ORDER BY {entry}, revision"
        source = self.table if table is None else table
        return self._finished(selected(source, query), wanted)

    def _stored(self, wanted: Sequence[str]) -> list[str]:
        """Return the stored columns from which the wanted ones are made."""
        parts = set(wanted) - {*self._shape.before, *self._shape.after, *self.meaning.columns}
        values = self.meaning.columns if parts else ()
        needed = {*wanted, *values} - parts
        order = (*self._shape.before, *self.meaning.columns, *self._shape.after)
        return [name for name in order if name in needed]

    def _finished(self, stored: pa.Table, wanted: Sequence[str]) -> pa.Table:
        """Return the wanted columns, in their order."""
        found = dict(zip(stored.column_names, stored.columns, strict=True))
        if not set(wanted) <= found.keys():
            found |= lowered(stored, self.meaning)
        return pa.table({name: found[name] for name in wanted})


class TimedRows(RevisedRows):
    """Rows that have a time each: those of a window or of a stream's result."""

    def current(self, **only: Unpack[Choice]) -> pa.Table:
        """Return the newest row of each entry, sorted by key and time; none that was taken back.

        >>> rows = lake.windows("temperature_by_room").current(key="attic")  # doctest: +SKIP
        >>> rows.select(["mean", "status"]).to_pylist()  # doctest: +SKIP
        [{'mean': 21.5, 'status': 'revised'}]

        Files and columns that this leaves out are not read.

        Args:
            only: `key`, `since`, `until`, `as_of`, `columns`, as `Choice` says.

        Raises:
            NotFound: there is no such lake.
            ValueError: there is no such column, or a time has no zone.
        """
        return self._chosen(**only)

    def revisions(self, **only: Unpack[Choice]) -> pa.Table:
        """Return all rows of each entry, sorted by key, time and `revision`.

        >>> rows = lake.windows("temperature_by_room").revisions(key="attic")  # doctest: +SKIP
        >>> rows.column("mean").to_pylist()  # doctest: +SKIP
        [21.75, 21.5]

        Args and errors are those of `current`.
        """
        return self._chosen(**only, all_revisions=True)

    def readable(self, **only: Unpack[Choice]) -> pa.Table:
        """Return what `current` does with times as times, and values as doubles in their unit.

        >>> rows = lake.windows("temperature_by_room").readable()  # doctest: +SKIP
        >>> rows.column("start").to_pylist()[0].isoformat()  # doctest: +SKIP
        '2026-01-05T08:00:00+00:00'

        The schema's metadata, and `attrs` in pandas, have the name, and the event's unit if it has
        one.
        """
        about = {self._shape.named: self.meaning.name, "unit": self.meaning.unit}
        known = {name: text for name, text in about.items() if text}
        return readable(self._chosen(**only), known, shown_names(self.columns, self.meaning))

    def to_pandas(self, **only: Unpack[Choice]) -> Any:
        """Return what `readable` does as a frame of pandas, which has to be installed.

        >>> lake.windows("temperature_by_room").to_pandas()["mean"].tolist()  # doctest: +SKIP
        [21.5, 12.0]
        """
        return as_pandas(self.readable(**only))

    def _chosen(
        self,
        *,
        key: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        as_of: Time | None = None,
        columns: Sequence[str] | None = None,
        all_revisions: bool = False,
    ) -> pa.Table:
        found = [] if since is None else [f"{self._shape.time} >= {microseconds(since)}"]
        found += [] if until is None else [f"{self._shape.time} < {microseconds(until)}"]
        found += [] if as_of is None else [known_at(microseconds(as_of))]
        return self._of_key(key, found, columns, all_revisions=all_revisions)

    def _of_key(
        self,
        key: str | None,
        conditions: list[str],
        columns: Sequence[str] | None,
        *,
        all_revisions: bool,
    ) -> pa.Table:
        """Return the rows of a key, None for all, under further conditions."""
        return self._rows(_of_key(key) + conditions, columns, all_revisions=all_revisions)


class WindowRows(TimedRows):
    """A window's rows: one for each key and start, in as many revisions as it changed.

    | column | type | what it is |
    |---|---|---|
    | `key` | string | what the window is kept by; "" without a key |
    | `start_us`, `end_us` | int64 | [start, end) in microseconds since the epoch |
    | a part, such as `mean` | float64, int64 or bool | the fold's value in the event's unit; null \
where there is no sample, or the fold is the program's own |
    | an integer, such as `total_q` | decimal(38, 0) if it is a total or a count, else int64 | \
stored and exact; `_q`: in steps of the event's resolution |
    | a sketch, such as `distinct_hll12` | binary | an image that other tools can join |
    | the record | int32, int64, string | how the row came about: the last fields of \
`lasp_edge.protocol.window_rows.FleetRow`; `devices_in` have readings of the key, and \
`devices_expected` are those of the whole fleet that counted; of the devices that are missing the \
first eight names, with commas between, in `excluded`, and how many there are in \
`devices_awaited` (a tentative row waits for them) or `devices_excluded` (any other is made \
without them); null in rows of a lake that an earlier release wrote |

    Attributes:
        columns: the names, in this order.
    """

    def newest_start_us(self) -> int | None:
        """Return when the last window starts, in microseconds; None where there is no row.

        >>> lake.windows("temperature_by_room").newest_start_us()  # doctest: +SKIP
        1767600000000000

        Raises:
            NotFound: there is no such lake.
        """
        name = standard_literal(self.meaning.name)
        where = f'"window" = {name} AND {rows_of(self.meaning)}'
        query = f"SELECT max(start_us) AS newest FROM source WHERE {where}"  # noqa: S608 - quoted
        found: list[int | None] = selected(self.table, query).column("newest").to_pylist()
        return found[0]


class StreamRows(TimedRows):
    """The rows of a stream's result: one for each place in the stream, in revisions.

    | column | type | what it is |
    |---|---|---|
    | `device` | string | the device whose readings the row was made from |
    | `key` | string | the key of the scan that made it; "" without a key |
    | `time_us` | int64 | its time, by the readings' own times |
    | `place` | string | where it stands in the order of its device: texts are ordered as rows are |
    | a part, such as `difference` | int64, float64 or string | the part, in its unit |
    | a part in steps, such as `difference_q` | int64 | stored and exact |
    | `present` | bool | false where it was taken back: then the parts are null |
    | `status` | string | "tentative", "final" or "revised" |
    | `revision` | int32 | 0, 1, 2, ...: how often the row had changed |
    | `frontier` | int64 | how far results were final when the row was written, in microseconds; \
null before anything was |
    | `excluded`, and two counts | as in `WindowRows` | devices missing in a row over the fleet |

    Attributes:
        columns: the names, in this order.
    """

    def _of_key(
        self,
        key: str | None,
        conditions: list[str],
        columns: Sequence[str] | None,
        *,
        all_revisions: bool,
    ) -> pa.Table:
        wanted = self.columns if columns is None else tuple(columns)
        needed = dict.fromkeys((*wanted, "key", "present", *self._shape.entry, "revision"))
        found = self._rows(conditions, tuple(needed), all_revisions=all_revisions)
        # A row may have gone from one key to another: the newest row decides.
        if key is not None:
            found = found.filter(compute.equal(found.column("key"), key))
        if not all_revisions:
            found = found.filter(found.column("present"))
        order = [(name, "ascending") for name in ("key", *self._shape.entry, "revision")]
        return found.sort_by(order).select(wanted)


class ValueRows(RevisedRows):
    """The fleet-wide values of one dynamic fold: one row for each key, in revisions.

    | column | type | what it is |
    |---|---|---|
    | `name` | string | the fold's |
    | `key` | string | what the fold is kept by; "" without a key |
    | parts, integers, sketches | as in `WindowRows` | the value |
    | `devices_in` | int32 | devices with an entry; 0: nobody has the key any more |
    | `inputs` | string | a digest of the entries that the value was made from; a device that \
shows the same has made it from the same |
    | `revision` | int32 | 0, 1, 2, ... |

    Attributes:
        columns: the names, in this order.
    """

    def current(self, *, key: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the newest row of each key, sorted by key.

        >>> lake.values("global_average").current(columns=["mean"]).num_rows  # doctest: +SKIP
        0

        Args:
            key: only this key.
            columns: only these, in this order.

        Raises:
            NotFound: there is no such lake.
            ValueError: there is no such column.
        """
        return self._rows(_of_key(key), columns, all_revisions=False)

    def revisions(
        self, *, key: str | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return all rows of each key, sorted by key and `revision`; else as `current`.

        >>> lake.values("global_average").revisions().num_rows  # doctest: +SKIP
        0
        """
        return self._rows(_of_key(key), columns, all_revisions=True)


def _of_key(key: str | None) -> list[str]:
    return [] if key is None else [f"key = {standard_literal(key)}"]


def known_at(frontier_us: int) -> str:
    """Return whether a row was there when the frontier was here, as SQL text."""
    return f"(frontier IS NULL OR frontier <= {frontier_us})"
