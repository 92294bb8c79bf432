"""A source of recorded rows, as fast as the agent takes them or at a multiple of their pace.

The cursor is the byte offset behind the last row taken (of the text, before any compression), the
number of lines there, and a checksum of the file's head: `4711:12:0badcafe`. Where another file
stands there by now, it is read from its beginning: rows with times of their own that were read
before are known as repeats. Without such times nobody could tell, and it is not read.

Where lines gave no reading, the cursor also holds a checksum of the source's options, how many such
lines there were, and 1 where no line gave one: `4711:12:0badcafe:5eed5eed:12:1`. With other options
(a time zone that was missing, a field that was misspelt) the file is read from its beginning if no
line gave a reading. Otherwise a line may mean something else now, and would count twice: the lines
that gave none are named, with the way to read them.

Where lines gave readings and the program refused each of them, the former checksum is that of no
options, if the rows have times: the file is read again at each start until one is accepted.

A file that is followed is never at its end: it is read on as it grows, and where another file has
taken its place that one is opened as at a start.

At a finite speed a row is due when as much time has passed since the first poll, times `speed`, as
lies between the row and the first row of the file, or the first one behind the cursor. All agents
that replay one file, each its own device's rows, thus keep step. A row without a usable time is due
with the row before it.
"""

import contextlib
import json
import re
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from device_agent.agent.intake.batch import Batch
from device_agent.agent.sources.fields import Record
from device_agent.agent.sources.mapping import FieldMapping
from device_agent.agent.sources.mapping_options import FOLLOW, MAPPING_OPTIONS, SPEED
from device_agent.agent.sources.recorded_file import (
    HEAD_BYTES,
    AnotherFileError,
    RecordedFile,
    head_of,
)
from device_agent.agent.sources.source import Source, SourceContext
from lasp_edge.folds.numbers import Refused

ROWS = 500
"""Rows in a batch, at most: more would not be faster, and take a small device's memory."""
FOLLOW_US = 1_000_000
"""Microseconds until a file that is followed is looked at again."""
_PACED_ROWS = 100
"""Rows that are read ahead at a finite speed: some seconds of most recordings."""


_NO_OPTIONS = 0
"""In place of a checksum of options: the file is read again with any."""
_CURSOR = re.compile(
    "([0-9]+):([0-9]+)(?::([0-9a-f]{8})(?::([0-9a-f]{8}):([0-9]+):([01]))?)?", re.ASCII
)


class LinesWithout(NamedTuple):
    """The lines of a file, so far, that gave no reading.

    Attributes:
        options: a checksum of the options with which they were read.
        refused: how many were refused.
        alone: no line gave a reading, or the program refused each.
    """

    options: int
    refused: int = 0
    alone: bool = True

    @property
    def mark(self) -> str:
        """Their part of a cursor; "" where each line gave a reading."""
        if not (self.refused or self.alone):
            return ""
        return f":{self.options:08x}:{self.refused}:{self.alone:d}"

    def with_batch(self, batch: Batch) -> "LinesWithout":
        """Return the same with the lines of one more batch."""
        refused = self.refused + sum(batch.refused.values())
        return self._replace(refused=refused, alone=self.alone and not batch.names)


class Row(NamedTuple):
    """A row, or the reason why it is not one, and the place behind it."""

    record: Record | str
    offset: int
    line: int


class Rows(RecordedFile):
    """A file of rows."""

    retry_us: int | None = None
    """When to look for the rest of a last row that is incomplete; None: never."""
    grows: bool = False
    """The file is followed: a last row without its end is half a row."""

    @abstractmethod
    def records(self, limit: int, now_us: int) -> list[Record | str]:
        """Return up to `limit` rows, or the reason why one is not a row."""

    @abstractmethod
    def rows(self, limit: int, now_us: int) -> list[Row]:
        """Return the same with the place behind each."""


