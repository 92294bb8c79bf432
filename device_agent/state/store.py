"""The durable side of an agent: one SQLite file, one transaction a commit.

With a write-ahead log and `synchronous=FULL`, everything survives a power cut once `commit` has
returned. A damaged file is renamed and kept, never deleted; the agent starts empty, and learns from
its peers and from the broker what they know of it.
"""

import fcntl
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import msgpack

from crdts import Replica
from device_agent.changes import (
    BLOCK_US,
    BlockId,
    Changes,
    PaneId,
    PaneRow,
    Restored,
    SourceRow,
    WaitingRow,
    WaitingTotals,
)
from device_agent.facts import Facts
from lasp_edge.errors import NotFound, UsageError

FILE_NAME = "agent.sqlite"
LOCK_NAME = "agent.lock"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS replica (
    incarnation INTEGER PRIMARY KEY, nonce INTEGER NOT NULL, device TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, total INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS source (
    name TEXT PRIMARY KEY, cursor TEXT, high_us INTEGER, stamped INTEGER NOT NULL,
    done INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS identity (
    event TEXT, tags TEXT, block INTEGER, identities BLOB NOT NULL,
    PRIMARY KEY (event, tags, block)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pane (
    pane_us INTEGER, stream INTEGER, key TEXT, incarnation INTEGER, nonce INTEGER,
    seq INTEGER NOT NULL, end_us INTEGER NOT NULL, partial BLOB NOT NULL, dirty INTEGER NOT NULL,
    PRIMARY KEY (pane_us, stream, key, incarnation, nonce)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS pane_dirty ON pane (pane_us) WHERE dirty = 1;
CREATE TABLE IF NOT EXISTS variable (
    name TEXT, key TEXT, n INTEGER, part BLOB NOT NULL, PRIMARY KEY (name, key, n)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reading (
    n INTEGER PRIMARY KEY, accepted_us INTEGER NOT NULL, event TEXT NOT NULL,
    time_us INTEGER NOT NULL, value TEXT NOT NULL, quantised INTEGER NOT NULL, tags TEXT NOT NULL,
    source TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS waiting (
    n INTEGER PRIMARY KEY, boot TEXT NOT NULL, monotonic_us INTEGER NOT NULL,
    readings INTEGER NOT NULL, batch BLOB NOT NULL);
"""


NEVER_US = -(2**62)
"""Before every time."""
FORMAT = 4
"""The number of the format of the tables and of their packed values; it rises with each change.
A file of another format is refused, and left as it is."""


class Store:
    """An agent's SQLite file, held by one process; see `existing_store` for others that look.

    Args:
        directory: the agent's data directory; made where it is missing.
        read_only: only look; another process may write.

    Attributes:
        quarantined: where a damaged file was put, if there was one.

    Raises:
        BlockingIOError: another agent runs on this directory.
        UsageError: the file has another format.
        sqlite3.Error: the file cannot be read or written.
    """

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        self.path = directory / FILE_NAME
        self.quarantined: Path | None = None
        self._lock: TextIO | None = None
        if read_only:
            self._db = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
            return
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(directory / LOCK_NAME)
        try:
            self._db = _opened(self.path)
        except UsageError:
            self._lock.close()
            raise
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            self.quarantined = _quarantine(self.path)
            self._db = _opened(self.path)

    def close(self) -> None:
        """Close the file."""
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    def restored(self) -> Restored:
        """Return what an agent starts with."""
        db, restored = self._db, Restored()
        (restored.incarnation,) = db.execute(
            "SELECT coalesce(max(incarnation), 0) FROM replica"
        ).fetchone()
        for name, key, part in db.execute("SELECT name, key, part FROM variable ORDER BY 1, 2, n"):
            restored.variables.setdefault(name, {}).setdefault(key, []).append(part)
        for name, cursor, high_us, stamped, done in db.execute("SELECT * FROM source"):
            restored.sources[name] = SourceRow(cursor, high_us, bool(stamped), bool(done))
        restored.counters = dict(db.execute("SELECT name, total FROM counter"))
        restored.facts = Facts.from_rows(db.execute("SELECT name, value FROM fact"))
        restored.waiting = self.waiting_totals()
        restored.last_blocks = db.execute(
            "SELECT event, tags, max(block) FROM identity GROUP BY event, tags"
        ).fetchall()
        return restored

    def commit(self, changes: Changes) -> None:
        """Make all changes durable, or none."""
        with self._transaction():
            self._write(changes)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Make all that is written within durable, or nothing of it."""
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # SQLite itself rolls back on a full disk
                db.execute("ROLLBACK")
            raise

    def _write(self, changes: Changes) -> None:
        db = self._db
        if changes.all_dirty:
            db.execute("UPDATE pane SET dirty = 1")
        if changes.replica:
            db.execute("INSERT OR REPLACE INTO replica VALUES (?, ?, ?)", changes.replica)
        db.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", changes.facts.rows())
        db.executemany("INSERT OR REPLACE INTO counter VALUES (?, ?)", changes.counters.items())
        db.executemany(
            "INSERT OR REPLACE INTO source VALUES (?, ?, ?, ?, ?)",
            [(name, *row) for name, row in changes.sources.items()],
        )
        db.executemany(
            "INSERT OR REPLACE INTO identity VALUES (?, ?, ?, ?)",
            [(*block, identities) for block, identities in changes.identities.items()],
        )
        db.executemany(
            "INSERT OR REPLACE INTO pane VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (*pane, row.seq, row.end_us, msgpack.packb(row.partial), row.dirty)
                for pane, row in changes.panes.items()
            ],
        )
        self._write_variables(changes)
        self._write_readings(changes)
        if changes.waiting:
            db.executemany("INSERT INTO waiting VALUES (?, ?, ?, ?, ?)", changes.waiting)
        if changes.placed:
            db.executemany("DELETE FROM waiting WHERE n = ?", [(n,) for n in changes.placed])

    def _write_variables(self, changes: Changes) -> None:
        self._db.executemany(
            "DELETE FROM variable WHERE name = ? AND key = ?", changes.states.keys()
        )
        wholes = [(*at, 0, state) for at, state in changes.states.items() if state is not None]
        deltas = [(*at, *part) for at, parts in changes.deltas.items() for part in parts]
        self._db.executemany("INSERT INTO variable VALUES (?, ?, ?, ?)", [*wholes, *deltas])

    def _write_readings(self, changes: Changes) -> None:
        self._db.executemany(
            "INSERT INTO reading (accepted_us, event, time_us, value, quantised, tags, source)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            [row._replace(value=json.dumps(row.value, default=str)) for row in changes.readings],
        )

    def identities(self, block: BlockId) -> bytes | None:
        """Return a block's packed identities."""
        row = self._db.execute(
            "SELECT identities FROM identity WHERE event = ? AND tags = ? AND block = ?", block
        ).fetchone()
        return row[0] if row else None

    def panes(
        self, replica: Replica, stream: int, least_us: int, end_us: int
    ) -> list[tuple[PaneId, PaneRow]]:
        """Return a replica's entries of a stream with least_us <= pane start < end_us."""
        rows = self._db.execute(
            "SELECT * FROM pane WHERE pane_us >= ? AND pane_us < ? AND stream = ?"
            " AND incarnation = ? AND nonce = ?",
            (least_us, end_us, stream, replica.incarnation, replica.nonce),
        )
        return [pane_of(row) for row in rows]

    def dirty_panes(self, streams: Sequence[int], limit: int) -> list[tuple[PaneId, PaneRow]]:
        """Return the oldest dirty entries of these streams."""
        marks = ",".join("?" * len(streams))
        rows = self._db.execute(
            f"SELECT * FROM pane WHERE dirty = 1 AND stream IN ({marks})"  # noqa: S608 - marks only
            " ORDER BY pane_us LIMIT ?",
            (*streams, limit),
        )
        return [pane_of(row) for row in rows]

    def waiting(self, packed_bytes: int) -> list[WaitingRow]:
        """Return the first batches that wait for the clock: at least one, up to so many bytes."""
        rows: list[WaitingRow] = []
        left = packed_bytes
        for row in self._db.execute("SELECT * FROM waiting ORDER BY n"):
            rows.append(WaitingRow(*row))
            left -= len(rows[-1].batch)
            if left <= 0:
                break
        return rows

    def waiting_totals(self) -> WaitingTotals:
        """Return how much waits for the clock."""
        found = self._db.execute(
            "SELECT coalesce(max(n), 0), coalesce(sum(readings), 0), "
            "coalesce(sum(length(batch)), 0) FROM waiting"
        ).fetchone()
        return WaitingTotals(*found)

    def prune(self, floor_us: int) -> int:
        """Delete what lies wholly below the floor; panes only once acknowledged.

        Returns:
            The greatest end of all that was ever deleted: no reading below it may come again.
        """
        panes = "FROM pane WHERE pane_us < ? AND end_us <= ? AND dirty = 0"
        blocks = "FROM identity WHERE block < ?"
        with self._transaction() as db:
            (before,) = db.execute("SELECT max(value + 0) FROM fact WHERE name = 'pruned_us'")
            (ends,) = db.execute(f"SELECT max(end_us) {panes}", (floor_us, floor_us))
            (block,) = db.execute(f"SELECT max(block) {blocks}", (floor_us // BLOCK_US,))
            db.execute(f"DELETE {panes}", (floor_us, floor_us))
            db.execute(f"DELETE {blocks}", (floor_us // BLOCK_US,))
            known = [end_us for (end_us,) in (before, ends) if end_us is not None]
            known += [] if block[0] is None else [(block[0] + 1) * BLOCK_US]
            pruned_us = max(known, default=NEVER_US)
            if known and pruned_us != before[0]:
                facts = Facts(pruned_us=pruned_us).rows()
                db.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", facts)
        return pruned_us

    def count_dirty(self) -> dict[int, int]:
        """Return how many pane entries are dirty, by stream."""
        rows = self._db.execute("SELECT stream, count(*) FROM pane WHERE dirty = 1 GROUP BY stream")
        return dict(rows.fetchall())

    def check(self) -> None:
        """Read a little of what every store holds.

        Raises:
            UsageError: it has another format.
            sqlite3.Error: it cannot be read.
        """
        _check_format(self._db, self.path)
        self._db.execute("SELECT name FROM variable, replica LIMIT 1").fetchone()

    def replica(self) -> tuple[int, int, str] | None:
        """Return the last replica that was started on this store."""
        row: tuple[int, int, str] | None = self._db.execute(
            "SELECT incarnation, nonce, device FROM replica ORDER BY incarnation DESC LIMIT 1"
        ).fetchone()
        return row

    def readings(self) -> Iterator[dict[str, Any]]:
        """Yield the kept readings in the order of their acceptance."""
        for n, accepted_us, event, time_us, value, quantised, tags, source in self._db.execute(
            "SELECT * FROM reading ORDER BY n"
        ):
            yield {
                "n": n,
                "event": event,
                "time_us": time_us,
                "value": json.loads(value),
                "q": quantised,
                "tags": json.loads(tags) if tags else {},
                "accepted_us": accepted_us,
                "source": source,
            }


def existing_store(directory: Path) -> Store:
    """Return the store of a data directory, to look at while an agent may write.

    Raises:
        NotFound: the directory has no store, or it cannot be read.
        UsageError: it has another format.
    """
    if not (directory / FILE_NAME).is_file():
        raise NotFound(f"{directory} holds no agent data ({FILE_NAME} is not there)")
    store = Store(directory, read_only=True)
    try:
        store.check()
    except UsageError:
        store.close()
        raise
    except sqlite3.Error as error:
        store.close()
        raise NotFound(f"{directory / FILE_NAME} cannot be read: {error}") from None
    return store


def _locked(path: Path) -> TextIO:
    """Return an open file that one process at a time can have."""
    file = path.open("w", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, timeout=30, cached_statements=64)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA cache_size = -256")
        _check(db)
        _check_format(db, path)
        db.execute(f"PRAGMA user_version = {FORMAT}")  # before there is a table that needs it
        db.executescript(_SCHEMA)
    except BaseException:
        db.close()
        raise
    return db


def _check(db: sqlite3.Connection) -> None:
    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)


def _check_format(db: sqlite3.Connection, path: Path) -> None:
    (found,) = db.execute("PRAGMA user_version").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and found != FORMAT:
        raise UsageError(
            f"{path} has the store format {found}, and this lasp-edge reads {FORMAT}: start the "
            "agent with the version that wrote it until all has landed, or with another --data-dir"
        )


def _quarantine(path: Path) -> Path:
    number = 1
    while (kept := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(kept)
    for suffix in ("-wal", "-shm"):
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.rename(kept.with_name(kept.name + suffix))
    return kept


def pane_of(row: Sequence[Any]) -> tuple[PaneId, PaneRow]:
    """Return a row of the table of panes as id and entry."""
    partial = tuple(msgpack.unpackb(row[7]))
    return PaneId(*row[:5]), PaneRow(row[5], row[6], partial, bool(row[8]))
