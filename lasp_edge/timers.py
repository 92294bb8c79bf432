"""When something is due at intervals, by the driver's clock.

The driver's clock, the `now_us` of every call, only says how much time has passed, and may begin
anywhere.
"""


def is_time(now_us: int, next_us: int, every_us: int) -> bool:
    """Return whether what is due at `next_us`, and then at intervals of `every_us`, is due now.

    The driver's clock may be set back; nothing then waits for the old time.

    >>> is_time(100, 90, 50), is_time(100, 110, 50), is_time(100, 99_999, 50)
    (True, False, True)
    """
    return not now_us < next_us <= now_us + every_us


def has_passed(since_us: int | None, span_us: int, now_us: int) -> bool:
    """Return whether a span has passed; a clock that was set back says nothing of waiting.

    >>> has_passed(100, 50, 149), has_passed(100, 50, 150), has_passed(None, 50, 0)
    (False, True, True)
    """
    return since_us is None or not since_us <= now_us < since_us + span_us


ALWAYS_US = -(2**63)
"""Something is due at every time."""
NEVER_US = 2**63
"""Something is due at no time, until something else happens."""


class Timer:
    """Something that is due at intervals, and at once after `restart`.

    >>> timer = Timer(50)
    >>> timer.is_due(100), timer.is_due(110), timer.is_due(150)
    (True, False, True)

    Attributes:
        next_us: when it is due next.
    """

    __slots__ = ("_every_us", "next_us")

    def __init__(self, every_us: int) -> None:
        self._every_us = every_us
        self.next_us = 0

    def is_due(self, now_us: int) -> bool:
        """Return whether it is due; if so, it is due again after the interval."""
        due = is_time(now_us, self.next_us, self._every_us)
        if due:
            self.next_us = now_us + self._every_us
        return due

    def is_over(self, now_us: int) -> bool:
        """Return whether it is due; it stays so until `begin`."""
        return is_time(now_us, self.next_us, self._every_us)

    def begin(self, now_us: int) -> None:
        """Let it be due after the interval."""
        self.next_us = now_us + self._every_us

    def restart(self) -> None:
        """Let it be due at once."""
        self.next_us = 0
