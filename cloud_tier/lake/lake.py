"""A lake as analysts see it: its windows, its fleet-wide values, and how complete they are.

Reads with `deltalake` and `pyarrow` alone, which the extra `lake` brings: no Spark, no Java, no
program. Rows come as an Arrow table, which other tools take over without a copy:

    table = Lake("lake").windows("temperature_by_room").current(key="attic", columns=["start_us"])
    table.to_pandas()                      # pandas
    polars.from_arrow(table)               # Polars; DuckDB reads the variable `table` by its name
    Lake("lake").windows("temperature_by_room").spark_frame(spark)     # on a cluster
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from cloud_tier.lake.coverage import DEAD_AFTER_S, DeviceCoverage, fleet_coverage
from cloud_tier.lake.definitions import definitions, shared_meanings
from cloud_tier.lake.query import selected
from cloud_tier.lake.results import StreamRows, ValueRows, WindowRows, known_at
from cloud_tier.lake.shapes import rows_of
from cloud_tier.lake.shared import SharedValues
from cloud_tier.lake.sqltext import any_of, newest_of, standard_literal
from cloud_tier.lake.tables import LakeTables
from lasp_edge.errors import NotFound
from lasp_edge.language.described import FOLD, RESULT, WINDOW, ResultDefinition
from lasp_edge.tool.times import Time, microseconds

_Defined = TypeVar("_Defined")

_DEVICES = pa.schema(
    [
        pa.field("device", pa.string()),
        pa.field("state", pa.string()),
        pa.field("low_us", pa.int64()),
        pa.field("heard_us", pa.int64()),
        pa.field("holds", pa.bool_()),
    ]
)


class Lake:
    """Reads the results of one lake.

    >>> rows = Lake("lake").windows("temperature_by_room")  # doctest: +SKIP
    >>> rows.current(columns=["key", "mean"]).to_pandas()  # doctest: +SKIP
            key  mean
    0     attic  21.5
    1    cellar  12.0

    Args:
        path: the directory or URL that `lasp-edge cloud --lake` was given. Of an object store,
            deltalake takes the credentials from the environment (such as `AWS_REGION`).

    Attributes:
        tables: where its Delta tables are.
    """

    def __init__(self, path: str | Path) -> None:
        self.tables = LakeTables(path)

    def window_names(self) -> list[str]:
        """Return the names of the windows in the lake, sorted.

        >>> lake.window_names()  # doctest: +SKIP
        ['temperature_by_room']

        Raises:
            NotFound: there is no such lake.
        """
        return list(definitions(self.tables, WINDOW))

    def value_names(self) -> list[str]:
        """Return the names of the fleet-wide values in the lake, sorted.

        >>> lake.value_names()  # doctest: +SKIP
        ['global_average']

        Raises:
            NotFound: there is no such lake.
        """
        return list(definitions(self.tables, FOLD))

    def windows(self, name: str) -> WindowRows:
        """Return the rows of a window, by the window's name in the program.

        >>> rows = lake.windows("temperature_by_room")  # doctest: +SKIP
        >>> rows.current(columns=["key", "mean"]).to_pylist()  # doctest: +SKIP
        [{'key': 'attic', 'mean': 21.5}, {'key': 'cellar', 'mean': 12.0}]

        Raises:
            NotFound: there is no such lake, or no such window in it.
        """
        return WindowRows(self.tables, self._meaning(WINDOW, name, "window"))

    def values(self, name: str) -> ValueRows:
        """Return the fleet-wide values of a dynamic fold, by the fold's name in the program.

        >>> lake.values("global_average").current().column_names[:4]  # doctest: +SKIP
        ['name', 'key', 'mean', 'count']

        Raises:
            NotFound: there is no such lake, or no such fold in it.
        """
        return ValueRows(self.tables, self._meaning(FOLD, name, "fleet-wide value"))

    def result_names(self) -> list[str]:
        """Return the names of the streams' results in the lake, sorted.

        >>> lake.result_names()  # doctest: +SKIP
        ['risen']

        Raises:
            NotFound: there is no such lake.
        """
        return list(definitions(self.tables, RESULT))

    def results(self, name: str) -> StreamRows:
        """Return the rows of a stream's result, by the stream's name in the program.

        >>> lake.results("risen").current().column_names[:5]  # doctest: +SKIP
        ['device', 'key', 'time_us', 'place', 'difference']

        Raises:
            NotFound: there is no such lake, or no such result in it.
        """
        return StreamRows(self.tables, self._meaning(RESULT, name, "result"))

    def shared_names(self) -> list[str]:
        """Return the names of the shared variables in the lake, sorted.

        >>> lake.shared_names()  # doctest: +SKIP
        ['opened']

        Raises:
            NotFound: there is no such lake.
        """
        return list(shared_meanings(self.tables))

    def shared(self, name: str) -> SharedValues:
        """Return the value of a shared variable, by its name in the program.

        >>> lake.shared("opened").value  # doctest: +SKIP
        frozenset()

        Raises:
            NotFound: there is no such lake, or no such variable in it.
        """
        return SharedValues(
            self.tables, self._known(shared_meanings(self.tables), name, "shared variable")
        )

    def table_as_of(self, frontier: Time) -> pa.Table:
        """Return the table of all windows as it was when results were final up to a time.

        >>> lake.table_as_of(1_767_600_060_000_000).column("status").to_pylist()  # doctest: +SKIP
        ['final', 'final']

        Rows are the current ones of that moment, sorted by (window, key, start_us): `final` ones
        end at the frontier or before it, others were still `tentative`. The columns are those of
        `WindowRows` with integers only, and `window`; a column that a window lacks is null.

        Args:
            frontier: microseconds since the epoch, or an aware datetime. The job's frontier moves
                in steps (`frontiers`): the last one up to this time counts.

        Raises:
            NotFound: there is no such lake.
            ValueError: a datetime without a time zone.
        """
        table = self.tables.table(self.tables.windows)
        named = [
            f'("window" = {standard_literal(name)} AND {rows_of(meaning)})'
            for name, meaning in definitions(self.tables, WINDOW).items()
        ]
        where = f"{any_of(named) if named else 'false'} AND {known_at(microseconds(frontier))}"
        names = [field.name for field in table.schema().fields if field.name != "stream"]
        listed = ", ".join(f'"{name}"' for name in names)
        entry = '"window", key, start_us'
        return selected(table, f"{newest_of('source', listed, where, entry)} ORDER BY {entry}")

    def frontiers(self) -> list[int]:
        """Return every frontier at which windows were written, ascending, in microseconds.

        >>> lake.frontiers()  # doctest: +SKIP
        [1767600060000000, 1767600120000000]

        Raises:
            NotFound: there is no such lake.
        """
        query = "SELECT DISTINCT frontier FROM source WHERE frontier IS NOT NULL ORDER BY frontier"
        found = selected(self.tables.table(self.tables.windows), query)
        frontiers: list[int] = found.column("frontier").to_pylist()
        return frontiers

    def coverage(
        self, *, roster: Collection[str] | None = None, dead_after_s: float = DEAD_AFTER_S
    ) -> pa.Table:
        """Return how far each device has come, sorted by device.

        >>> lake.coverage().column_names  # doctest: +SKIP
        ['device', 'state', 'low_us', 'heard_us', 'holds']

        | column | type | what it is |
        |---|---|---|
        | `device` | string | its name |
        | `state` | string | "live", "never heard", "done", "not waited for" or "retired" |
        | `low_us` | int64 | it will send nothing older, microseconds since the epoch; null where \
it cannot promise that |
        | `heard_us` | int64 | when a lander first heard so; null where it never did |
        | `holds` | bool | whether results cannot become final before this device goes on |

        Args:
            roster: the devices that are expected, as given to `lasp-edge cloud --roster`.
            dead_after_s: in seconds, as given to `lasp-edge cloud --dead-after`.

        Raises:
            NotFound: there is no such lake.
        """
        found = fleet_coverage(self.tables, roster, round(dead_after_s * 1e6)).devices
        columns = list(zip(*found, strict=True)) or [()] * len(DeviceCoverage._fields)
        return pa.table(list(map(list, columns)), schema=_DEVICES)

    def _meaning(self, kind: str, name: str, what: str) -> ResultDefinition:
        return self._known(definitions(self.tables, kind), name, what)

    def _known(self, known: Mapping[str, _Defined], name: str, what: str) -> _Defined:
        if name not in known:
            there = ", ".join(known) or "none"
            raise NotFound(f"no {what} {name!r} in {self.tables.root}; there are: {there}")
        return known[name]