class Replay(Source):
    """A source of recorded rows.

    Args:
        name: the source's name.
        path: the file.
        open_rows: opens it at a byte offset and line number.
        mapping: from rows to readings.
        options: a checksum of what decides which readings a row gives.
        speed: times as fast as recorded; None: as fast as the agent takes them.
        show: see `SourceContext.show`.
        follows: it reads on as the file grows.

    Raises:
        ValueError: a finite speed without a time, or not positive, or of a file that grows.
    """

    replayable = True

    def __init__(
        self,
        name: str,
        path: Path,
        open_rows: Callable[[Path, int, int], Rows],
        mapping: FieldMapping,
        options: int,
        speed: float | None = None,
        show: Callable[[str], None] | None = None,
        *,
        follows: bool = False,
    ) -> None:
        if follows and (speed is not None or path.suffix == ".gz"):
            raise ValueError("--follow reads lines as they come: of no .gz, and without --speed")
        if speed is not None and not speed > 0:
            raise ValueError(f"--speed is a positive number or max, not {speed}")
        if speed is not None and not mapping.has_times:
            raise ValueError("--speed needs --time: without times of their own rows have no pace")
        self.name = name
        self._path = path
        self._open_rows = open_rows
        self._mapping = mapping
        self._speed, self._show, self._follows = speed, show, follows
        self._file: Rows | None = None
        self._place = (0, 0)
        self._without = LinesWithout(options)
        self._head, self._read_mark = b"", ""
        self._done = False
        self._ahead: deque[Row] = deque()
        self._anchor: tuple[int, int] | None = None

    def open(self, cursor: str | None) -> None:
        place, mark, without = _parsed(cursor, self._path, self._without)
        if without.options == self._without.options:
            self._without = without
        elif without.alone:
            place, mark = (0, 0), None
        else:
            self.news = (
                f"its options changed: {without.refused} of its first {place[1]} lines gave no "
                "reading before and are not read again; give the file another name to read them"
            )
            self._without = self._without._replace(alone=False)
        self._open_or_anew(place, mark)

    def _open_or_anew(self, place: tuple[int, int], mark: str | None) -> None:
        """Open the file at a place, or at its beginning where it is not the one of this mark.

        Raises:
            ValueError: it is another file, and its rows have no times.
        """
        try:
            self._open(place, mark)
        except AnotherFileError as error:
            if not self.has_own_times:
                raise ValueError(
                    f"{self._path} is another file than before: {error}; {_RENAME}"
                ) from None
            self.news = f"it is another file than before: {error}; it is read from its beginning"
            self._without = LinesWithout(self._without.options)
            self._open((0, 0), None)

    def _open(self, place: tuple[int, int], mark: str | None) -> None:
        """Open the file at a place.

        Raises:
            AnotherFileError: it is not the one of which this place and mark are.
            ValueError: it cannot be read.
        """
        (offset, line), self._read_mark = place, mark or ""
        self._place = place
        try:
            self._file = self._open_rows(self._path, offset, line)
        except (OSError, EOFError) as error:
            raise ValueError(f"cannot read {self._path}: {error}") from None
        self._file.grows = self._follows
        if mark not in {None, self._mark(offset), self._mark(min(offset, HEAD_BYTES))}:
            self.close()  # an earlier release took HEAD_BYTES, whatever lines they are
            raise AnotherFileError("its first bytes are not those that were read of it")

    def _mark(self, offset: int) -> str:
        """Return a digest of the file up to this place, to recognise it."""
        self._head = head_of(self._path, self._head)
        return f"{crc32(self._head[:offset]):08x}"

    @property
    def has_own_times(self) -> bool:
        return self._mapping.has_times

    def poll(self, now_us: int) -> Batch | None:
        file = self._file
        if self._done or file is None:
            return None
        records = self._next_records(file, now_us)
        is_at_end = file.ended and not self._ahead and file.retry_us is None
        self._done = is_at_end and not self._follows
        if not records and not self._done:
            if self._follows and file.is_replaced:
                self._open_next(file)
            return None
        if self._show is not None:
            for record in records:
                self._show(record if isinstance(record, str) else json.dumps(record))
        batch = self._mapping.batch(self.name, records)
        self._without = self._without.with_batch(batch)
        self._note_place(batch)
        batch.done = self._done
        return batch

    def _next_records(self, file: Rows, now_us: int) -> list[Record | str]:
        """Return the next rows, and note the place behind them."""
        if self._speed is None:
            records = file.records(ROWS if self._show is None else 1, now_us)
            self._place = (file.offset, file.line)
            return records
        rows = self._due_rows(file, now_us)
        self._place = rows[-1][1:] if rows else self._place
        return [row.record for row in rows]

    def _note_place(self, batch: Batch) -> None:
        """Give a batch the cursor of the place."""
        offset, line = self._place
        if not offset:
            batch.cursor = "0:0"
            return
        self._read_mark = self._mark(offset)
        place = f"{offset}:{line}:{self._read_mark}"
        batch.cursor = f"{place}{self._without.mark}"
        if self.has_own_times and not self._without.alone:
            none = LinesWithout(_NO_OPTIONS, self._without.refused)
            batch.cursor_unless_accepted = f"{place}{none.mark}"

    def _open_next(self, file: Rows) -> None:
        """Open what has taken the file's place."""
        self._head = b""
        self._open_or_anew(self._place, self._read_mark or None)
        file.close()

    def due_us(self, now_us: int) -> int | None:
        if self._done or self._file is None:
            return None
        if self._ahead:
            return max(now_us, self._due_at_us(self._ahead[0]))
        if self._follows and self._file.ended:
            return now_us + FOLLOW_US
        return max(now_us, self._file.retry_us or now_us)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _due_rows(self, file: Rows, now_us: int) -> list[Row]:
        due: list[Row] = []
        while len(due) < ROWS:
            if not self._ahead:
                self._ahead.extend(file.rows(_PACED_ROWS, now_us))
            if not self._ahead:
                break
            if self._anchor is None:
                time_us = self._time_us(self._ahead[0])
                self._anchor = None if time_us is None else (time_us, now_us)
            if self._due_at_us(self._ahead[0]) > now_us:
                break
            due.append(self._ahead.popleft())
        return due

    def _due_at_us(self, row: Row) -> int:
        time_us = self._time_us(row)
        if time_us is None or self._anchor is None or self._speed is None:
            return 0
        first_us, began_us = self._anchor
        return began_us + ceil((time_us - first_us) / self._speed)

    def _time_us(self, row: Row) -> int | None:
        if isinstance(row.record, str):
            return None
        with contextlib.suppress(Refused):
            return self._mapping.time_of(row.record)
        return None


