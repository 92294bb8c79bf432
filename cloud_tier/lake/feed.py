"""What was appended to a table after one of its versions: a change feed of a plain Delta table.

Delta's own change feed needs a writer of version 4, and the lake's tables are read and written by
version 2. The results' tables are only ever appended to, so the feed is in their log: the files
that a commit adds with new data. A compaction adds files without new data, and adds nothing here;
nor does a deletion, which writes the rows that stay once more, or a RESTORE.

Source: Delta Lake, "Delta Transaction Log Protocol", sections "Delta Log Entries" and "Add File
and Remove File", https://github.com/delta-io/delta/blob/master/PROTOCOL.md.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileType, PyFileSystem

from lasp_edge.errors import NotFound

COMMIT: Final = pa.field("commit_version", pa.int64())
"""The version of the table that a commit made, beside each row that it appended."""
COMMAND: Final = "lasp-edge command"
"""The key in the metadata of a commit that deletes, under which stands the command."""


class AppendedRows(NamedTuple):
    """Rows that were appended, and how far they go.

    Attributes:
        rows: with the column `commit_version`, in the order of their commits.
        version: what to ask with the next time.
    """

    rows: pa.Table
    version: int


def appended_since(table: DeltaTable, version: int, columns: Sequence[str]) -> pa.Table:
    """Return the rows that were appended after a version, and `commit_version` behind them.

    Args:
        table: rows are only ever appended to it.
        version: of the table.
        columns: those that are read.

    Raises:
        NotFound: a commit or a file after that version is deleted.
        ValueError: the table has not come to that version.
    """
    newest = table.version()
    if not 0 <= version <= newest:
        raise ValueError(f"no version {version} of {table.table_uri}; the newest is {newest}")
    known = pa.schema(table.schema().to_arrow())
    schema = pa.schema([known.field(name) for name in columns])
    files = PyFileSystem(DeltaStorageHandler(table.table_uri))
    pieces = [schema.append(COMMIT).empty_table()]
    try:
        for number in range(version + 1, newest + 1):
            for added in _added(files, number):
                piece = _read(files, added, schema)
                numbers = pa.array([number] * piece.num_rows, COMMIT.type)
                pieces.append(piece.append_column(COMMIT, numbers))
    except FileNotFoundError:
        raise NotFound(
            f"{table.table_uri}: what was appended after version {version} is partly deleted "
            f"already; read all of it, and go on from version {newest}"
        ) from None
    return pa.concat_tables(pieces)


def has_other_rows_since(
    table: DeltaTable, version: int, column: str, values: Collection[str]
) -> bool:
    """Return whether a row that was appended after a version has another value in a column.

    The oldest commits are read first, and none behind the first such row.

    Args:
        table: rows are only ever appended to it.
        version: of the table; -1: before the first.
        column: of text.
        values: those that do not count.

    Raises:
        NotFound: a commit or a file after that version is deleted.
    """
    schema = pa.schema([pa.field(column, pa.string())])
    files = PyFileSystem(DeltaStorageHandler(table.table_uri))
    try:
        return any(
            not set(values).issuperset(_read(files, added, schema).column(column).to_pylist())
            for number in range(version + 1, table.version() + 1)
            for added in _added(files, number)
        )
    except FileNotFoundError:
        raise NotFound(f"{table.table_uri}: what came after version {version} is gone") from None


def committed_ms(table: DeltaTable, version: int) -> int | None:
    """Return when a version of a table was committed, in milliseconds; None where that is unknown.

    It tells the version from the same one of another history, as a backup has it that was put back.
    """
    files = PyFileSystem(DeltaStorageHandler(table.table_uri))
    try:
        infos = [action.get("commitInfo", {}) for action in _actions(files, version)]
    except FileNotFoundError:
        return None
    return next((info["timestamp"] for info in infos if "timestamp" in info), None)


def newest_commits_us(
    table: DeltaTable, expected: Collection[str], least: int, most: int
) -> dict[str, int]:
    """Return when each application last committed to a table, in microseconds since the epoch.

    The log is read from its end, until all that are expected are found, or it is deleted.

    Args:
        table: its commits name their application in a transaction, or count for none.
        expected: applications.
        least: how many commits are read although all of them are found: others may be there.
        most: how many commits are read at most.
    """
    files, found = PyFileSystem(DeltaStorageHandler(table.table_uri)), dict[str, int]()
    newest = table.version()
    for number in range(newest, max(-1, newest - most), -1):
        if newest - number >= least and found.keys() >= set(expected):
            break
        try:
            actions = _actions(files, number)
        except FileNotFoundError:
            break
        times_ms = [each["commitInfo"].get("timestamp") for each in actions if "commitInfo" in each]
        for action in actions if times_ms and times_ms[0] is not None else ():
            if "txn" in action:
                found.setdefault(action["txn"]["appId"], times_ms[0] * 1000)
    return found


def is_replaced_since(table: DeltaTable, version: int) -> bool:
    """Return whether rows were deleted or replaced after a version, or may have been.

    It may where a commit after that version is deleted.
    """
    files = PyFileSystem(DeltaStorageHandler(table.table_uri))
    try:
        return any(
            _replaces(_actions(files, number)) for number in range(version + 1, table.version() + 1)
        )
    except FileNotFoundError:
        return True


def is_changed_by_others(table: DeltaTable, version: int) -> bool:
    """Return whether a commit deleted or replaced rows, and no command of ours made it."""
    files = PyFileSystem(DeltaStorageHandler(table.table_uri))
    try:
        actions = _actions(files, version)
    except FileNotFoundError:
        return False
    return _replaces(actions) and not any(COMMAND in each.get("commitInfo", {}) for each in actions)


def has_rows_between(table: DeltaTable, after: int, until: int) -> bool:
    """Return whether rows were appended behind a version, up to another one.

    Not where Delta has deleted the log of these commits: a query could not read on from there.
    """
    files = PyFileSystem(DeltaStorageHandler(table.table_uri))
    try:
        return any(any(_added(files, number)) for number in range(after + 1, until + 1))
    except FileNotFoundError:
        return False


class Deletion(NamedTuple):
    """A commit that a command of ours made, and that took rows out of a table.

    Attributes:
        command: which one, such as `lake forget`.
        time_ms: when, in milliseconds since the epoch.
    """

    command: str
    time_ms: int


def deleted_unread(table: DeltaTable, version: int, *, has_begun: bool) -> Deletion | None:
    """Return the newest deletion that took the files of commits which a reader has not read.

    None where all of them are there, or somebody else deleted them.

    Args:
        table: it was deleted from.
        version: up to which the reader has read.
        has_begun: of that version it has read a part only, or nothing.
    """
    files, found = PyFileSystem(DeltaStorageHandler(table.table_uri)), None
    unread = set[str]()
    for number in range(version + 1, table.version() + 1):
        try:
            actions = _actions(files, number)
        except FileNotFoundError:
            continue
        removed = [each["remove"]["path"] for each in actions if "remove" in each]
        info: dict[str, Any] = {}
        for action in actions:
            info.update(action.get("commitInfo", {}))
        wanted = [path for path in removed if has_begun or path in unread]
        if COMMAND in info and any(_is_gone(files, path) for path in wanted):
            found = Deletion(info[COMMAND], info["timestamp"])
        unread.update(each["add"]["path"] for each in actions if "add" in each)
    return found


def _is_gone(files: PyFileSystem, path: str) -> bool:
    return bool(files.get_file_info(unquote(path)).type == FileType.NotFound)


def _added(files: PyFileSystem, number: int) -> Iterator[dict[str, Any]]:
    """Yield the files that a commit added with new data, and that are no copies of others."""
    actions = _actions(files, number)
    for action in () if _replaces(actions) else actions:
        added = action.get("add")
        if added is not None and added["dataChange"]:
            yield added


def _actions(files: PyFileSystem, number: int) -> list[dict[str, Any]]:
    with files.open_input_stream(f"_delta_log/{number:020d}.json") as log:
        return [json.loads(line) for line in log.read().splitlines()]


def _replaces(actions: Sequence[dict[str, Any]]) -> bool:
    """Return whether a commit deleted or replaced rows, or put an earlier version in place."""
    return any(
        action.get("remove", {}).get("dataChange", False)
        or action.get("commitInfo", {}).get("operation") == "RESTORE"
        for action in actions
    )


def _read(files: PyFileSystem, added: dict[str, Any], schema: pa.Schema) -> pa.Table:
    """Return a file's rows; a column that it lacks is of its partition, or was not there yet."""
    with files.open_input_file(unquote(added["path"])) as opened:
        file = pq.ParquetFile(opened)
        stored = [name for name in schema.names if name in file.schema_arrow.names]
        found = file.read(columns=stored, use_threads=False)
    columns = []
    for field in schema:
        if field.name in stored:
            columns.append(found.column(field.name).cast(field.type))
        else:
            value = added.get("partitionValues", {}).get(field.name)
            columns.append(pa.array([value] * found.num_rows).cast(field.type))
    return pa.table(columns, schema=schema)
