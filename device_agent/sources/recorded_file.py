"""A recorded file, plain or compressed by gzip, read from a byte offset of its text."""

import zlib
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

_BOM = b"\xef\xbb\xbf"
UNREADABLE = "unreadable rest of the file"


class RecordedFile:
    """Lines of a file, and the place behind those that were read.

    Attributes:
        offset, line: bytes and lines before the next one.
        ended: nothing more was there when it was read last.
        damaged: the rest cannot be read: a gzip file is cut off, or a disk fails.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is shorter than `offset`.
    """

    def __init__(self, path: Path, offset: int, line: int) -> None:
        self.path = path
        self.offset = offset
        self.line = line
        self.ended = False
        self.damaged = False
        compressed = path.suffix == ".gz"
        self._file = _unpacked(path) if compressed else path.open("rb")
        reached = self._file.seek(offset)
        if reached < offset or (not compressed and path.stat().st_size < offset):
            raise ValueError(f"{path} is shorter than the {offset} bytes that were read of it")

    def read_lines(self, limit: int) -> list[bytes]:
        """Return up to `limit` lines; only the last of the file may lack its end of line."""
        lines: list[bytes] = []
        try:
            lines.extend(islice(self._file, limit))
        except (OSError, EOFError, zlib.error):
            self.damaged = True
        self.ended = len(lines) < limit
        self.offset += sum(map(len, lines))
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

    def close(self) -> None:
        """Close it."""
        self._file.close()


def _unpacked(path: Path) -> BinaryIO:
    import gzip  # noqa: PLC0415 - an agent without such a file does without

    return cast("BinaryIO", gzip.open(path))
