"""A lake's tables as the driver holds them open: read and appended without Spark.

A step's results are some hundred rows. Through Spark a commit costs a plan, a job and a pass over
the whole table's log; through `deltalake` it costs 10 ms, and what few rows a step needs of a
table come by SQL in 40. A table that is held open reads only the commits that are new to it.

Only one driver may merge into a lake: two that each append what differs from the rows that they
read would append it twice. So the first opening of a table is a commit, by which Delta refuses the
commits of every older driver, wherever that runs, and also where it read before and was held up
since. The fence is Delta's transaction id of an application:

    version of the application `FENCE`  =  epoch of the driver * 2**32 + number of the commit

An epoch belongs to one driver, because the commit that takes it can be made once. Each commit of a
driver is made on top of the last one of its own epoch, and Delta refuses two commits of one
application that do not know of each other. What only puts files together as they are is not fenced:
it changes no row, and Delta itself refuses it where a file was replaced meanwhile.

Each commit also states up to which version of `landing` its batch reads, and how far the other
tables had come by then (`cloud_tier.lake.statements`).

Source: Delta Lake, "Delta Transaction Log Protocol", section "Transaction Identifiers",
https://github.com/delta-io/delta/blob/master/PROTOCOL.md.
"""

from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from cloud_tier.lake.feed import is_changed_by_others
from cloud_tier.lake.query import selected
from cloud_tier.lake.statements import is_restore, statement_text
from cloud_tier.lake.tables import LakeTables
from lasp_edge.errors import CommandError

FENCE: Final = "lasp-edge cloud"
"""The application whose transactions fence the commits of jobs."""
_EPOCH_BITS: Final = 32
"""Below an epoch: at a commit a second they last for a hundred years."""

_PACKED_BYTES = 4 << 20
"""Up to this size files are put together: some 200,000 rows, which are written in 0.1 s."""


class Superseded(CommandError):  # noqa: N818 - it says what happened
    """Another driver merges into the lake since; the text says so."""


class TableRestored(CommandError):  # noqa: N818 - it says what happened
    """Somebody restored a table, or changed its rows, while a job merges; the text names it."""


