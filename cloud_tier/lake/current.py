"""A Delta table of current rows, for tools that know nothing of a lake.

It has what `readable` gives: a row for each window and key, or for each row of a stream, with times
as timestamps and parts as doubles in the event's unit. It is partitioned by the day, in UTC, of
`start` or `time`, in the column `day` (`day_utc` where a part is called `day`), and columns have
comments. Who writes it again rewrites the days of which a row was appended since; all days where
rows were deleted from the lake, or a table was put back. A table of one lake is no table of
another, also of a copy.
"""

import json
from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError
from pyarrow import compute

from cloud_tier.lake.comments import comment, part_comment
from cloud_tier.lake.feed import committed_ms, is_replaced_since
from cloud_tier.lake.results import TimedRows
from cloud_tier.lake.shapes import SHAPES
from lasp_edge.errors import NotFound, UsageError
from lasp_edge.language.shown_names import free_name, shown_names
from lasp_edge.units import SECOND_US

DAY: Final = "day"
_MARK: Final = "lasp-edge current"
"""The key in a commit's metadata under which stands what the table was made from, as JSON."""


_OF_LAKE: Final = ("lake", "id")
"""What tells lakes apart, in a mark: a copy of a lake has the id of the first one."""


class WrittenRows(NamedTuple):
    """What was written.

    Attributes:
        rows: how many.
        days: of how many days they are; all other days stayed as they were.
        is_new: something was written.
    """

    rows: int
    days: int
    is_new: bool = True


def write_current(rows: TimedRows, path: str, *, replaces: bool = False) -> WrittenRows:
    """Write the table of current rows, or renew it.

    Args:
        rows: of a window, or of a stream's result.
        path: the table's directory, or its address in an object store.
        replaces: it may be a table of the same name that was made from another lake.

    Raises:
        NotFound: there is no such lake.
        UsageError: another table is there, or that of another result or another lake.
    """
    source = rows.table
    version = source.version()
    mark = {
        "lake": rows.tables.root,
        "id": rows.tables.lake_id(),
        "name": rows.meaning.name,
        "definition": rows.meaning.definition,
        "version": version,
        "committed_ms": committed_ms(source, version),
    }
    former = _former(path, rows.meaning.name)
    if former is not None and any(former.get(each) != mark[each] for each in _OF_LAKE):
        if not replaces:
            raise UsageError(_other_lake(path, former, mark))
        former = {}
    days = _days_changed(rows, source, former)
    if days is not None and not days:
        return WrittenRows(0, 0, is_new=False)
    found = _of_days(rows, days)
    if days is not None and (fitted := _fitted(found, path)) is None:
        days, found = None, _of_days(rows, None)
    elif days is not None:
        found = fitted
    listed, by_day = ", ".join(f"'{day}'" for day in sorted(days or ())), _day_column(rows)
    write_deltalake(
        path,
        found,
        partition_by=[by_day],
        mode="overwrite",
        schema_mode="overwrite" if days is None else None,
        predicate=None if days is None else f"{by_day} IN ({listed})",
        name=rows.meaning.name,
        description=_about(rows),
        commit_properties=CommitProperties(custom_metadata={_MARK: json.dumps(mark)}),
    )
    return WrittenRows(found.num_rows, len(set(found.column(by_day).to_pylist())))


def _need_room(path: str) -> None:
    """Raise `UsageError` where something else is there: a file, a lake, or any other files."""
    if "://" in path:
        return
    there = Path(path)
    if not path or there.is_file():
        raise UsageError(f"a directory is needed for the table, not {path!r}")
    if there.is_dir() and not (there / "_delta_log").is_dir() and any(there.iterdir()):
        raise UsageError(f"{path} holds something else; name an empty or a new directory")


