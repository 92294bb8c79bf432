"""A recorded file, plain or compressed by gzip, read from a byte offset of its text.

Another file may stand under its name when it is read on: it was rotated, or exported again. Its
head tells, see `head_of`, no further than it was read, for that never changes in a file that grows.
"""

import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

_BOM = b"\xef\xbb\xbf"
UNREADABLE = "unreadable rest of the file"
HEAD_BYTES = 256
"""Bytes at the beginning that tell a file from another one, at least: some rows, with times."""
HEAD_LINES = 2
"""Lines there, at least: a header may have any length, and a row is to be there, too."""
_HEAD_LINE_BYTES = 1 << 14
"""Bytes of each of these lines, at most."""
LONGEST_LINE = 1 << 20
"""Bytes of a line, at most; what is longer is taken as several lines. No sensor writes such a one,
but a card that lost power in the middle of a write may: zeros without an end. They must not fill
memory."""
BATCH_BYTES = 1 << 20
"""Bytes after which no more lines are read at once."""


class AnotherFileError(ValueError):
    """The file is not the one that was read before; the text says how that shows."""


class RecordedFile:
    """Lines of a file, and the place behind those that were read.

    Attributes:
        offset, line: bytes and lines before the next one.
        ended: nothing more was there when it was read last.
        damaged: the rest cannot be read: a gzip file is cut off, or a disk fails.

    Raises:
        OSError: it cannot be opened.
        AnotherFileError: it is shorter than `offset`.
    """

    def __init__(self, path: Path, offset: int, line: int) -> None:
        self.path = path
        self.offset = offset
        self.line = line
        self.ended = False
        self.damaged = False
        compressed = path.suffix == ".gz"
        self._file = _opened(path)
        reached = self._file.seek(offset)
        if reached < offset or (not compressed and path.stat().st_size < offset):
            self.close()
            raise AnotherFileError(f"it is shorter than the {offset} bytes that were read of it")

    def read_lines(self, limit: int) -> list[bytes]:
        """Return up to `limit` lines; only the last and too long ones may lack their end."""
        lines: list[bytes] = []
        end = self.offset + BATCH_BYTES
        self.ended = False
        try:
            while len(lines) < limit and self.offset < end and not self.ended:
                line = self._file.readline(LONGEST_LINE)
                lines += [line] if line else []
                self.ended = not line
                self.offset += len(line)
        except (OSError, EOFError, zlib.error):
            self.damaged = self.ended = True
        if not self.line and lines and lines[0].startswith(_BOM):
            lines[0] = lines[0][len(_BOM) :]
        self.line += len(lines)
        return lines

    def go_back(self, offset: int, line: int) -> None:
        """Go back to an earlier place, so that the lines behind it are read again."""
        if offset != self.offset:
            self._file.seek(offset)
            self.offset, self.line = offset, line

    def changed_us(self) -> int:
        """Return when somebody wrote to the file last."""
        return self.path.stat().st_mtime_ns // 1_000

    @property
    def is_replaced(self) -> bool:
        """Whether another file with lines stands there, or this one is shorter than was read."""
        with suppress(OSError):  # between two files there may be none
            there, here = self.path.stat(), os.fstat(self._file.fileno())
            is_same = (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
            return there.st_size > 0 and (not is_same or there.st_size < self.offset)
        return False

    def close(self) -> None:
        """Close it."""
        self._file.close()


def lacks_end(line: bytes) -> bool:
    """Return whether a line may go on once more of the file is there."""
    return not line.endswith(b"\n") and len(line) < LONGEST_LINE


def head_of(path: Path, known: bytes = b"") -> bytes:
    """Return the first lines and bytes of a file's text, or fewer where no more can be read.

    Args:
        path: the file.
        known: its head as it was before; if that was whole, the file is not read.
    """
    if len(known) >= HEAD_BYTES and known.count(b"\n") >= HEAD_LINES:
        return known
    head = b""
    with suppress(OSError, EOFError, zlib.error), _opened(path) as file:
        for _ in range(HEAD_LINES):
            head += file.readline(_HEAD_LINE_BYTES)
        while len(head) < HEAD_BYTES and (more := file.read(HEAD_BYTES - len(head))):
            head += more
    return head


def _opened(path: Path) -> BinaryIO:
    return _unpacked(path) if path.suffix == ".gz" else path.open("rb")


def _unpacked(path: Path) -> BinaryIO:
    import gzip  # noqa: PLC0415 - an agent without such a file does without

    return cast("BinaryIO", gzip.open(path))
