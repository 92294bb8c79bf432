"""What streams over the fleet keep in a gateway's file: states, and rows of their results."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from device_agent.storage.sealed_file import put
from lasp_edge.evaluation.stored import HistoryId, HistoryRow

TABLE: Final = """
CREATE TABLE IF NOT EXISTS history (
    stream INTEGER, at_us INTEGER, end_us INTEGER NOT NULL, content BLOB NOT NULL,
    seal INTEGER NOT NULL, PRIMARY KEY (stream, at_us)) WITHOUT ROWID;
"""
_BETWEEN: Final = (
    "SELECT * FROM history WHERE stream = ? AND at_us >= ? AND at_us < ? ORDER BY at_us"
)
_GONE: Final = "DELETE FROM history WHERE at_us < ? AND end_us <= ?"

Rows = Callable[[str, Sequence[Any]], Iterator[tuple[Any, ...]]]
"""Yields the verified rows of a query."""


def stored_history(
    rows: Rows, stream: int, least_us: int, end_us: int
) -> list[tuple[int, HistoryRow]]:
    """Return what is kept of a stream with least_us <= time < end_us, each with its time."""
    found = rows(_BETWEEN, (stream, least_us, end_us))
    return [(at_us, HistoryRow(last_us, content)) for _, at_us, last_us, content in found]


def put_history(db: sqlite3.Connection, history: Mapping[HistoryId, HistoryRow]) -> None:
    """Store what is new or has changed."""
    put(db, "history", [(at.stream, at.at_us, *row) for at, row in history.items()])


def forget_history(db: sqlite3.Connection, below_us: int) -> None:
    """Delete what is not needed for a replay any more, nor shown."""
    db.execute(_GONE, (below_us, below_us))
