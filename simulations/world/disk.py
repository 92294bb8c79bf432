"""A device's disk: it outlives the process, and it fails.

In memory the store is the agent's own, with its own statements and transactions, on a SQLite
database without a file. On files it is the agent's store as it is. Both give images of what is
durable, and take one in place of all that they hold.

    >>> disk = MemoryDisk()
    >>> store = disk.open()
    >>> store.commit(Changes(counters={"accepted": 3}))
    >>> before = disk.image()
    >>> store.commit(Changes(counters={"accepted": 4}))
    >>> disk.restore(before)
    >>> disk.open().restored().counters
    {'accepted': 3}
"""

import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Generic, Protocol, TypeVar

from device_agent.agent.changes import Changes
from device_agent.agent.state.pane_table import PaneTable
from device_agent.agent.state.store import FILE_NAME, Store
from device_agent.agent.stored_rows import BlockId, PaneId, PaneRow, WaitingRow
from lasp_edge.evaluation.stored import HistoryRow

IMAGES = 4
"""Older images that are kept of a disk."""


class EmptyStore:
    """What a part may read of a store that holds nothing: for a core that keeps nothing."""

    def identities(self, _block: BlockId) -> None:
        """There is no block."""

    def identity_blocks(self, _event: str, _first: int, _last: int) -> list[tuple[BlockId, bytes]]:
        """There is no block."""
        return []

    def panes_named(self, _panes: Iterable[PaneId]) -> list[tuple[PaneId, PaneRow]]:
        """There is no entry."""
        return []

    def history(self, _stream: int, _least_us: int, _end_us: int) -> list[tuple[int, HistoryRow]]:
        """Nothing is kept."""
        return []

    def newest_panes(self, _stream: int, _span_us: int) -> list[tuple[PaneId, PaneRow]]:
        """There is no entry."""
        return []

    def panes_between(
        self, _stream: int, _first_us: int, _end_us: int
    ) -> list[tuple[PaneId, PaneRow]]:
        """There is no entry."""
        return []

    def waiting(self, _packed_bytes: int) -> list[WaitingRow]:
        """Nothing waits."""
        return []


class OpenedStore(Store):
    """The agent's store whose database can be looked into, and fails, as a disk does."""

    @property
    def database(self) -> sqlite3.Connection:
        """The connection on which it works; another one can take its place."""
        return self._db

    @database.setter
    def database(self, db: sqlite3.Connection) -> None:
        self._use(db)


class MemoryStore(OpenedStore):
    """The agent's store, on a database in memory."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.path = Path(":memory:")
        self.read_only = False
        self.quarantined = None
        self.news = ""
        self._lock = None
        self._db = db
        self._panes = PaneTable(db)

    def need_file(self) -> None:
        """There is no file that somebody could delete."""

    def close(self) -> None:
        """End an open transaction: the process is gone, the disk is not."""
        self._db.set_trace_callback(None)
        self._db.set_progress_handler(None, 1)
        if self._db.in_transaction:
            self._db.rollback()


class OpenDatabase(Protocol):
    """A store that is open."""

    @property
    def database(self) -> sqlite3.Connection:
        """The connection on which it works."""


AnyStore = TypeVar("AnyStore", bound=OpenDatabase)


class Disk(ABC, Generic[AnyStore]):
    """What a process finds when it starts.

    Attributes:
        images: older contents, the newest last.
        recent: contents after the last steps.
        store: the store that was opened last.
    """

    def __init__(self) -> None:
        self.images: deque[bytes] = deque(maxlen=IMAGES)
        self.recent: deque[bytes] = deque(maxlen=3)
        self.store: AnyStore | None = None
        self._fails_after: tuple[int, int] | None = None
        self._spent: Callable[[], bool] | None = None

    @abstractmethod
    def found(self) -> AnyStore:
        """Return a store on what is there."""

    @abstractmethod
    def image(self) -> bytes:
        """Return all that is durable."""

    @abstractmethod
    def restore(self, image: bytes) -> None:
        """Put an image in place of everything; empty for a new disk."""

    @abstractmethod
    def remove(self) -> None:
        """Let it take no room any more."""

    def keep_image(self) -> None:
        """Keep an image of what is durable now, to go back to."""
        self.images.append(self.image())

    def flip(self, random: Random, bits: int) -> None:
        """Change some bits."""
        content = bytearray(self.image())
        for _ in range(bits if content else 0):
            content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        self.restore(bytes(content))

    def open(self) -> AnyStore:
        """Return a store on what is there; the one before must be closed."""
        self.store = self.found()
        if self._fails_after is not None:
            self.fail(*self._fails_after)
        return self.store

    def fail(self, after: int, commits: int = 0) -> None:
        """Let every statement fail once the database has done some more commits and operations.

        Args:
            after: operations that it does then.
            commits: transactions that it ends first.
        """
        self._fails_after = after, commits
        left, is_ended = after, False

        def begun(statement: str) -> None:
            nonlocal commits, is_ended
            commits -= is_ended
            is_ended = statement == "COMMIT"

        def spent() -> bool:
            nonlocal left
            left -= commits <= 0
            return left < 0

        if self.store is not None:
            db = self.store.database
            db.set_trace_callback(begun if commits else None)
            db.set_progress_handler(spent, 1)
            self._spent = spent

    @property
    def fails(self) -> bool:
        """Whether statements fail, now or soon."""
        return self._fails_after is not None

    def mend(self) -> None:
        """Let statements succeed again."""
        self._fails_after = self._spent = None
        if self.store is not None:
            with suppress(sqlite3.ProgrammingError):  # its process has ended
                db = self.store.database
                db.set_trace_callback(None)
                db.set_progress_handler(None, 1)


AgentDisk = Disk[OpenedStore]
"""A device's disk."""


