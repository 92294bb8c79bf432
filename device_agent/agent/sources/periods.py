"""Sensors that are asked at a regular pace, and their options.

Periods that were missed, asleep or stopped, are not made up for.
"""

from device_agent.agent.sources.source import Option, number_of_toml, table_in_file, texts_in_file
from lasp_edge.timers import is_time
from lasp_edge.units import SECOND_US

LEAST_PERIOD_S, LONGEST_PERIOD_S = 1e-6, 1e9
"""Seconds between two readings: one microsecond, the unit of time, up to three decades."""


def _period_us(text: str) -> int:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not LEAST_PERIOD_S <= seconds < LONGEST_PERIOD_S:
        raise ValueError(f"--every: a positive number of seconds is needed, not {text}")
    return round(seconds * SECOND_US)


EVERY = Option[int | None](
    "every",
    None,
    _period_us,
    "seconds between two readings of this machine's sensors (default: 1; of onewire: 10)",
    "S",
    of_toml=lambda given: _period_us(number_of_toml(given)),
    former=("host-every",),
)


ONLY = texts_in_file("only", "the chips or sensors to read (default: all)")
NAMES = table_in_file("names", "what the tag `sensor` says for a sensor, such as its room")


class ReadingPeriod:
    """Tells when the next readings are due.

    Args:
        period_us: time between readings.
    """

    def __init__(self, period_us: int) -> None:
        self._period_us = period_us
        self._next_us: int | None = None
        self._last_us = 0

    def begin(self, now_us: int) -> int | None:
        """Return the time since the readings before, if it is time for the next; else None."""
        if self._next_us is not None and not is_time(now_us, self._next_us, self._period_us):
            return None
        elapsed_us = now_us - self._last_us
        behind_us = now_us - (self._next_us or now_us)
        self._next_us = now_us + self._period_us - behind_us % self._period_us
        self._last_us = now_us
        return elapsed_us

    def due_us(self, now_us: int) -> int:
        """Return when the next readings are due."""
        return self._next_us or now_us
