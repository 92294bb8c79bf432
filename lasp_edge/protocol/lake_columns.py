"""The columns that the lake's tables have of their own, by table: name -> Delta type.

A fold's columns stand beside them in the same tables, so a program is refused where it is written
if one of its folds uses such a name (`LAKE_COLUMNS`), not later on the cloud's machine. The cloud
makes its tables from the same lists (`cloud_tier.lake.tables` says what each column means), so a
column that is added here is reserved and made at once. The columns of windows, which a gateway's
rows have too, are declared in `lasp_edge.protocol.window_rows`.
"""

from collections.abc import Mapping
from typing import Final

from lasp_edge.protocol.window_rows import COUNTED, LAKE_RECORD, WINDOW_IDENTITY, WINDOW_RECORD

IDENTITY: Final[Mapping[str, str]] = {
    "kind": "string",
    "stream": "long",
    "shard": "long",
    "key": "string",
    "pane_us": "long",
    "device": "string",
    "lander": "string",
    "incarnation": "long",
    "nonce": "long",
}
"""The identity of a landed row, and the replica that made it."""

STATED: Final[Mapping[str, str]] = {
    "control": "long",
    "retired": "boolean",
    "now_us": "long",
    "since_us": "long",
}
"""The values of a member command or a tick; NULL in other rows, but for `since_us` of a promise."""

KEPT_APART: Final[Mapping[str, str]] = {**IDENTITY, **STATED}
"""Landed rows that differ in one of these are kept side by side."""

REPLACED: Final[Mapping[str, str]] = {
    "low_us": "long",
    "done": "boolean",
    "changed": "long",
}
"""Of landed rows that are alike in those, the one with the greatest `seq` replaces the others. NULL
in the rows of other kinds."""

LANDED: Final[Mapping[str, str]] = {
    **KEPT_APART,
    "seq": "long",
    "received_us": "long",
    **REPLACED,
}
"""The columns of a landed row, but for its fold's."""

PANE_DATE: Final = "pane_date"
"""The first day of the partition that a pane is in; the day of the epoch in other rows."""

VALUE_IDENTITY: Final[Mapping[str, str]] = {"name": "string", "key": "string"}
"""The identity of a row of a dynamic fold; the fold's columns follow."""

VALUE_RECORD: Final[Mapping[str, str]] = {
    "inputs": "string",
    "devices_in": "integer",
    "revision": "integer",
    "stream": "long",
}
"""The columns of its record, which follow the fold's."""

RESULT_ROW: Final = "said"
"""The column of a landed row that holds a row of a result, packed; only programs with results have
it."""

ITEMS: Final = "items"
"""The column of a pane entry that holds a cell of items, packed; only programs with an order over
the fleet have it."""

CONTROL_ENTRY: Final = "control_entry"
"""The column of a landed row that holds an entry of the log of parameters, as a delta of the log;
only programs with parameters have it."""

ROW_IDENTITY: Final[Mapping[str, str]] = {
    "result": "string",
    "device": "string",
    "key": "string",
    "time_us": "long",
    "place": "string",
}
"""The identity of a row of a result; its parts follow."""

ROW_RECORD: Final[Mapping[str, str]] = {
    "present": "boolean",
    "status": "string",
    "revision": "integer",
    "frontier": "long",
    "stream": "long",
    "excluded": WINDOW_RECORD["excluded"],
    **dict.fromkeys(COUNTED, "integer"),
}
"""The columns of its record, which follow the parts. The last ones say who is missing; they are
NULL in rows that a former release has made, and in those of one device."""

LAKE_COLUMNS: Final = frozenset(
    {PANE_DATE, RESULT_ROW, ITEMS, CONTROL_ENTRY}.union(
        LANDED, WINDOW_IDENTITY, LAKE_RECORD, VALUE_IDENTITY, VALUE_RECORD
    )
)
"""All of them, in lower case: no column and no part of a fold has such a name, in any case."""
