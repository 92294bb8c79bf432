"""JSON lines: one object a line; blank lines are passed over.

A last line without its end of line counts if it is an object, for half of one never is. Otherwise
it is left where it is: whoever writes the file may be in the middle of it, and the next start
finds the whole.
"""

import json
from typing import Any

from device_agent.agent.sources.fields import Record
from device_agent.agent.sources.mapping_options import mapping_of
from device_agent.agent.sources.recorded_file import UNREADABLE, lacks_end
from device_agent.agent.sources.replay import Replay, Row, Rows, replay_of
from device_agent.agent.sources.source import SourceContext

NOT_JSON = "not JSON"
NOT_A_LINE = "not JSON: each line must be one whole object"
NOT_AN_OBJECT = "not a JSON object: each line must be one"


class JsonLines(Rows):
    """The rows of a file of JSON lines; see `Rows`."""

    def records(self, limit: int, now_us: int) -> list[Record | str]:  # noqa: ARG002
        """Return up to `limit` rows.

        Many lines are parsed as one array, which takes half the time. Unless that gives one
        object for each line, each is parsed on its own.
        """
        lines = self._complete_lines(limit)
        try:
            together = json.loads(b"[" + b",".join(lines) + b"]")
        except (ValueError, RecursionError):
            together = []
        if len(together) != len(lines) or set(map(type, together)) - {dict}:
            together = [record_of(line) for line in lines if line.strip()]
        if self.damaged:
            together.append(UNREADABLE)
        records: list[Record | str] = together
        return records

    def rows(self, limit: int, now_us: int) -> list[Row]:  # noqa: ARG002
        """Return up to `limit` rows and their places."""
        offset, number = self.offset, self.line
        rows = []
        for line in self._complete_lines(limit):
            offset, number = offset + len(line), number + 1
            if line.strip():
                rows.append(Row(record_of(line), offset, number))
        if self.damaged:
            rows.append(Row(UNREADABLE, self.offset, self.line))
        return rows

    def _complete_lines(self, limit: int) -> list[bytes]:
        lines = self.read_lines(limit)
        if lines and lacks_end(lines[-1]) and isinstance(record_of(lines[-1]), str):
            self.go_back(self.offset - len(lines.pop()), self.line - 1)
        return lines


def record_of(line: bytes) -> Record | str:
    """Return the object in a line, or the reason why it has none.

    >>> record_of(b'{"a": 1}'), record_of(b"[1]")
    ({'a': 1}, 'not a JSON object: each line must be one')
    >>> record_of(b"{")
    'not JSON: each line must be one whole object'
    """
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return NOT_A_LINE
    return value if type(value) is dict else NOT_AN_OBJECT


def make(spec: str, place: str, context: SourceContext) -> Replay:
    """Return the source; see `SourceKind.make`."""
    return replay_of(spec, place, context, JsonLines, mapping_of(context))
