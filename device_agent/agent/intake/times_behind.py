"""Sources whose times are probably in another zone: quarters of an hour behind, time after time.

Times ahead of the clock are refused. Behind it they are good readings, in windows of the past, and
the windows of the whole fleet wait for them: nothing else would show why.

    >>> notices = Notices()
    >>> behind = TimesBehind(notices)
    >>> for now_us in range(0, 90 * SECOND_US, 30 * SECOND_US):
    ...     behind.look("meter", now_us - 4 * QUARTER_US, now_us)
    >>> notices.texts[0].partition(":")[0]
    'the times of meter are each 1 h behind the clock'
"""

from typing import Final, NamedTuple

from device_agent.agent.notices import Notices
from lasp_edge.units import SECOND_US

QUARTER_US: Final = 900 * SECOND_US
"""All zones are quarters of an hour apart."""
QUARTERS: Final = range(2, 57)
"""How far they are apart: from half an hour to 14 hours."""
NEAR_US: Final = 60 * SECOND_US
"""By how much a reading may be late beside that."""
LEAST_US: Final = QUARTERS[0] * QUARTER_US - NEAR_US
"""What is less behind is in no other zone."""
SURE: Final = 3
"""Commits that show one distance, one after the other, before it is named."""
SURE_US: Final = 30 * SECOND_US
"""How long they take at least: a recording, and a queue that a broker kept, pass more quickly."""


class Distance(NamedTuple):
    """How far a source is behind, since when, and how many commits have shown it."""

    quarters: int
    since_us: int
    times: int = 1


class TimesBehind:
    """Notes such sources.

    Args:
        notices: where that is noted.

    Attributes:
        distances: of the sources that were behind when they were looked at last.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self.distances: dict[str, Distance] = {}

    def look(self, source: str, newest_us: int, now_us: int) -> None:
        """Look at the newest time that a source gave at once, and at what time it was then."""
        behind_us, before = now_us - newest_us, self.distances.get(source)
        quarters = round(behind_us / QUARTER_US)
        if quarters not in QUARTERS or abs(behind_us - quarters * QUARTER_US) > NEAR_US:
            self.end(source)
        elif before is None or before.quarters != quarters or now_us < before.since_us:
            self.end(source)
            self.distances[source] = Distance(quarters, now_us)
        else:
            after = self.distances[source] = before._replace(times=before.times + 1)
            if after.times >= SURE and now_us >= after.since_us + SURE_US:
                self._notices.begin(f"zone {source}", _text(source, quarters))

    def end(self, source: str) -> None:
        """Note that a source gives other times, or nothing more."""
        if self.distances.pop(source, None) is not None:
            self._notices.end(f"zone {source}")


def _text(source: str, quarters: int) -> str:
    return (
        f"the times of {source} are each {quarters / 4:g} h behind the clock: is its --time-zone "
        "right? The fleet's windows wait for it"
    )
