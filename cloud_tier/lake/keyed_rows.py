"""Rows of results that belong to a key: in `landing` and `lattice` they have the key within.

The column `key` of such an entry tells rows of one time apart, and is no key of the program. Of
several versions of a row the newest counts: where one of the key goes, so does what is older.

    >>> from lasp_edge.ordered.sent_rows import packed_row
    >>> is_of_key(packed_row((20, "pi-1", ("litres", "", 130), (0,)), "attic", (30,)), "attic")
    True
    >>> is_of_key(packed_row((20, "pi-1", ("attic", "", 130), (0,)), "", (30,)), "attic")
    False
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable

from cloud_tier.lake.query import selected
from cloud_tier.lake.tables import PANE, arrow_schema
from lasp_edge.ordered.plain import encoded
from lasp_edge.ordered.sent_rows import row_at
from lasp_edge.protocol.lake_columns import LANDED, RESULT_ROW


class NewestOfKey(NamedTuple):
    """Where a row of a key is stored, and its newest version; named as the table's columns."""

    stream: int
    device: str
    pane_us: int
    key: str
    incarnation: int
    nonce: int
    seq: int


_PLACE: Final = NewestOfKey._fields[:4]
_OLDER: Final = (
    "(held.incarnation < gone.incarnation OR (held.incarnation = gone.incarnation AND "
    "(held.nonce < gone.nonce OR (held.nonce = gone.nonce AND held.seq <= gone.seq))))"
)
"""Whether a row that is held has the version of one that is to go, or an older one."""
_SAME: Final = " AND ".join(f"held.{name} = gone.{name}" for name in _PLACE)

_ROW: Final = "stream, device, place"
"""What tells the rows of `results` apart, but for their revisions."""
_REPLACED: Final = (
    "held.stream = gone.stream AND held.device = gone.device AND held.place = gone.place AND "
    "held.revision < gone.revision"
)


def is_of_key(packed: bytes, key: str) -> bool:
    """Return whether a packed row belongs to a key."""
    return row_at(0, "", packed).key == key


def has_own_key(table: DeltaTable) -> str:
    """Return which rows have a key of the program in their column `key`, as SQL."""
    return f"{RESULT_ROW} IS NULL" if _can_hold_rows(table) else "true"


def newest_of_key(table: DeltaTable, where: str, key: str) -> list[NewestOfKey]:
    """Return the rows of results that belong to a key: of each the newest version that does.

    Args:
        table: `landing` or `lattice`.
        where: which of its rows, as SQL.
        key: of the rows.
    """
    if not _can_hold_rows(table):
        return []
    may_be = f"strpos(encode({RESULT_ROW}, 'hex'), '{encoded(key).hex()}') > 0"
    query = (
        f"SELECT {', '.join(NewestOfKey._fields)}, {RESULT_ROW} FROM source "  # noqa: S608 - quoted
        f"WHERE {where} AND {RESULT_ROW} IS NOT NULL AND {may_be}"
    )
    found: dict[tuple[Any, ...], NewestOfKey] = {}
    columns = selected(table, query).columns
    for *entry, packed in zip(*(column.to_pylist() for column in columns), strict=True):
        if is_of_key(packed, key):
            row = NewestOfKey(*entry)
            found[row[:4]] = max(row, found.get(row[:4], row))
    return sorted(found.values())


def delete_rows(table: DeltaTable, rows: Sequence[NewestOfKey], by: CommitProperties) -> int:
    """Delete rows of results, and what is older at their places; return how many entries went.

    Args:
        table: `landing` or `lattice`.
        rows: at most one of each place.
        by: what the commit states.

    Raises:
        CommitFailedError: another commit came first.
    """
    schema = arrow_schema({name: LANDED[name] for name in NewestOfKey._fields})
    gone = pa.Table.from_pylist([row._asdict() for row in rows], schema)
    return _delete_matched(table, gone, f"held.kind = '{PANE}' AND {_SAME} AND {_OLDER}", by)


def delete_replaced(where: str, table: DeltaTable, by: CommitProperties) -> int:
    """Delete the rows of `results` that rows which are to go have replaced; return how many went.

    They may have another key, and would be the current ones without those.

    Args:
        where: which rows are to go, as SQL.
        table: `results`.
        by: what the commit states.

    Raises:
        CommitFailedError: another commit came first.
    """
    last = f"SELECT {_ROW}, max(revision) AS revision FROM source WHERE {where} GROUP BY {_ROW}"  # noqa: S608 - quoted
    query = (
        f"SELECT gone.* FROM ({last}) AS gone LEFT SEMI JOIN "  # noqa: S608 - quoted
        f"(SELECT {_ROW}, revision FROM source WHERE NOT ({where})) AS held ON {_REPLACED}"
    )
    return _delete_matched(table, selected(table, query), _REPLACED, by)


def _delete_matched(table: DeltaTable, gone: pa.Table, which: str, by: CommitProperties) -> int:
    if not gone.num_rows:
        return 0
    merged = table.merge(
        gone, which, source_alias="gone", target_alias="held", commit_properties=by
    )
    return int(merged.when_matched_delete().execute()["num_target_rows_deleted"])


def _can_hold_rows(table: DeltaTable) -> bool:
    return RESULT_ROW in {field.name for field in table.schema().fields}
