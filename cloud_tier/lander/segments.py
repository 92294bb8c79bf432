"""The lander's log: a message is on disk before the broker may forget it.

The log is a folder of segments, each a file of records behind one another:

    length u32 | crc32 u32 | body

    body of a message: 0 u8 | received_us i64 | retained u8 | length of topic u16 | topic | payload
    body of a clock:   1 u8 | now_us i64 | since_us i64

A segment begins and ends with a clock: from when until when the lander had listened. It is
written, synced, closed, landed, and deleted when the next one has landed: so the log knows the last
one that has, also where the lake was put back. No closed segment is ever written to again, so
landing it twice would land the same, and `landing` recognises it by its number. After a crash the
last record may be torn. It was never synced, so the broker still has it.

Every process start goes on with a new segment. The numbers go up for ever; they are the versions
of the lander's app transaction.
"""

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator, Sequence
from io import BufferedWriter
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from cloud_tier.lake.torn import sync
from lasp_edge.errors import UsageError
from lasp_edge.protocol.acceptance import Record
from lasp_edge.protocol.frontier import Listening

_HEAD: Final = struct.Struct(">II")
_MESSAGE: Final = struct.Struct(">BqBH")
_CLOCK: Final = struct.Struct(">Bqq")
_IS_MESSAGE: Final = 0
_IS_CLOCK: Final = 1
_SUFFIX: Final = ".segment"
DEVICES_FILE: Final = "devices.jsonl"
"""Beside the segments: what the lander knows of each device."""


class Segment(NamedTuple):
    """A closed segment.

    Attributes:
        number: greater than that of every earlier one of this lander.
        clock: the lander's clock at its end.
    """

    number: int
    clock: Listening
    records: list[Record]


def begun_log(folder: Path) -> Path | None:
    """Return a log's folder if segments are in it, so that there was a lake; else None."""
    return folder if any(folder.glob(f"*{_SUFFIX}")) else None


class Log:
    """The segments of one lander; one process at a time.

    Args:
        folder: on a local disk; made if it is missing.
        new_id: the lander's id, should it have none yet.

    Raises:
        UsageError: another process writes to this log.
    """

    def __init__(self, folder: Path, new_id: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._lock = (folder / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise UsageError(
                f"another lander is writing to {folder}: give this one a --log-dir of its own"
            ) from None
        try:
            self.lander = _durable_text(folder / "lander", new_id)
        except OSError:
            self._lock.close()
            raise
        self._file: BufferedWriter | None = None
        self._number = max(self.closed(), default=0)

    def closed(self) -> list[int]:
        """Return the numbers of the segments that are not open, ascending."""
        numbers = (int(path.stem) for path in self.folder.glob(f"*{_SUFFIX}"))
        return sorted(number for number in numbers if not self.is_open or number != self._number)

    @property
    def is_open(self) -> bool:
        """Whether a segment is being written."""
        return self._file is not None

    def start_after(self, number: int) -> None:
        """Number later segments above this one, under which one has landed already."""
        self._number = max(self._number, number)

    def append(self, record: Record, since_us: int) -> None:
        """Write a message, not yet durably; opens a segment if none is open.

        Args:
            record: the message.
            since_us: since when the lander has listened.
        """
        if self._file is None:
            self._open(Listening(record.received_us, since_us))
        self._write(_message(record))

    def sync(self) -> None:
        """Make everything that was written durable."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close_segment(self, clock: Listening) -> int:
        """Close the open segment, or one without messages, and return its number."""
        if self._file is None:
            self._open(clock)
        self._write(_CLOCK.pack(_IS_CLOCK, *clock))
        self.sync()
        assert self._file is not None
        self._file.close()
        self._file = None
        return self._number

    def read(self, number: int) -> Segment:
        """Return a closed segment, without the torn record that a crash may have left."""
        clock, records = Listening(0, 0), []
        for body in _bodies(self._path(number).read_bytes()):
            if body[0] == _IS_CLOCK:
                clock = Listening(*_CLOCK.unpack(body)[1:])
                continue
            record = _record(body)
            clock = clock._replace(now_us=max(clock.now_us, record.received_us))
            records.append(record)
        return Segment(number, clock, records)

    def drop(self, number: int) -> None:
        """Delete a segment: it has landed, and a later one too."""
        self._path(number).unlink(missing_ok=True)

    def devices(self) -> list[str]:
        """Return what the lander keeps of each device, a line each."""
        path = self.folder / DEVICES_FILE
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def keep_devices(self, lines: Sequence[str]) -> None:
        """Make that durable in place of the former lines.

        Raises:
            OSError: it cannot be written.
        """
        replace_durably(self.folder / DEVICES_FILE, "\n".join(lines))

    def release(self) -> None:
        """Let another process write to this log; what is not synced need not be written."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # the disk is full
                self._file.close()
            self._file = None
        self._lock.close()

    def _open(self, clock: Listening) -> None:
        self._number += 1
        self._file = self._path(self._number).open("xb")
        self._write(_CLOCK.pack(_IS_CLOCK, *clock))
        sync(self.folder)

    def _write(self, body: bytes) -> None:
        assert self._file is not None
        self._file.write(_HEAD.pack(len(body), crc32(body)) + body)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:012d}{_SUFFIX}"


def _message(record: Record) -> bytes:
    topic = record.topic.encode()
    head = _MESSAGE.pack(_IS_MESSAGE, record.received_us, record.retained, len(topic))
    return head + topic + record.payload


def _record(body: bytes) -> Record:
    _, received_us, retained, length = _MESSAGE.unpack_from(body)
    start = _MESSAGE.size + length
    topic = body[_MESSAGE.size : start].decode()
    return Record(received_us, topic, bool(retained), body[start:])


def _bodies(written: bytes) -> Iterator[bytes]:
    start = 0
    while start + _HEAD.size <= len(written):
        length, checksum = _HEAD.unpack_from(written, start)
        body = written[start + _HEAD.size : start + _HEAD.size + length]
        if len(body) != length or not body or crc32(body) != checksum:
            return
        yield body
        start += _HEAD.size + length


def _durable_text(path: Path, text: str) -> str:
    """Return what a file holds, written before where it is missing."""
    if path.exists():
        return path.read_text()
    replace_durably(path, text)
    return text


def replace_durably(path: Path, text: str) -> None:
    """Put text in place of what a file holds; after a power cut it holds one or the other.

    Raises:
        OSError: it cannot be written; it holds what it held.
    """
    arriving = path.with_suffix(".new")
    with arriving.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    arriving.replace(path)
    sync(path.parent)
