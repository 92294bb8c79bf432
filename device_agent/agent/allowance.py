"""An allowance: something may happen a few times in a row, and else as often as its cost allows.

Writing to a card and sending have a price that is paid each time, however little is written or
sent. So they happen once in an interval; what is unused is kept, up to a burst, so that what
changes after a pause is seen at once. The last of it is a reserve for when things have come to
rest: then the others learn the last value soon, too.

Intervals begin at whole multiples of themselves since the epoch. So devices that have used up their
allowance go on at the same moments, and between these moments nothing changes and all can agree.

    >>> allowance = Allowance(60, least_us=1, burst=8, reserve=3)
    >>> [allowance.takes(second) for second in range(1, 8)]
    [True, True, True, True, True, False, False]
    >>> allowance.takes(9, at_rest=True), allowance.takes(61), allowance.takes(121)
    (True, False, True)
"""

from lasp_edge.timers import is_time


class Allowance:
    """How often something may happen.

    Args:
        every_us: an interval brings one more time.
        least_us: least time between two times, in any case.
        burst: times that are kept at most.
        reserve: of these, the times that are kept for when nothing more changes.
        offset_us: intervals begin this much after multiples of themselves.
    """

    __slots__ = (
        "_burst",
        "_every_us",
        "_interval",
        "_least_us",
        "_left",
        "_next_us",
        "_offset_us",
        "_reserve",
    )

    def __init__(
        self, every_us: int, least_us: int, *, burst: int, reserve: int, offset_us: int = 0
    ) -> None:
        self._burst, self._reserve = burst, reserve
        self._every_us = every_us
        self._least_us = min(every_us, least_us)
        self._offset_us = offset_us
        self._interval: int | None = None
        self._left = burst
        self._next_us = 0

    def restart(self) -> None:
        """Let it happen at once: what came of the last time is lost."""
        self._left, self._next_us = max(self._left, self._reserve + 1), 0

    def is_due(self, now_us: int, *, at_rest: bool = False) -> bool:
        """Return whether it may happen now; `at_rest`: nothing more has changed for a while."""
        self._earn(now_us)
        enough = self._left > (0 if at_rest else self._reserve)
        return enough and is_time(now_us, self._next_us, self._least_us)

    def next_us(self, now_us: int, *, at_rest: bool = False) -> int:
        """Return from when on it may happen, at the earliest."""
        self._earn(now_us)
        assert self._interval is not None
        if self._left > (0 if at_rest else self._reserve):
            return self._next_us
        return max(self._next_us, (self._interval + 1) * self._every_us + self._offset_us)

    def spend(self, now_us: int, *, at_rest: bool = False) -> None:
        """Note that it happens now."""
        self._earn(now_us)
        # What happens though it was not due does not touch the reserve.
        self._left = max(self._left - 1, 0 if at_rest else min(self._left, self._reserve))
        self._next_us = now_us + self._least_us

    def takes(self, now_us: int, *, at_rest: bool = False) -> bool:
        """Return whether it may happen now; if so, it does."""
        due = self.is_due(now_us, at_rest=at_rest)
        if due:
            self.spend(now_us, at_rest=at_rest)
        return due

    def _earn(self, now_us: int) -> None:
        interval = (now_us - self._offset_us) // self._every_us
        if self._interval is not None:
            passed = interval - self._interval
            # A clock that was set back says nothing of the time that has passed.
            self._left = min(self._burst, self._left + (passed if passed >= 0 else 1))
        self._interval = interval
