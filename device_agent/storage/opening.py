"""Opening the store's file: its tables, its format, and whether all of it is sound.

A file is sound where SQLite's own check finds nothing, the tables are those of this release, every
row matches its seal, and the write-ahead log lost nothing but what a power cut may have torn.
SQLite takes a log whose head is damaged for no log, and all commits in it would be gone unsaid.
Whatever else comes is `DamagedStoreError` or an error that `is_damage` knows.

Flash wears by what is written, and a commit writes whole pages. So pages are small, and the index
of the log is in the memory of the one process that has the file open, not in a file beside it,
which would be written with each commit, too.
"""

import errno
import sqlite3
import stat
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from device_agent.storage.damage import DamagedStoreError
from lasp_edge.errors import UsageError

Row = tuple[Any, ...]
"""A row of a table."""
PAGE_BYTES = 512
"""Bytes of a page, the least that SQLite takes. Some ten pages change in a commit, whatever their
size; of 4 KiB they cost three times as much flash, and are not read or written any faster."""
CHECKPOINT_PAGES = 2_000
"""Pages of the log, 1 MB, after which they go to where they belong: each page that changed often
is written there once."""
_PAGE_HEAD_BYTES, _LOG_HEAD_BYTES = 24, 32
_LOGS = {bytes.fromhex("377f0682"): "<", bytes.fromhex("377f0683"): ">"}
"""With what a log begins, and the byte order of the words of which its checksums are (SQLite's file
format, 4.1)."""


class StoreForm(NamedTuple):
    """What a file of this release holds.

    Attributes:
        schema: the statements that make its tables.
        number: the number of its format.
        application: with the number added, its application id.
        unmarked: the newest format whose files have no application id; -1 for none.
        unseals: the tables that are verified at the opening, and what verifies a row of each.
        all_pages: whether all of the file is verified then; else as far as it is read.
        cache_kib: memory for its pages.
        advice: what to do with a file of another format.
    """

    schema: str
    number: int
    application: int
    unmarked: int
    unseals: Mapping[str, Callable[[Row], Row]]
    all_pages: bool
    cache_kib: int
    advice: str


def opened(path: Path, form: StoreForm) -> tuple[sqlite3.Connection, bool]:
    """Return the sound file, made where it is missing, and whether its last commit was torn.

    Raises:
        UsageError: it has another format.
        DamagedStoreError, sqlite3.Error, ValueError, TypeError: see `is_damage`.
    """
    _check_file(path)
    logged = _logged_commits(path.with_name(f"{path.name}-wal"))
    db = sqlite3.connect(path, isolation_level=None, timeout=30, cached_statements=64)
    try:
        db.execute(f"PRAGMA cache_size = -{form.cache_kib}")
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        db.execute("PRAGMA locking_mode = EXCLUSIVE")  # before the log's index is made
        if form.all_pages:
            _check_pages(db)
        db.execute("PRAGMA journal_mode = WAL").fetchone()
        db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        db.execute("PRAGMA synchronous = FULL")
        torn = _check_log(db, logged)
        check_format(db, path, form)
        db.execute(f"PRAGMA application_id = {form.application + form.number}")
        db.execute(f"PRAGMA user_version = {form.number}")  # before a table needs it
        db.executescript(form.schema)
        _check_rows(db, form)
    except BaseException:
        db.close()
        raise
    return db, torn


def check_format(db: sqlite3.Connection, path: Path, form: StoreForm) -> None:
    """Check that a file with tables has this format.

    Raises:
        UsageError: it has another one.
        DamagedStoreError: it names two formats, or is another program's.
    """
    (found,) = db.execute("PRAGMA user_version").fetchone()
    (marked,) = db.execute("PRAGMA application_id").fetchone()
    tables = {name for _, name, _ in _tables(db)}
    if not tables or (found == form.number and marked == form.application + form.number):
        return
    if tables.isdisjoint(name for _, name, _ in _expected(form.schema)):
        raise DamagedStoreError("its tables are another program's")
    if marked != form.application + found and not (marked == 0 and 0 <= found <= form.unmarked):
        raise DamagedStoreError("its head says two formats")
    raise UsageError(
        f"{path} has the store format {found}, and this lasp-edge reads {form.number}: "
        f"{form.advice}"
    )


