"""A source that may break, and does not take the agent with it.

What a source raises is counted by reason (`device_agent.agent.state.counters`). The source then
rests, twice as long after each failure, and is asked again: a sensor that was pulled out, a file on
a network and a bug all heal the same way.
"""

from device_agent.agent.intake.batch import Batch
from device_agent.agent.sources.source import Source
from device_agent.agent.state.counters import Guard
from lasp_edge.units import SECOND_US

FIRST_REST_US = SECOND_US
"""Microseconds of rest after the first failure: what is back at once is not missed for long."""
LONGEST_REST_US = 60 * SECOND_US
"""Microseconds of rest at most: a source that is mended is read again within a minute."""


class GuardedSource(Source):
    """A source whose every call is guarded.

    Args:
        source: the source.
        guard: counts what it raises.
    """

    def __init__(self, source: Source, guard: Guard) -> None:
        self.name, self.replayable = source.name, source.replayable
        self._source, self._guard = source, guard
        self._rest_us = FIRST_REST_US
        self._asleep_us: int | None = None
        self._to_open = False
        self._cursor: str | None = None

    @property
    def has_own_times(self) -> bool:
        return self._source.has_own_times

    def open(self, cursor: str | None) -> None:
        self._to_open = False
        try:
            self._opened(cursor)
        except ValueError:
            raise  # it cannot be read as it was asked for: the user's to mend, before the start
        except BaseException as error:  # noqa: BLE001 - a source may raise anything
            self._guard.failed(f"source {self.name}", error)
            self._to_open, self._cursor = True, cursor

    def _opened(self, cursor: str | None) -> None:
        self._source.open(cursor)
        news = getattr(self._source, "news", "")
        if news:
            self._guard.say(f"source {self.name}: {news}")

    def poll(self, now_us: int) -> Batch | None:
        if self._rests(now_us):
            return None
        self._asleep_us = None
        try:
            if self._to_open:
                self._opened(self._cursor)
                self._to_open = False
            batch = self._source.poll(now_us)
        except BaseException as error:  # noqa: BLE001 - a source may raise anything
            self._guard.failed(f"source {self.name}", error)
            self._asleep_us = now_us + self._rest_us
            self._rest_us = min(2 * self._rest_us, LONGEST_REST_US)
            return None
        self._rest_us = FIRST_REST_US
        return batch

    def _rests(self, now_us: int) -> bool:
        """Return whether it is too early to ask again; a clock that was set back says nothing."""
        wakes_us = self._asleep_us
        return wakes_us is not None and wakes_us - LONGEST_REST_US <= now_us < wakes_us

    def due_us(self, now_us: int) -> int | None:
        if self._rests(now_us):
            return self._asleep_us
        try:
            return self._source.due_us(now_us)
        except BaseException as error:  # noqa: BLE001 - a source may raise anything
            self._guard.failed(f"source {self.name}", error)
            return now_us + FIRST_REST_US

    @property
    def is_full(self) -> bool:
        try:
            return self._source.is_full
        except BaseException as error:  # noqa: BLE001 - a source may raise anything
            self._guard.failed(f"source {self.name}", error)
            return True

    def acknowledge(self, cursor: str | None) -> None:
        self._guard.run(f"source {self.name}", self._source.acknowledge, cursor)

    def close(self) -> None:
        self._guard.run(f"source {self.name}", self._source.close)
