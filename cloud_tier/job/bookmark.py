"""A bookmark: what a driver knew at a version of each table, so that a start reads on from there.

The newest row of a value may lie anywhere in years of `globals`, and no new row tells of a window
or a result that has been quiet for long that the frontier has passed it. So now and then a driver
appends what it knows to `lattice`, as rows of the kind `bookmark`; those of the greatest `seq`
count:

    of each window, result and value    `stream`; `now_us`: the frontier has passed it up to there;
                                        `control`: the version of its table; `since_us`: when that
                                        was committed, in milliseconds
    of each current row of a value      `lander`: the value's name; `stream` and `key`; the row's
                                        revision and number of devices in `incarnation` and
                                        `nonce`, its inputs in `changed`; `done`: these are all

A start adds what was appended to a table after its version. Where somebody deleted or replaced rows
of the table since, or the program had no such window, the bookmark does not count, and the table is
read whole: once, as a bookmark is put then.
"""

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cloud_tier.job.dynamic import CurrentRow, CurrentRows, current, current_rows
from cloud_tier.job.job import Job
from cloud_tier.lake.feed import appended_since, committed_ms, is_replaced_since
from cloud_tier.lake.tables import ABSENT, BOOKMARK, arrow_schema
from lasp_edge.errors import NotFound
from lasp_edge.protocol.lake_columns import LANDED, PANE_DATE, VALUE_IDENTITY

MOST_COMMITS: Final = 200
"""Commits of a table behind a bookmark, at most, until a start puts another one: each is a file."""
_IS_BOOKMARK: Final = f"{PANE_DATE} = DATE '1970-01-01' AND kind = '{BOOKMARK}'"
_SIGN: Final = 1 << 63
_WORD: Final = 1 << 64
_COLUMNS: Final = (*VALUE_IDENTITY, *CurrentRow._fields)


class Bookmark(NamedTuple):
    """What a driver knew.

    Attributes:
        versions: path of a table -> its version then; without those of which nothing counts.
        passed_us: stream of a window, result or value -> how far the frontier had passed it.
        values: the current rows of values.
        complete: whether these are all of them.
    """

    versions: Mapping[str, int]
    passed_us: Mapping[int, int | None]
    values: CurrentRows
    complete: bool

    def passed(self, path: str, streams: Iterable[int]) -> dict[int, int | None]:
        """Return how far the frontier had passed each stream of a table, where that is known."""
        known = self.passed_us if path in self.versions else {}
        return {stream: known[stream] for stream in streams if stream in known}


def stored_bookmark(job: Job) -> Bookmark:
    """Return the newest bookmark of a lake, as far as it counts."""
    named = ", ".join(LANDED)
    query = (
        f"SELECT {named} FROM (SELECT {named}, max(seq) OVER () AS newest FROM source "  # noqa: S608
        f"WHERE {_IS_BOOKMARK}) WHERE seq = newest"
    )
    rows = job.tables.select(job.lake.lattice, query).to_pylist()
    heads = [row for row in rows if not row["lander"]]
    values = [row for row in rows if row["lander"]]
    paths = _paths(job)
    noted = {path: row for row in heads if (path := paths.get(row["stream"])) is not None}
    return Bookmark(
        {path: row["control"] for path, row in noted.items() if _counts(job, path, row)},
        {row["stream"]: row["now_us"] for row in heads},
        {(row["lander"], row["key"]): _current(row) for row in values},
        all(row["done"] for row in values),
    )


def known_values(job: Job, bookmark: Bookmark) -> tuple[CurrentRows, bool]:
    """Return the current rows of values, and whether these are all of them."""
    path = job.lake.globals
    streams = [fold.stream for fold in job.folds]
    if not streams:
        return {}, True
    if len(bookmark.passed(path, streams)) == len(streams):
        table = job.tables.table(path)
        try:
            later = appended_since(table, bookmark.versions[path], _COLUMNS)
        except NotFound:  # its files are deleted by now
            pass
        else:
            names = {fold.name for fold in job.folds}
            rows = later.filter(pc.is_in(later["name"], pa.array(sorted(names))))
            known = {at: row for at, row in bookmark.values.items() if at[0] in names}
            known.update(current_rows(rows.sort_by("revision")))
            return known, bookmark.complete
    return current_rows(job.tables.select(path, current(job.folds))), True


def is_due(job: Job) -> bool:
    """Return whether a start is to put a bookmark: it had none for all, or one that lies far back.

    The next start would have to read as much.
    """
    bookmark = stored_bookmark(job)
    return any(
        stream not in bookmark.passed(path, [stream])
        or job.tables.table(path).version() - bookmark.versions[path] > MOST_COMMITS
        for stream, path in _paths(job).items()
    )


def put_bookmark(job: Job, frontier_us: int | None, values: CurrentRows, *, complete: bool) -> None:
    """Append what a driver knows after a step.

    Args:
        job: the program over the lake.
        frontier_us: how far results are final; None for nothing yet.
        values: the current rows of values.
        complete: whether these are all of them.
    """
    absent = dict.fromkeys(LANDED) | dict(ABSENT) | {"kind": BOOKMARK, "received_us": 0}
    absent |= {"seq": _newest(job) + 1, PANE_DATE: date(1970, 1, 1)}
    rows = []
    for stream, path in _paths(job).items():
        table = job.tables.table(path)
        noted = {"control": table.version(), "since_us": committed_ms(table, table.version())}
        rows.append(absent | noted | {"stream": stream, "now_us": frontier_us})
    rows += [
        absent
        | {"lander": name, "key": key, "stream": row.stream, "incarnation": row.revision}
        | {"nonce": row.devices_in, "changed": _signed(row.inputs), "done": complete}
        for (name, key), row in values.items()
    ]
    schema = arrow_schema(LANDED).append(pa.field(PANE_DATE, pa.date32()))
    job.tables.append(job.lake.lattice, pa.Table.from_pylist(rows, schema))


def is_newest_bookmark(job: Job) -> str:
    """Return which rows of `lattice` are those of the newest bookmark, as SQL."""
    return f"(kind = '{BOOKMARK}' AND seq = {_newest(job)})"


def _newest(job: Job) -> int:
    query = f"SELECT max(seq) AS seq FROM source WHERE {_IS_BOOKMARK}"  # noqa: S608 - ours
    newest: int | None = job.tables.select(job.lake.lattice, query).column("seq").to_pylist()[0]
    return newest or 0


def _paths(job: Job) -> dict[int, str]:
    """Return the table of each stream whose rows a start looks for."""
    lake = job.lake
    several = ((lake.windows, job.windows), (lake.results, job.results), (lake.globals, job.folds))
    return {each.stream: path for path, of_table in several for each in of_table}


def _counts(job: Job, path: str, noted: Mapping[str, Any]) -> bool:
    """Return whether a table still holds all rows that it had at the version that was noted."""
    table, version = job.tables.table(path), noted["control"]
    if version > table.version() or committed_ms(table, version) != noted["since_us"]:
        return False
    return not is_replaced_since(table, version)


def _current(row: Mapping[str, Any]) -> CurrentRow:
    return CurrentRow(
        row["incarnation"], f"{row['changed'] % _WORD:016x}", row["stream"], row["nonce"]
    )


def _signed(inputs: str) -> int:
    """Return hexadecimal digits as a signed number of 64 bits."""
    return (int(inputs, 16) + _SIGN) % _WORD - _SIGN
