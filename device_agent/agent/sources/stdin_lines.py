"""JSON lines from standard input: one reading, or several, a line; at its end the source is done.

What was read cannot be read again, so a line that was not yet durable when the agent was killed is
lost with it. A line is an object, or a bare value of the only event.
"""

import json
import os
import select
import sys
from collections.abc import Callable
from typing import Any

from device_agent.agent.intake.batch import Batch
from device_agent.agent.sources.fields import Record
from device_agent.agent.sources.jsonl_file import NOT_JSON
from device_agent.agent.sources.mapping import FieldMapping
from device_agent.agent.sources.mapping_options import mapping_of
from device_agent.agent.sources.recorded_file import LONGEST_LINE
from device_agent.agent.sources.source import Source, SourceContext

_CHUNK = 1 << 16
_LOOK_US = 100_000
"""Microseconds between two looks for more."""


class StdinLines(Source):
    """A source of the lines of a file descriptor.

    Args:
        name: the source's name.
        mapping: from records to readings.
        descriptor: where lines come from.
        show: see `SourceContext.show`.
    """

    def __init__(
        self,
        name: str,
        mapping: FieldMapping,
        descriptor: int,
        show: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self._show = show
        self._mapping = mapping
        self._descriptor = descriptor
        self._rest = b""
        self._done = False
        self._may_have_more = True

    @property
    def has_own_times(self) -> bool:
        return self._mapping.has_times

    def poll(self, now_us: int) -> Batch | None:  # noqa: ARG002
        if self._done:
            return None
        ready, _, _ = select.select([self._descriptor], [], [], 0.0)
        self._may_have_more = bool(ready)
        if not ready:
            return None
        chunk = os.read(self._descriptor, _CHUNK)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._done = not chunk
        if self._done or len(self._rest) > LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        if self._show is not None:
            for line in filter(bytes.strip, lines):
                self._show(line.decode(errors="backslashreplace"))
        batch = self._mapping.batch(
            self.name, [record for line in lines if line.strip() for record in self._records(line)]
        )
        batch.done = self._done
        return batch if len(batch) or batch.refused or batch.done else None

    def due_us(self, now_us: int) -> int | None:
        if self._done:
            return None
        return now_us if self._may_have_more else now_us + _LOOK_US

    def _records(self, line: bytes) -> list[Record | str]:
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError):
            return [NOT_JSON]
        values = value if type(value) is list else [value]
        return [
            each if type(each) is dict else self._mapping.record_of_value(each, "value")
            for each in values
        ]


def make(name: str, _place: str, context: SourceContext) -> StdinLines:
    """Return the source; see `SourceKind.make`."""
    if sys.stdin is None:
        raise ValueError(f"source {name}: this process has no standard input")
    return StdinLines(name, mapping_of(context), sys.stdin.fileno(), context.show)
