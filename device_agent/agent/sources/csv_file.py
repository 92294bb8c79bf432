"""CSV with a header row; a field is a column, and what looks like a number is one.

Columns stand between commas, or between semicolons, tabs or bars, as the header shows. An empty
cell of an event is no reading, and is not counted.

A quote that nobody closes, as in half a row that a power cut left, costs the line in which it
stands, and not the rows behind it.

A last row without its end of line cannot be distinguished from half a row, as half a number is a
number. It counts once nobody has written to the file for `SETTLED_US`, unless the file is followed.
"""

import csv
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from device_agent.agent.sources.fields import Record
from device_agent.agent.sources.mapping_options import mapping_of
from device_agent.agent.sources.nearest import nearest
from device_agent.agent.sources.recorded_file import (
    BATCH_BYTES,
    UNREADABLE,
    RecordedFile,
    lacks_end,
)
from device_agent.agent.sources.replay import Replay, Row, Rows, replay_of
from device_agent.agent.sources.source import SourceContext
from lasp_edge.tool.csv_header import header_of

NOT_CSV = "not CSV"
WRONG_WIDTH = "not as many fields as the header"
SETTLED_US = 2_000_000
"""Microseconds without a write after which a last row is taken as whole: a writer that buffers
writes the rest of a row at once."""


class CsvRows(Rows):
    """The rows of a CSV file; see `Rows`.

    Raises:
        ValueError: a column that is needed is not in the header.
    """

    def __init__(self, path: Path, offset: int, line: int, needed: list[str]) -> None:
        head = RecordedFile(path, 0, 0)
        first = head.read_lines(1)
        head.close()
        self._changed = (-1, 0)
        self._behind_first: tuple[int, int] | None = None
        self._columns, self._delimiter = header_of([_text(line) for line in first])
        missing = [column for column in needed if column not in self._columns]
        if missing:
            has = f"it has {', '.join(self._columns)}" if self._columns else "it is empty"
            near = nearest(missing[0], self._columns)
            meant = f'; did you mean "{near}"?' if near else ""
            if self._columns and self._columns[0].startswith("{"):
                meant = "; it looks like JSON lines: jsonl:PATH reads them"
            raise ValueError(f"{path} has no column {missing[0]!r}; {has}{meant}")
        super().__init__(path, offset or head.offset, line or head.line)

    def records(self, limit: int, now_us: int) -> list[Record | str]:
        """Return up to `limit` rows."""
        return [row.record for row in self.rows(limit, now_us)]

    def rows(self, limit: int, now_us: int) -> list[Row]:
        """Return up to `limit` rows and their places."""
        self.retry_us = None
        reader = self._reader(now_us)
        rows: list[Row] = []
        end = self.offset + BATCH_BYTES
        place, self.ended = (self.offset, self.line), False
        while len(rows) < limit and self.offset < end and not self.ended:
            record = self._next_record(reader)
            if record is NOT_CSV and self._behind_first is not None:
                self.go_back(*self._behind_first)
                reader = self._reader(now_us)
            if record is not None:
                rows.append(Row(record, self.offset, self.line))
            if not self.ended:
                place = self.offset, self.line
        self.go_back(*place)
        return rows

    def _reader(self, now_us: int) -> Iterator[list[str]]:
        return csv.reader(self._lines(now_us), delimiter=self._delimiter, strict=True)

    def _next_record(self, reader: Iterator[list[str]]) -> Record | str | None:
        """Return the next row or why it is not one; None for a blank line and at the end."""
        self._behind_first = None
        try:
            cells = next(reader)
        except StopIteration:
            self.ended = True
            return UNREADABLE if self.damaged else None
        except csv.Error:
            # A quoted field that is not closed where the file ends now may be closed later.
            self.ended = self.retry_us is not None
            return None if self.ended else NOT_CSV
        if len(cells) != len(self._columns):
            return WRONG_WIDTH if cells else None
        return dict(zip(self._columns, cells, strict=True))

    def _lines(self, now_us: int) -> Iterator[str]:
        while lines := self.read_lines(1):
            if lacks_end(lines[0]):
                settled_us = self._settled_us(now_us)
                if settled_us > now_us:
                    self.retry_us = settled_us
                    return
            self._behind_first = self._behind_first or (self.offset, self.line)
            yield _text(lines[0])

    def _settled_us(self, now_us: int) -> int:
        """Return when nobody will have written to the file for long enough.

        The file's time is the wall clock's, which may have been set since the agent started. Of a
        file that is followed the rest of a row is always waited for.
        """
        if self.grows:
            return now_us + SETTLED_US
        changed_us = self.changed_us()
        if changed_us != self._changed[0]:
            self._changed = changed_us, now_us
        return min(changed_us, self._changed[1]) + SETTLED_US


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace")


def make(spec: str, place: str, context: SourceContext) -> Replay:
    """Return the source; see `SourceKind.make`."""
    mapping = mapping_of(context, absent=("",))
    return replay_of(spec, place, context, partial(CsvRows, needed=mapping.needed), mapping)
