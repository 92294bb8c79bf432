"""Reading a file while its owner may write it, or where nobody may write.

An agent holds its file alone (`device_agent.storage.sealed_file`). So file and log are copied,
and the copy is opened as after a power cut, which SQLite is made for. The file itself changes only
when the log is emptied into it; a copy during which that happened is made again. The same is done
on a card that is full or has become read-only, and by a user who may only read: SQLite reads no
file of this kind where it can write none beside it. A copy that has no room among the temporary
files, which may be on the same card, is made in memory.
"""

import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TRIES = 100
"""Copies until one was not disturbed; an agent empties its log hardly ever twice in a minute."""

_ONLY_COPIED = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
}
"""Another process has the file, or nothing can be written beside it. What cannot be read at all
cannot be copied either."""
_IN_MEMORY = "/dev/shm"  # noqa: S108 - what is made there has a name that nobody can foresee


class ReadOnlyFile:
    """The database at `path`: itself, or copies of it while another process has it open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._copied: tuple[int, ...] | None = None
        self._connection: sqlite3.Connection | None = None

    def __getattr__(self, name: str) -> Any:
        """Return the content of a new connection, which sees all commits until now.

        Raises:
            sqlite3.Error: the database cannot be read.
        """
        if self._connection is None:
            self._connection = _opened(self._path) or self._copy()
        elif self._copied is not None and self._copied != _written(self._path):
            self._connection = self._copy()
        return getattr(self._connection, name)

    def close(self) -> None:
        """Close what is open."""
        if self._connection is not None:
            self._connection.close()

    def _copy(self) -> sqlite3.Connection:
        try:
            return self._opened_copy()
        except OSError as error:
            with suppress(OSError):
                return self._opened_copy(_IN_MEMORY)
            raise sqlite3.OperationalError(str(error)) from error

    def _opened_copy(self, place: str | None = None) -> sqlite3.Connection:
        path = self._path
        with TemporaryDirectory(prefix="lasp-edge-", dir=place) as directory:
            copy = Path(directory) / path.name
            for _ in range(TRIES):
                before, self._copied = path.stat().st_mtime_ns, _written(path)
                if _log(path).exists():
                    shutil.copyfile(_log(path), _log(copy))
                shutil.copyfile(path, copy)
                if path.stat().st_mtime_ns == before:
                    break
            else:
                raise sqlite3.OperationalError("the database is written all the time")
            opened = sqlite3.connect(copy, isolation_level=None)
            # Files that are open outlive the directory; nothing is opened later in this mode.
            opened.execute("PRAGMA locking_mode = EXCLUSIVE")
            opened.execute("SELECT count(*) FROM sqlite_master").fetchone()
            opened.execute("PRAGMA query_only = ON")
        return opened


def _opened(path: Path) -> sqlite3.Connection | None:
    """Return a connection that reads the file itself; None where only a copy can be read."""
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        db.close()
        if error.sqlite_errorcode & 0xFF in _ONLY_COPIED:
            return None
        raise
    return db


def _written(path: Path) -> tuple[int, ...]:
    """Return what changes with each commit."""
    files = [file.stat() for file in (path, _log(path)) if file.exists()]
    return tuple([number for stat in files for number in (stat.st_mtime_ns, stat.st_size)])


def _log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")