class OpenTables:
    """The tables of a lake, each opened once; those that only a job writes to are fenced.

    Args:
        lake: where they are.

    Attributes:
        landed: the version of `landing` up to which the present batch reads; None where that is
            unknown. Each commit states it.
        store: the id of the store that `landing` is of. Each commit states it, too.
    """

    def __init__(self, lake: LakeTables) -> None:
        self._lake = lake
        self._open: dict[str, DeltaTable] = {}
        self._epoch: int | None = None
        self._stated: dict[str, int] = {}
        self.landed: int | None = None
        self.store = ""
        self.packed: set[str] = set()
        """The partitions of `lattice` that were put together as they were since they were joined,
        as ISO text: one file may hold repeats."""

    def __reduce__(self) -> tuple[Any, ...]:
        return OpenTables, (self._lake,)

    def claim(self) -> None:
        """Have Delta refuse the commits of every older driver from now on.

        Raises:
            Superseded: a newer driver has claimed the lake.
        """
        for path in self._lake.merged:
            self.next_commit(path)

    def check(self) -> None:
        """Check that the lake is still this driver's, if it has claimed it.

        Raises:
            Superseded: a newer driver has claimed the lake.
            LakeUnreadable: a table cannot be read.
        """
        if self._epoch is not None and self._newest_epoch(0) > self._epoch:
            raise self._superseded()

    def table(self, path: str) -> DeltaTable:
        """Return a table as of its newest commit.

        Raises:
            TableRestored: somebody has restored it since it was opened, put a copy in its place,
                or changed its rows.
        """
        table = self._open.get(path)
        if table is None:
            if path in self._lake.merged:
                self._claim(path)
            table = self._open[path] = self._lake.table(path)
        else:
            before = table.version()
            self._update(path, table)
            if table.version() > before:
                self._check_restored(table, table.version() - before)
        return table

    def _update(self, path: str, table: DeltaTable) -> None:
        """Read the commits that are new; after a failure the next call opens what is there then."""
        try:
            table.update_incremental()
        except DeltaError:
            del self._open[path]
            if self._lake.table(path).version() < table.version():
                name = _name(path)
                raise TableRestored(f"the table {name} was put back while the job runs") from None
            raise

    def _claim(self, path: str) -> None:
        """Commit this driver's epoch to a table: the first table decides whose epoch is whose."""
        first = self._lake.merged[0]
        if self._epoch is None and path != first:
            self.table(first)
        while True:
            table = self._lake.table(path)
            known = table.transaction_version(FENCE) or 0
            epoch = self._epoch or self._newest_epoch(known) + 1
            if known >> _EPOCH_BITS > epoch:
                raise self._superseded()
            try:
                nothing = pa.schema(table.schema().to_arrow()).empty_table()
                self._write(path, table, nothing, max(known + 1, epoch << _EPOCH_BITS))
            except CommitFailedError:
                continue  # another driver was quicker; its epoch is known now
            self._epoch = epoch
            return

    def _newest_epoch(self, known: int) -> int:
        """Return the newest epoch, also where somebody took the first table away."""
        others = [self._lake.table(path).transaction_version(FENCE) for path in self._lake.merged]
        return max(known, *(each or 0 for each in others)) >> _EPOCH_BITS

    def _check_restored(self, table: DeltaTable, commits: int) -> None:
        name = _name(table.table_uri)
        for commit in table.history(commits):
            if is_restore(commit):
                raise TableRestored(f"the table {name} was restored while the job runs")
            if is_changed_by_others(table, commit["version"]):
                raise TableRestored(f"rows of the table {name} were changed while the job runs")

    def _superseded(self) -> Superseded:
        return Superseded(
            f"another `lasp-edge cloud` merges into {self._lake.root} since; this one ends, and "
            "nothing that it had not committed by then is in the lake"
        )

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
        number = self.next_commit(path)
        try:
            self._write(path, self._open[path], rows, number, frontier)
        except CommitFailedError:
            self.next_commit(path)  # says whether another driver is the reason
            raise

    def next_commit(self, path: str) -> int:
        """Return the number that fences the next commit to a table.

        Raises:
            Superseded: a newer driver has claimed the lake.
        """
        known = self.table(path).transaction_version(FENCE) or 0
        if known >> _EPOCH_BITS != self._epoch:
            raise self._superseded()
        return known + 1

    def check_committed(self, path: str, number: int) -> None:
        """Check that Spark has made a commit: what has a lower number than another, it passes over.

        Raises:
            Superseded: a newer driver has claimed the lake.
        """
        if self.table(path).transaction_version(FENCE) != number:
            raise self._superseded()
        self._note(path)

    def statement(self, path: str, frontier: int | None = None) -> str:
        """Return what a commit to a table states, as its metadata; empty for nothing."""
        others = self._stated if path == self._lake.merged[0] else {}
        return statement_text(self.landed, others, frontier, self.store)

    def _write(
        self, path: str, table: DeltaTable, rows: pa.Table, number: int, frontier: int | None = None
    ) -> None:
        text = self.statement(path, frontier)
        properties = CommitProperties(
            custom_metadata={"userMetadata": text} if text else {},
            app_transactions=[Transaction(FENCE, number)] if path in self._lake.merged else [],
        )
        write_deltalake(
            table, rows, mode="append", schema_mode="merge", commit_properties=properties
        )
        self._note(path)

    def _note(self, path: str) -> None:
        """Note how far a table has come: `lattice` states it of the others."""
        if self.landed is not None:
            self._stated[_name(path)] = self.landed

    def files(self, path: str) -> pa.Table:
        """Return the table's data files: `path`, `num_records`, its partition and statistics."""
        return pa.table(self.table(path).get_add_actions(flatten=True))

    def pack(self, path: str, target_bytes: int = _PACKED_BYTES) -> None:
        """Put small files together: a step opens each file that may hold rows which it needs."""
        self.table(path).optimize.compact(target_size=target_bytes)

    def vacuum(self, path: str) -> None:
        """Delete files that no version within the retention needs, and what dead writers left."""
        self.table(path).vacuum(dry_run=False, full=True)


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