def _former(path: str, name: str) -> dict[str, Any] | None:
    """Return what the table there was made from; None where there is no table."""
    _need_room(path)
    try:
        last = DeltaTable(path).history()
    except TableNotFoundError:
        return None
    marks = (commit[_MARK] for commit in last if _MARK in commit)
    found: dict[str, Any] = json.loads(next(marks, "{}"))
    if found.get("name") != name:
        whose = f"current rows of {found['name']!r}" if found else "another table"
        raise UsageError(f"{path} holds {whose}; name another directory for {name!r}")
    return found


def _other_lake(path: str, former: dict[str, Any], mark: dict[str, Any]) -> str:
    """Return that a table is of another lake: a copy has the id of the first one."""
    of = former.get("lake", "an unknown place")
    which = "which was another one" if of == mark["lake"] else f"not from {mark['lake']}"
    return (
        f"{path} was made from the lake {of}, {which}: name another directory, or add --replace "
        "where the table is to be of this lake from now on"
    )


def _fitted(rows: pa.Table, path: str) -> pa.Table | None:
    """Return rows in the types of a table's columns; None where they do not fit."""
    there = pa.schema(DeltaTable(path).schema().to_arrow())
    if there.names != rows.column_names:
        return None
    try:
        return rows.cast(there)
    except pa.ArrowInvalid:  # a count that is greater than all before
        return None


def _days_changed(
    rows: TimedRows, source: DeltaTable, former: dict[str, Any] | None
) -> set[date] | None:
    """Return the days of which rows were appended since; None where all count as changed."""
    if former is None or former.get("definition") != rows.meaning.definition:
        return None
    version = former["version"]
    if (
        version > source.version()
        or committed_ms(source, version) != former["committed_ms"]
        or is_replaced_since(source, version)
    ):
        return None
    try:
        appended = rows.changes(version).rows
    except NotFound:
        return None
    return {_day(time_us) for time_us in set(appended.column(_time(rows)).to_pylist())}


def _time(rows: TimedRows) -> str:
    return SHAPES[rows.meaning.kind].time


def _day_column(rows: TimedRows) -> str:
    return free_name(DAY, shown_names(rows.columns, rows.meaning).values(), "_utc")


def _day(time_us: int) -> date:
    return datetime.fromtimestamp(time_us // SECOND_US, UTC).date()


def _of_days(rows: TimedRows, days: Collection[date] | None) -> pa.Table:
    """Return the current rows of some days, all of them for None, with their days."""
    if days is None:
        found = rows.readable()
    else:
        begin = datetime.combine(min(days), time(), UTC)
        end = datetime.combine(max(days), time(), UTC) + timedelta(days=1)
        found = rows.readable(since=begin, until=end)
    names = shown_names(rows.columns, rows.meaning)
    times = found.column(names[_time(rows)])
    day = times.cast(pa.timestamp("us")).cast(pa.date32())
    found = found.append_column(_day_column(rows), day)
    if days is not None:
        found = found.filter(compute.is_in(day, pa.array(sorted(days), pa.date32())))
    stored = {shown: name for name, shown in names.items()}
    stored[_day_column(rows)] = DAY
    return found.cast(
        pa.schema([_commented(each, stored[each.name], rows) for each in found.schema])
    )


def _commented(field: pa.Field, stored: str, rows: TimedRows) -> pa.Field:
    """Return a column with its comment, which is that of the stored column."""
    is_value = stored in set(rows.meaning.parts).difference(rows.meaning.columns)
    text = part_comment(stored, rows.meaning) if is_value else comment(stored)
    text = text.split(", microseconds")[0]
    if stored == DAY and pa.types.is_date(field.type):
        text = f"the day, in UTC, of {shown_names(rows.columns, rows.meaning)[_time(rows)]}"
    elif not text and field.name != stored:
        text = "a time of which the fold keeps a reading"
    elif not text:
        text = part_comment(stored, rows.meaning)
    return field.with_metadata({"comment": text})


def _about(rows: TimedRows) -> str:
    unit = f", of readings in {rows.meaning.unit}" if rows.meaning.unit else ""
    return f"the current rows of {rows.meaning.name!r}{unit}: `lasp-edge lake current` renews them"