class DiskInMemory(Disk[AnyStore]):
    """A disk in memory: fast."""

    def __init__(self) -> None:
        super().__init__()
        self._db = in_memory(self.empty())
        self._image, self._imaged = b"", -1

    @classmethod
    @abstractmethod
    def empty(cls) -> bytes:
        """Return the image of a store that holds nothing."""

    def image(self) -> bytes:
        changes = self._db.total_changes
        if self._imaged != changes:  # most often, nothing was written since the last one
            self._image, self._imaged = self._db.serialize(), changes
        return self._image

    def restore(self, image: bytes) -> None:
        self._db.close()
        self._db, self._imaged = in_memory(image or self.empty()), -1

    def remove(self) -> None:
        self._db.close()


class MemoryDisk(DiskInMemory[OpenedStore]):
    """A device's disk in memory."""

    @classmethod
    @cache
    def empty(cls) -> bytes:
        with TemporaryDirectory(prefix="store-") as name:
            disk = FileDisk(Path(name))
            disk.open().close()
            return without_log(disk.image())

    def found(self) -> OpenedStore:
        return MemoryStore(self._db)


class FileDisk(Disk[OpenedStore]):
    """A disk with the agent's real files.

    Args:
        directory: the agent's data directory.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory

    def found(self) -> OpenedStore:
        return OpenedStore(self._directory)

    def image(self) -> bytes:
        path = self._directory / FILE_NAME
        if not path.exists():
            return b""
        if self.store is not None:
            with suppress(sqlite3.Error):  # its process has ended
                return self._while_it_runs(self.store.database)
        source = sqlite3.connect(path)
        with closing(source), suppress(sqlite3.Error):
            return source.serialize()
        return path.read_bytes()  # it is damaged

    def _while_it_runs(self, db: sqlite3.Connection) -> bytes:
        """Return what is durable, though statements fail: nobody else can read it meanwhile."""
        db.set_progress_handler(None, 1)
        try:
            return db.serialize()
        finally:
            db.set_progress_handler(self._spent, 1)

    def restore(self, image: bytes) -> None:
        self.remove()
        if image:
            self._directory.mkdir(parents=True)
            (self._directory / FILE_NAME).write_bytes(image)

    def remove(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)


def without_log(image: bytes) -> bytes:
    """Return an image of a file as one of a database in memory, which has no write-ahead log."""
    return image[:18] + b"\x01\x01" + image[20:]


def in_memory(image: bytes) -> sqlite3.Connection:
    """Return a database in memory with the content of an image."""
    db = sqlite3.connect(":memory:", isolation_level=None, cached_statements=64)
    db.deserialize(image)
    return db


__all__ = ["AgentDisk", "Changes", "FileDisk", "MemoryDisk", "MemoryStore", "OpenedStore"]
