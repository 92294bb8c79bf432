"""The store's table of pane entries and of streams' histories, with its queries.

What a commit writes to it stands with the rest of a commit, in `store`.

Its index holds the dirty entries alone, by replica and seq: so they are found by what an
acknowledgement names, and are swept in the order in which they were written. All that a sum over
the dirty ones needs is in the index.

What is kept of streams has incarnation 0, which no replica has, and is never dirty. It stands here
because a commit writes whole pages: its rows are of the same times as the pane entries beside them.
In a table of its own, a commit of one reading wrote 13 % more to the card.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import msgpack

from device_agent.agent.stored_rows import (
    EVERY_SINK,
    EntryKey,
    PaneId,
    PaneRow,
    Undelivered,
)
from device_agent.storage.sealed_file import unsealed_pane
from lasp_edge.evaluation.stored import HistoryRow

SCHEMA = """
CREATE TABLE IF NOT EXISTS pane (
    pane_us INTEGER, stream INTEGER, key TEXT, incarnation INTEGER, nonce INTEGER,
    seq INTEGER NOT NULL, end_us INTEGER NOT NULL, partial BLOB NOT NULL, dirty INTEGER NOT NULL,
    refused INTEGER NOT NULL, seal INTEGER NOT NULL,
    PRIMARY KEY (pane_us, stream, key, incarnation, nonce)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS pane_dirty ON pane (incarnation, nonce, seq, dirty, refused)
    WHERE dirty != 0;
"""


class PaneTable:
    """The table of pane entries in an agent's file."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def history(self, stream: int, least_us: int, end_us: int) -> list[tuple[int, HistoryRow]]:
        """Return what is kept of a stream with least_us <= time < end_us, each with its time."""
        rows = self._db.execute(
            "SELECT * FROM pane WHERE pane_us >= ? AND pane_us < ? AND stream = ?"
            " AND incarnation = 0",
            (least_us, end_us, stream),
        )
        return [
            (at.pane_us, HistoryRow(row.end_us, *row.partial)) for at, row in map(pane_of, rows)
        ]

    def between(self, stream: int, first_us: int, end_us: int) -> list[tuple[PaneId, PaneRow]]:
        """Return all replicas' entries of a stream with first_us <= start < end_us."""
        query = "SELECT * FROM pane WHERE pane_us >= ? AND pane_us < ? AND stream = ?"
        return list(map(pane_of, self._db.execute(query, (first_us, end_us, stream))))

    def named(self, panes: Iterable[PaneId]) -> list[tuple[PaneId, PaneRow]]:
        """Return those of these entries that are here."""
        query = (
            "SELECT * FROM pane WHERE pane_us = ? AND stream = ? AND key = ?"
            " AND incarnation = ? AND nonce = ?"
        )
        found = [self._db.execute(query, pane).fetchone() for pane in panes]
        return [pane_of(row) for row in found if row is not None]

    def newest(self, stream: int, span_us: int) -> list[tuple[PaneId, PaneRow]]:
        """Return all replicas' entries of a stream that start within a span before its last one."""
        last = "(SELECT max(pane_us) FROM pane WHERE stream = ?)"
        query = f"SELECT * FROM pane WHERE stream = ? AND pane_us > {last} - ?"  # noqa: S608
        return [pane_of(row) for row in self._db.execute(query, (stream, stream, span_us))]

    def dirty(
        self, after: EntryKey, limit: int, *, refused_too: bool
    ) -> list[tuple[PaneId, PaneRow]]:
        """Return the next dirty entries after a place, in the order in which they were written.

        Args:
            after: the place.
            limit: how many, at most.
            refused_too: also those that no sink waits for which has not refused them.
        """
        some = "" if refused_too else f" AND dirty & ~refused & {EVERY_SINK} != 0"
        rows = self._db.execute(
            "SELECT * FROM pane WHERE dirty != 0"  # noqa: S608 - our own text
            f" AND (incarnation, nonce, seq) > (?, ?, ?){some}"
            " ORDER BY incarnation, nonce, seq LIMIT ?",
            (*after, limit),
        )
        return [pane_of(row) for row in rows]

    def undelivered(self) -> list[Undelivered]:
        """Return how many entries are dirty, by stream, and for whom."""
        rows = self._db.execute(
            "SELECT stream, dirty, refused, count(*), min(pane_us) FROM pane WHERE dirty != 0"
            " GROUP BY stream, dirty, refused"
        )
        return [Undelivered(*row) for row in rows]


def pane_of(row: Sequence[Any]) -> tuple[PaneId, PaneRow]:
    """Return a row of the table as id and entry.

    Raises:
        DamagedStoreError: it does not match its seal.
    """
    row = unsealed_pane(tuple(row))
    partial = tuple(msgpack.unpackb(row[7]))
    return PaneId(*row[:5]), PaneRow(row[5], row[6], partial, row[8], row[9])