def replay_of(
    spec: str,
    place: str,
    context: SourceContext,
    open_rows: Callable[[Path, int, int], Rows],
    mapping: FieldMapping,
) -> Replay:
    """Return the replay of a file that `--source` names.

    Raises:
        ValueError: there is no such file, or the options cannot work.
    """
    path = Path(place)
    if not path.is_file():
        missing = "is not a plain file" if path.exists() else "is not there"
        raise ValueError(f"source {spec}: the file {place} {missing}")
    deciding = [each.name for each in MAPPING_OPTIONS if each.name in context.options]
    given = [(name, context.options[name]) for name in deciding]
    known = (context.device, list(context.events), sorted(context.texts), given)
    terms = crc32(repr(known).encode()), context.get(SPEED), context.show
    return Replay(spec, path, open_rows, mapping, *terms, follows=context.get(FOLLOW))


_RENAME = (
    "its rows have no time of their own, so nobody can tell which of them were read; "
    "to read them all, give the file another name, and --source that one"
)


def _parsed(
    cursor: str | None, path: Path, nothing: LinesWithout
) -> tuple[tuple[int, int], str | None, LinesWithout]:
    """Return a cursor's place, its mark, and the lines that gave no reading.

    A cursor without the last one is of a file that gave readings, whatever the options.
    """
    if cursor is None:
        return (0, 0), None, nothing
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise ValueError(f"{path}: {cursor!r} is not a place in a file")
    offset, line, mark, options, refused, alone = found.groups()
    place = int(offset), int(line)
    if options is None:
        return place, mark, nothing._replace(alone=not place[0])
    return place, mark, LinesWithout(int(options, 16), int(refused), alone == "1")