def _check_file(path: Path) -> None:
    """Check that what is there can be a database at all, before SQLite makes a new one of it."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise DamagedStoreError("it is a link to itself") from None
    if not stat.S_ISREG(found.st_mode):
        raise DamagedStoreError("it is no file")
    if found.st_size < PAGE_BYTES and (found.st_size or _has_pages(path)):
        raise DamagedStoreError(f"only {found.st_size} bytes of it are left")


def _has_pages(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.is_file() and log.stat().st_size > _LOG_HEAD_BYTES


def _check_pages(db: sqlite3.Connection) -> None:
    ((verdict,),) = db.execute("PRAGMA integrity_check(1)").fetchall()
    if verdict != "ok":
        raise DamagedStoreError(" ".join(verdict.split()))


def _check_rows(db: sqlite3.Connection, form: StoreForm) -> None:
    """Verify that the tables are ours, and the seals of the rows that are verified now."""
    if _tables(db) != _expected(form.schema):
        raise DamagedStoreError("its tables are not those that were made")
    for table, verify in form.unseals.items():
        for row in db.execute(f"SELECT * FROM {table}"):  # noqa: S608 - one of our tables
            verify(row)


def _tables(db: sqlite3.Connection) -> tuple[tuple[str, str, str], ...]:
    query = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
    return tuple((kind, name, " ".join(text.split())) for kind, name, text in db.execute(query))


@lru_cache(maxsize=2)
def _expected(schema: str) -> tuple[tuple[str, str, str], ...]:
    db = sqlite3.connect(":memory:")
    db.executescript(schema)
    tables = _tables(db)
    db.close()
    return tables


def _logged_commits(path: Path) -> list[int]:
    """Return the places of the pages with which commits end in a write-ahead log, from 1.

    The log begins with a head; each page has one of its own, with the salts of the log's head and
    a size that is not 0 where the page ends a commit. Pages that an earlier log left behind have
    other salts. The head was safe before the first page was written.

    Raises:
        DamagedStoreError: there are pages, and the head does not match its checksum.
    """
    if not path.is_file() or path.stat().st_size <= _LOG_HEAD_BYTES:
        return []
    with path.open("rb") as log:
        head = log.read(_LOG_HEAD_BYTES)
        if not _is_head(head):
            raise DamagedStoreError("the head of its write-ahead log does not match its checksum")
        salts, page_bytes = head[16:24], int.from_bytes(head[8:12], "big")
        ends: list[int] = []
        place = 0
        while len(page := log.read(_PAGE_HEAD_BYTES)) == _PAGE_HEAD_BYTES:
            place += 1
            if page[8:16] == salts and any(page[4:8]):
                ends.append(place)
            log.seek(page_bytes, 1)
    return ends


def _is_head(head: bytes) -> bool:
    """Return whether a log's head ends with its checksum; SQLite passes over a log with another."""
    order = _LOGS.get(head[:4])
    if order is None:
        return False
    first = second = 0
    for even, odd in struct.iter_unpack(f"{order}II", head[:24]):
        first = (first + even + second) % 2**32
        second = (second + odd + first) % 2**32
    return struct.pack(">II", first, second) == head[24:]


def _check_log(db: sqlite3.Connection, logged: list[int]) -> bool:
    """Compare what SQLite took from the log with the commits in it; return whether one was torn.

    A power cut tears the commit that was being written, and is not acknowledged. Two commits that
    are missing cannot be that: the first of them was safe before the second began.
    """
    if not logged:
        return False
    ((_, found, _),) = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    missing = sum(place > found for place in logged)
    if missing > 1:
        raise DamagedStoreError("its write-ahead log is broken off")
    return bool(missing)
