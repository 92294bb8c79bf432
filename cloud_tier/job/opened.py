"""A lake's tables as the driver holds them open: read and appended without Spark.

A step's results are some hundred rows. Through Spark a commit costs a plan, a job and a pass over
the whole table's log; through `deltalake` it costs 10 ms, and what few rows a step needs of a
table come by SQL in 40. A table that is held open reads only the commits that are new to it.
"""

import json
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from cloud_tier.lake.query import selected
from cloud_tier.lake.tables import LakeTables

_PACKED_BYTES = 4 << 20
"""Up to this size files are put together: some 200,000 rows, which are written in 0.1 s."""


class OpenTables:
    """The tables of a lake, each opened once.

    Args:
        lake: where they are.
    """

    def __init__(self, lake: LakeTables) -> None:
        self._lake = lake
        self._open: dict[str, DeltaTable] = {}
        self.packed: set[str] = set()
        """The partitions of `lattice` that were put together as they were since they were joined,
        as ISO text: one file may hold repeats."""

    def __reduce__(self) -> tuple[Any, ...]:
        return OpenTables, (self._lake,)

    def table(self, path: str) -> DeltaTable:
        """Return a table as of its newest commit."""
        table = self._open.get(path)
        if table is None:
            table = self._open[path] = self._lake.table(path)
        else:
            table.update_incremental()
        return table

    def select(self, path: str, query: str) -> pa.Table:
        """Return what a query gives.

        Args:
            path: of a table.
            query: a SELECT in DataFusion's dialect, from `source`.
        """
        return selected(self.table(path), query)

    def append(self, path: str, rows: pa.Table, frontier: int | None = None) -> None:
        """Append rows in one commit, if there are any.

        Args:
            path: of a table.
            rows: with columns of the table, in any order; the others are NULL.
            frontier: is recorded with the commit.
        """
        if not rows.num_rows:
            return
        metadata = {} if frontier is None else {"userMetadata": json.dumps({"frontier": frontier})}
        properties = CommitProperties(custom_metadata=metadata)
        write_deltalake(
            self.table(path), rows, mode="append", schema_mode="merge", commit_properties=properties
        )

    def files(self, path: str) -> pa.Table:
        """Return the table's data files: `path`, `num_records`, its partition and statistics."""
        return pa.table(self.table(path).get_add_actions(flatten=True))

    def pack(self, path: str, target_bytes: int = _PACKED_BYTES) -> None:
        """Put small files together: a step opens each file that may hold rows which it needs."""
        self.table(path).optimize.compact(target_size=target_bytes)
