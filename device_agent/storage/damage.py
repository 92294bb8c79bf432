"""Damage: which of a store's errors mean that its file is damaged, and how the file is put aside.

A card that wears out gives back other bytes than were written. SQLite then raises one of many
errors, at the opening, at a commit or at any read; or it gives back a row that does not match its
seal. All of that is damage. A full disk, a lock, a file or directory that may not be written and
too little memory are not: they are the machine's, and the file is sound.

A damaged file is renamed and kept, never deleted, and the agent starts with an empty one. Nothing
is taken over from it, sound rows neither. A source's cursor without all entries that were made from
its readings would lose them; entries without the cursor and the identities of their readings would
count these again when the source gives them again; and of a row that is missing nobody knows. What
the fleet holds of the device comes back from there, with the times up to which readings are
doubtful (`device_agent.agent.fleet.fence`).
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from os.path import lexists
from pathlib import Path

from lasp_edge.errors import CommandError, Exit

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_DAMAGE_AT_OPENING = {
    *_DAMAGE,
    sqlite3.SQLITE_ERROR,  # "malformed database schema", "no such column"
    sqlite3.SQLITE_INTERNAL,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_SCHEMA,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_CONSTRAINT,
}
_ACCESS = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
_READ_ERRORS = {
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
}
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE}
_BESIDE = ("-wal", "-shm", "-journal")


class DamagedStoreError(CommandError):
    """The store's file is damaged; the text is how it showed."""

    exit_code = Exit.ENVIRONMENT


def is_damage(error: BaseException, path: Path, *, opening: bool = False) -> bool:
    """Return whether an error means that a store's file is damaged.

    While it is opened nothing of an agent's is in it yet, so more can only be damage: later, such
    an error may be a mistake in what is written.
    """
    if isinstance(error, DamagedStoreError):
        return True
    if not isinstance(error, sqlite3.Error):
        # What SQLite gave back was never written: bytes that are no text, numbers out of range.
        return opening and isinstance(error, ValueError | TypeError | MemoryError)
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # Python's own errors; of those, the one of bytes that are no text
        return "decode" in str(error)
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_IOERR:
        return code in _READ_ERRORS
    if opening and primary in _ACCESS:
        return _may_write(path)
    return primary in (_DAMAGE_AT_OPENING if opening else _DAMAGE)


def lacks_room(error: sqlite3.Error) -> bool:
    """Return whether a store could not write, and may be able to when there is room again.

    What was to be committed is then rolled back, and may be committed again. After an error of
    `fsync` it may not: nobody knows what the file holds.
    """
    return getattr(error, "sqlite_errorcode", None) in _NO_ROOM


def _may_write(path: Path) -> bool:
    """Return whether this process may write the file, and make others beside it."""
    return path.is_file() and os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK)


def damaged_files(path: Path) -> Iterator[list[Path]]:
    """Yield the files of each store that was put aside in place of `path`, the oldest first."""
    number = 1
    while files := [file for file in _all_of(_kept(path, number)) if lexists(file)]:
        yield files
        number += 1


def kept_bytes(files: Sequence[Path]) -> int:
    """Return how large the files of a store are that was put aside."""
    return sum(file.lstat().st_size for file in files)


def deletion_line(files: Sequence[Path]) -> str:
    """Return what to type to delete the files of a store that was put aside."""
    import shlex  # noqa: PLC0415 - no agent deletes them

    remove = "rm -r" if any(file.is_dir() for file in files) else "rm"
    return f"{remove} {shlex.join(map(str, files))}"


def put_aside(path: Path) -> Path:
    """Rename a damaged file and what SQLite keeps beside it; return its new name."""
    kept = _kept(path, 1 + sum(1 for _ in damaged_files(path)))
    for file, name in zip(_all_of(path), _all_of(kept), strict=True):
        if lexists(file):
            file.rename(name)
    return kept


def put_log_aside(path: Path) -> Path | None:
    """Rename a write-ahead log whose file is not there any more; return its new name, if any.

    Somebody deleted the file alone, or it was renamed and the process killed before its log was.
    SQLite would take the log for that of whatever file has the name next.
    """
    log = path.with_name(f"{path.name}-wal")
    if not lexists(log):
        return None
    kept = _kept(path, 1 + sum(1 for _ in damaged_files(path)))
    return log.rename(kept.with_name(f"{kept.name}-wal"))


def _kept(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.damaged-{number}")


def _all_of(path: Path) -> list[Path]:
    """Return a store's file and what SQLite keeps beside it, whether they are there or not."""
    return [path, *(path.with_name(path.name + suffix) for suffix in _BESIDE)]
