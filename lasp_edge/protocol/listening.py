"""The clock of a sink, and since when it listens by it: who is silent is decided by both.

A wall clock is stepped: a Pi without a battery starts in 1970, or where it was switched off, until
a time server is reached. Silence and listening would then have lasted for decades, or for less than
nothing. And a process that was stopped, or whose machine slept, heard nobody meanwhile. So the wall
clock is compared with the monotonic one at each look: after a step, and where nobody looked for a
while, the sink begins to listen again, and waits for every device as if it had just started.

    >>> now = [5_000_000, 100]
    >>> clock = ListeningClock(60_000_000, lambda: now[0], lambda: now[1])
    >>> clock.begin()
    >>> now[:] = [1_700_000_000_000_000, 1_000_100]
    >>> clock.look(), clock.listening
    (True, Listening(now_us=1700000000000000, since_us=1700000000000000))
"""

from collections.abc import Callable
from typing import Final

from lasp_edge.protocol.frontier import Listening
from lasp_edge.units import SECOND_US

STEP_US: Final = 2 * SECOND_US
"""Microseconds between two looks by which the clocks differ after a step: a clock that is slewed
changes by 0.0005 of the time between them."""
PAUSE_US: Final = 60 * SECOND_US
"""Microseconds without a look from which on nobody was heard: the loop looks twice a second, and a
commit takes seconds at most. MQTT's keep-alive is as long."""


class ListeningClock:
    """A clock that knows since when its process has listened.

    Args:
        short_us: the listening goes on after an outage of the broker of this length at most.
        wall_us: reads the wall clock, microseconds since the epoch.
        monotonic_us: reads a clock that is never stepped; it stands still while the machine sleeps.
        pause_us: it begins to listen again where nobody looked for this time.
    """

    def __init__(
        self,
        short_us: int,
        wall_us: Callable[[], int],
        monotonic_us: Callable[[], int],
        pause_us: int = PAUSE_US,
    ) -> None:
        self._read_wall_us, self._read_monotonic_us = wall_us, monotonic_us
        self._short_us, self._looked = short_us, (wall_us(), monotonic_us())
        self._pause_us = pause_us
        self._since_us: int | None = None
        self._interrupted: tuple[int, int] | None = None
        self._was_set = False

    @property
    def now_us(self) -> int:
        """The wall clock."""
        return self._read_wall_us()

    @property
    def listening(self) -> Listening | None:
        """The clock, and since when it has listened; None while there is no broker."""
        self._compare()
        return None if self._since_us is None else Listening(self._looked[0], self._since_us)

    def begin(self) -> None:
        """Begin to listen, or go on after a short outage: there is a broker."""
        now_us = self._since_us = self.now_us
        if self._interrupted is not None:
            since_us, ended_us = self._interrupted
            if 0 <= now_us - ended_us <= self._short_us:
                self._since_us = since_us + now_us - ended_us
        self._interrupted = None

    def end(self) -> None:
        """Listen no more: there is no broker."""
        if self._since_us is not None:
            self._interrupted = self._since_us, self.now_us
        self._since_us = None

    def look(self) -> bool:
        """Return whether the clock was stepped since the last look, or nobody looked for long."""
        self._compare()
        was_set, self._was_set = self._was_set, False
        return was_set

    def _compare(self) -> None:
        """Begin to listen again where the wall clock did not go on as the monotonic one did."""
        before_us, monotonic_before_us = self._looked
        now_us, monotonic_us = self._looked = self._read_wall_us(), self._read_monotonic_us()
        passed_us = monotonic_us - monotonic_before_us
        if abs(now_us - before_us - passed_us) >= STEP_US or passed_us >= self._pause_us:
            self._was_set, self._interrupted = True, None
            self._since_us = None if self._since_us is None else now_us
