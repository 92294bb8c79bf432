"""A SQLite file that one process holds, whose rows are sealed, and that is put aside when damaged.

It is what an agent's store and a gateway's have in common: the lock, the opening, transactions, the
seals, and what is damage. What the tables hold is theirs.

SQLite checks how its pages hang together, and not what they hold: a bit that flips on a tired card
would be another number. A row is sealed when it is written, and its seal, a checksum of what stands
before it, is verified when it is read. The masks `dirty` and `refused` of a pane entry stand in its
seal as terms of their own, so that one statement can change them in many rows without reading them.

    >>> unsealed(sealed(("lake", '"lake-1"')))
    ('lake', '"lake-1"')
    >>> unsealed(("lake", '"lake-2"', sealed(("lake", '"lake-1"'))[-1]))
    Traceback (most recent call last):
    device_agent.storage.damage.DamagedStoreError: a row does not match its checksum
"""

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, wraps
from os.path import lexists
from pathlib import Path
from typing import Any, ClassVar, Concatenate, NamedTuple, ParamSpec, TextIO, TypeVar, cast
from zlib import crc32

from crdts.plain import pack
from device_agent.storage.damage import DamagedStoreError, is_damage, put_aside, put_log_aside
from device_agent.storage.opening import Row, StoreForm, opened
from lasp_edge.errors import ENDS_PROCESS, NotFound, UsageError
from lasp_edge.protocol.sinks import MAX_SINKS

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
AnyStore = TypeVar("AnyStore", bound="SealedFile")


class StoreNames(NamedTuple):
    """How a store's files are called in its directory."""

    file: str
    lock: str


def finding_damage(
    method: Callable[Concatenate[AnyStore, Arguments], Result],
) -> Callable[Concatenate[AnyStore, Arguments], Result]:
    """Let a method of a store raise `DamagedStoreError` for whatever means that it is damaged."""

    @wraps(method)
    def checked(
        store: AnyStore, /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        try:
            return method(store, *arguments, **named)
        except Exception as error:
            error.add_note(ENDS_PROCESS)
            if not is_damage(error, store.path):
                raise
            if store.read_only:
                raise DamagedStoreError(
                    f"{store.path} is damaged ({error}): who writes it puts it aside at the next "
                    "start, and goes on with an empty one"
                ) from error
            if isinstance(error, DamagedStoreError):
                raise
            damage = DamagedStoreError(f"{type(error).__name__}: {error}")
            damage.add_note(ENDS_PROCESS)
            raise damage from error

    return checked


class SealedFile:
    """A SQLite file of sealed rows.

    Args:
        directory: where it is; made where it is missing.
        read_only: only look; another process may write.

    Attributes:
        form: what it holds.
        names: of it, and of what is beside it.
        read_only: only looked at.
        quarantined: where a damaged file was put, if there was one.
        news: what the opening found, for people; "" where all was well.

    Raises:
        BlockingIOError: another process runs on this directory.
        UsageError: the file has another format.
        sqlite3.Error: the file cannot be read or written.
    """

    form: ClassVar[StoreForm]
    names: ClassVar[StoreNames]

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        self.path = directory / self.names.file
        self.read_only = read_only
        self.quarantined: Path | None = None
        self.news = ""
        self._lock: TextIO | None = None
        if read_only:
            from device_agent.storage.read_only import ReadOnlyFile  # noqa: PLC0415 - no agent copies files

            # Nothing but reading is asked.
            self._use(cast("sqlite3.Connection", ReadOnlyFile(self.path)))
            return
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(directory / self.names.lock)
        try:
            self._open()
        except BaseException:
            self._lock.close()
            raise

    def _use(self, db: sqlite3.Connection) -> None:
        """Work on a connection from now on."""
        self._db = db
        self._inode = None if self.read_only else self.path.stat().st_ino

    def need_file(self) -> None:
        """Check that what is written can be found again.

        Raises:
            DamagedStoreError: somebody deleted the file, or put another one in its place.
        """
        if not self._is_there():
            raise DamagedStoreError(f"{self.path} was deleted or replaced while it was in use")

    def _is_there(self) -> bool:
        try:
            return self.path.stat().st_ino == self._inode
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # nobody knows; what is written fails if it is not

    def _open(self) -> None:
        log = None if lexists(self.path) else put_log_aside(self.path)
        if log is not None:
            self.news = f"its file was missing, and its log is kept as {log.name}"
        if self.path.is_file() and not self.path.stat().st_size:
            self.news = "its file was empty; what it held before is lost"
        try:
            db, torn = opened(self.path, self.form)
        except Exception as error:
            if not is_damage(error, self.path, opening=True):
                raise
            self.quarantined = put_aside(self.path)
            self.news = f"damaged, kept as {self.quarantined.name}: {error}"
            db, torn = opened(self.path, self.form)
        self._use(db)
        if torn:
            self.news = "its last commit was torn, as by a power cut"

    def put_aside(self) -> None:
        """Put the file aside, after it was found to be damaged, and close it.

        One that somebody put in its place is left there, to be opened next.
        """
        is_there = self._is_there()
        self._db.close()
        (put_aside if is_there else put_log_aside)(self.path)
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    def look(self, check: Callable[[], None]) -> None:
        """Check that the file can be read; else close it.

        Raises:
            NotFound: it cannot be read.
            UsageError: it has another format.
        """
        try:
            check()
        except UsageError:
            self.close()
            raise
        except (sqlite3.Error, DamagedStoreError) as error:
            self.close()
            raise NotFound(f"{self.path} cannot be read: {error}") from None

    def _rows(self, query: str, arguments: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query for all columns of a table, verified, without their seals."""
        return all_unsealed(self._db.execute(query, arguments))


class Transaction:
    """Makes all that is written within durable, or nothing of it."""

    __slots__ = ("_db",)

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> sqlite3.Connection:
        self._db.execute("BEGIN IMMEDIATE")
        return self._db

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:  # SQLite itself rolls back on a full disk
                self._db.execute("ROLLBACK")


def put(db: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Write rows with their seals, each in place of the one with its key."""
    written = all_sealed(rows) if rows else []  # most tables change in few commits
    if written:
        db.executemany(_statement(table, len(written[0])), written)


@cache
def _statement(table: str, columns: int) -> str:
    """Return what writes rows; there are as many as tables."""
    return f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * columns)})"  # noqa: S608 - ours


