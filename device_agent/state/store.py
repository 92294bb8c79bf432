"""The durable side of an agent: one SQLite file, one transaction a commit.

With a write-ahead log and `synchronous=FULL`, everything survives a power cut once `commit` has
returned. A damaged file is renamed and kept, never deleted; the agent starts empty, and learns from
its peers and from the broker what they know of it.
"""

import fcntl
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from device_agent.changes import BLOCK_US, BlockId, Changes, Restored, SourceRow
from device_agent.facts import Facts
from device_agent.state.pane_table import SCHEMA as PANE_SCHEMA
from device_agent.state.pane_table import PaneTable
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
CREATE TABLE IF NOT EXISTS variable (
    name TEXT, key TEXT, n INTEGER, part BLOB NOT NULL, PRIMARY KEY (name, key, n)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reading (
    n INTEGER PRIMARY KEY, accepted_us INTEGER NOT NULL, event TEXT NOT NULL,
    time_us INTEGER NOT NULL, value TEXT NOT NULL, quantised INTEGER NOT NULL, tags TEXT NOT NULL,
    source TEXT NOT NULL);
"""


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
        panes: the table of pane entries.

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
            self.panes = PaneTable(self._db)
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
        self.panes = PaneTable(self._db)

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
        restored.last_blocks = db.execute(
            "SELECT event, tags, max(block) FROM identity GROUP BY event, tags"
        ).fetchall()
        return restored

    def commit(self, changes: Changes) -> None:
        """Make all changes durable, or none."""
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            self._write(changes)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # SQLite itself rolls back on a full disk
                db.execute("ROLLBACK")
            raise

    def _write(self, changes: Changes) -> None:
        db = self._db
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
        self.panes.write(changes)
        self._write_variables(changes)
        self._write_readings(changes)

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

    def prune(self, floor_us: int) -> None:
        """Delete what lies wholly below the floor; panes only once all sinks have them."""
        self.panes.prune(floor_us)
        self._db.execute("DELETE FROM identity WHERE block < ?", (floor_us // BLOCK_US,))

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
        db.executescript(_SCHEMA + PANE_SCHEMA)
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
