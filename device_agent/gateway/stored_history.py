"""What streams over the fleet keep in a gateway's file: states, and rows of their results."""

import sqlite3
from collections.abc import Mapping
from typing import Final

from device_agent.storage.sealed_file import SealedFile, finding_damage, put
from lasp_edge.evaluation.stored import HistoryId, HistoryRow, RowsPartId
from lasp_edge.units import SECOND_US

TABLE: Final = """
CREATE TABLE IF NOT EXISTS history (
    stream INTEGER, at_us INTEGER, end_us INTEGER NOT NULL, content BLOB NOT NULL,
    seal INTEGER NOT NULL, PRIMARY KEY (stream, at_us)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS result_part (
    stream INTEGER, cell_us INTEGER, number INTEGER, content BLOB NOT NULL,
    seal INTEGER NOT NULL, PRIMARY KEY (stream, cell_us, number)) WITHOUT ROWID;
"""
_BETWEEN: Final = (
    "SELECT * FROM history WHERE stream = ? AND at_us >= ? AND at_us < ? ORDER BY at_us"
)
_PARTS_BETWEEN: Final = (
    "SELECT * FROM result_part WHERE stream = ? AND cell_us >= ? AND cell_us < ?"
    " ORDER BY cell_us, number"
)
_LONGEST_US: Final = 60 * SECOND_US
"""Longer than a cell of rows; no module of streams is asked: most gateways have none."""
_GONE: Final = "DELETE FROM history WHERE at_us < ? AND end_us <= ?"
_PART_GONE: Final = "DELETE FROM result_part WHERE stream = ? AND cell_us = ? AND number = ?"


class HistoryFile(SealedFile):
    """A file that keeps what streams over the fleet need."""

    @finding_damage
    def history(self, stream: int, least_us: int, end_us: int) -> list[tuple[int, HistoryRow]]:
        """Return what is kept of a stream with least_us <= time < end_us, each with its time."""
        found = self._rows(_BETWEEN, (stream, least_us, end_us))
        return [(at_us, HistoryRow(last_us, content)) for _, at_us, last_us, content in found]

    @finding_damage
    def has_results(self) -> bool:
        """Return whether there can be rows of results: a file of an older release has no table."""
        query = "SELECT 1 FROM sqlite_master WHERE name = 'result_part'"
        return self._db.execute(query).fetchone() is not None

    @finding_damage
    def result_parts(self, stream: int, least_us: int, end_us: int) -> list[tuple[int, int, bytes]]:
        """Return cell, number and content of the parts of rows with least_us <= cell < end_us."""
        found = self._rows(_PARTS_BETWEEN, (stream, least_us, end_us))
        return [tuple(row[1:]) for row in found]


def put_history(
    db: sqlite3.Connection,
    history: Mapping[HistoryId, HistoryRow],
    results: Mapping[RowsPartId, bytes | None],
) -> None:
    """Store what is new or has changed, and delete rows that are gone."""
    put(db, "history", [(at.stream, at.at_us, *row) for at, row in history.items()])
    put(db, "result_part", [(*at, packed) for at, packed in results.items() if packed is not None])
    db.executemany(_PART_GONE, [at for at, packed in results.items() if packed is None])


def forget_results(db: sqlite3.Connection, below_us: int) -> None:
    """Delete the cells of rows that are shown no longer."""
    db.execute("DELETE FROM result_part WHERE cell_us < ?", (below_us - _LONGEST_US,))


def forget_history(db: sqlite3.Connection, below_us: int) -> None:
    """Delete what is not needed for a replay any more."""
    db.execute(_GONE, (below_us, below_us))