def _locked(path: Path) -> TextIO:
    """Return an open file that one process at a time can have."""
    # What stands there may be anything, a pipe too, for whose reader nobody may wait.
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666), "w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file


_DIRTY = 8_589_934_609
"""What one unit of a pane entry's mask adds to its seal: beyond 32 bits and odd, so that no other
mask with another checksum gives the same seal."""
_REFUSED = _DIRTY << MAX_SINKS
"""What one unit of the second mask adds to it: more than the first mask can; both together stay
below 2**54."""
_MASKS = 1 << 2 * MAX_SINKS
"""Masks are below it."""
_WRONG = "a row does not match its checksum"


def sealed(row: Row) -> Row:
    """Return a row with its seal."""
    return (*row, crc32(pack(row)))


def all_sealed(rows: Iterable[Row]) -> list[Row]:
    """Return rows with their seals."""
    return [(*row, crc32(pack(row))) for row in rows]


def unsealed(row: Row) -> Row:
    """Return a row without its seal.

    Raises:
        DamagedStoreError: the row is not what was sealed.
    """
    *content, seal = row
    if _checksum(content) != seal:
        raise DamagedStoreError(_WRONG)
    return tuple(content)


def all_unsealed(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows without their seals; raises what `unsealed` raises."""
    return map(unsealed, rows)


def sealed_pane(row: Row) -> Row:
    """Return a row of the table of panes, whose last columns are the masks, with its seal."""
    *content, dirty, refused = row
    return (*row, crc32(pack(content)) + _DIRTY * dirty + _REFUSED * refused)


def unsealed_pane(row: Row) -> Row:
    """Return a row of the table of panes without its seal.

    Raises:
        DamagedStoreError: the row is not what was sealed.
    """
    *content, dirty, refused, seal = row
    if type(dirty) is not int or type(refused) is not int:
        raise DamagedStoreError(_WRONG)
    if not (0 <= dirty < _MASKS and 0 <= refused < _MASKS):
        raise DamagedStoreError(_WRONG)
    if _checksum(content) + _DIRTY * dirty + _REFUSED * refused != seal:
        raise DamagedStoreError(_WRONG)
    return (*content, dirty, refused)


def masks_become(dirty: str = "dirty", refused: str = "refused") -> str:
    """Return the SQL that sets the masks of pane entries, SQL expressions, and mends their seals.

    >>> masks_become("dirty | 1").startswith("dirty = (dirty | 1), refused = (refused), seal = ")
    True
    """
    more = f"(({dirty}) - dirty) * {_DIRTY} + (({refused}) - refused) * {_REFUSED}"
    return f"dirty = ({dirty}), refused = ({refused}), seal = seal + {more}"


def _checksum(content: Sequence[Any]) -> int:
    try:
        return crc32(pack(content))
    except (ValueError, TypeError, OverflowError):  # SQLite gave what was never written
        return -1
