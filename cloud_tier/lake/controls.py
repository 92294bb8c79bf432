"""The log of a program's parameters, as rows of `landing` and `lattice`.

A row is one place of one parameter and scope, with the entry as a delta of the log, so the join of
all rows is the log, in any order and however often they landed. Two entries of one place and number
differ in their author or value, so a hash of both keeps their rows apart.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from deltalake import DeltaTable

from cloud_tier.lake.query import selected
from cloud_tier.lake.tables import CONTROL
from crdts import ControlLog
from crdts.wire import decode, encode
from lasp_edge.protocol.lake_columns import CONTROL_ENTRY


def control_rows(log: ControlLog) -> Iterator[dict[str, Any]]:
    """Yield the columns of one row for each place of a log."""
    for at, entry in sorted(log.entries.items()):
        encoded = encode(ControlLog({at: entry}))
        yield {
            "kind": CONTROL,
            "key": at.parameter,
            "device": at.scope,
            "pane_us": at.from_us,
            "nonce": int.from_bytes(sha256(encoded).digest()[:8]) >> 1,
            "seq": entry.number,
            CONTROL_ENTRY: encoded,
        }


def log_of(rows: Iterable[Mapping[str, Any]]) -> ControlLog:
    """Return the log whose entries these rows hold; rows of other kinds are passed over."""
    log = ControlLog()
    for row in rows:
        if row["kind"] == CONTROL:
            entry = decode(row[CONTROL_ENTRY])
            assert isinstance(entry, ControlLog), "written by `control_rows`"
            log |= entry
    return log


def has_log(table: DeltaTable) -> bool:
    """Return whether `landing` or `lattice` can hold a log: the program has parameters."""
    return CONTROL_ENTRY in {field.name for field in table.schema().fields}


def stored_log(table: DeltaTable) -> ControlLog | None:
    """Return the log that `landing` or `lattice` holds; None without parameters."""
    if not has_log(table):
        return None
    query = (
        f"SELECT DISTINCT kind, {CONTROL_ENTRY} FROM source "  # noqa: S608 - our own constants
        f"WHERE kind = '{CONTROL}'"
    )
    return log_of(selected(table, query).to_pylist())
