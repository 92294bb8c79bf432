"""What streams over the fleet keep in a gateway's file: states, and rows of their results."""

import sqlite3
from collections.abc import Mapping
from typing import Final

from device_agent.storage.sealed_file import SealedFile, finding_damage, put
from lasp_edge.evaluation.stored import HistoryId, HistoryRow, ResultRowId

TABLE: Final = """
CREATE TABLE IF NOT EXISTS history (
    stream INTEGER, at_us INTEGER, end_us INTEGER NOT NULL, content BLOB NOT NULL,
    seal INTEGER NOT NULL, PRIMARY KEY (stream, at_us)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS result (
    stream INTEGER, at_us INTEGER, name TEXT, content BLOB NOT NULL,
    seal INTEGER NOT NULL, PRIMARY KEY (stream, at_us, name)) WITHOUT ROWID;
"""
_BETWEEN: Final = (
    "SELECT * FROM history WHERE stream = ? AND at_us >= ? AND at_us < ? ORDER BY at_us"
)
_ROWS_BETWEEN: Final = "SELECT * FROM result WHERE stream = ? AND at_us >= ? AND at_us < ?"
_GONE: Final = "DELETE FROM history WHERE at_us < ? AND end_us <= ?"
_ROW_GONE: Final = "DELETE FROM result WHERE stream = ? AND at_us = ? AND name = ?"


class HistoryFile(SealedFile):
    """A file that keeps what streams over the fleet need."""

    @finding_damage
    def history(self, stream: int, least_us: int, end_us: int) -> list[tuple[int, HistoryRow]]:
        """Return what is kept of a stream with least_us <= time < end_us, each with its time."""
        found = self._rows(_BETWEEN, (stream, least_us, end_us))
        return [(at_us, HistoryRow(last_us, content)) for _, at_us, last_us, content in found]

    @finding_damage
    def result_rows(self, stream: int, least_us: int, end_us: int) -> list[tuple[int, str, bytes]]:
        """Return time, name and packed row of a result's rows with least_us <= time < end_us."""
        found = self._rows(_ROWS_BETWEEN, (stream, least_us, end_us))
        return [(at_us, name, packed) for _, at_us, name, packed in found]


def put_history(
    db: sqlite3.Connection,
    history: Mapping[HistoryId, HistoryRow],
    results: Mapping[ResultRowId, bytes | None],
) -> None:
    """Store what is new or has changed, and delete rows that are gone."""
    put(db, "history", [(at.stream, at.at_us, *row) for at, row in history.items()])
    put(db, "result", [(*at, packed) for at, packed in results.items() if packed is not None])
    db.executemany(_ROW_GONE, [at for at, packed in results.items() if packed is None])


def forget_results(db: sqlite3.Connection, below_us: int) -> None:
    """Delete rows of results that are shown no longer."""
    db.execute("DELETE FROM result WHERE at_us < ?", (below_us,))


def forget_history(db: sqlite3.Connection, below_us: int) -> None:
    """Delete what is not needed for a replay any more."""
    db.execute(_GONE, (below_us, below_us))
