"""A limit on how long a function of the program may run: one that never returns ends nothing.

The agent is one thread, so a handler that never returns would keep it from reading and sending for
ever. While a turn of the loop runs, a timer looks several times a second which function of the
user's is being called: the outermost frame of the stack, inside the agent's loop, that belongs to
no package of ours and to no library. If that is the same call as `limit_s` ago, the call is ended
by a `HandlerLimitError`, which the guard counts as it counts whatever a function raises: `status`
names the function, its line and for how long it ran. A function that was ended once gets a tenth of
the time from then on, twice at most, or a handler of each reading would take it every time.

A call that takes longer than `SLOW_S` is named, whether it is ended or not: meanwhile the agent
does nothing else.

A call is ended only where the user's own code, or a library that it calls, is what runs: what we do
for it, such as an update of a set, is done to its end.
"""

import signal
import time
from collections import Counter
from types import CodeType, FrameType
from typing import Final

from device_agent.agent.notices import Notices
from lasp_edge.reasons import is_ours, is_users

LOOK_S: Final = 0.2
"""Seconds between two looks: a call that is ended ran longer than its limit by this, at most."""
SLOW_S: Final = 1.0
"""Seconds from which on a call is slow: readings, messages and ticks wait for it."""
MOST_SLOW: Final = 8
"""Functions that are named as slow, at most."""
SHORTER: Final = 10
"""By which the time of a function is divided each time that it was ended."""
MOST_SHORTER: Final = 2
"""How often it is divided, at most."""


class HandlerLimitError(BaseException):
    """A function of the user's did not return; no `except Exception` of its own takes it."""


class HandlerLimit:
    """Ends calls of the user's functions that take too long.

    Args:
        limit_s: seconds; 0: no call is ended.
        loop: the code of the agent's loop, from which all functions are called.

    Attributes:
        slow: functions that were slow -> the seconds that the slowest call took.
    """

    def __init__(self, limit_s: float, loop: CodeType) -> None:
        self._limit_s, self._loop = limit_s, loop
        self._ended: Counter[CodeType] = Counter()
        self._call: FrameType | None = None
        self._since_s = 0.0
        self.slow: dict[CodeType, float] = {}

    def start(self) -> None:
        """Take the timer's signal; only the main thread may."""
        if self._limit_s:
            signal.signal(signal.SIGALRM, self._look)

    def __enter__(self) -> None:
        if self._limit_s:
            signal.setitimer(signal.ITIMER_REAL, LOOK_S, LOOK_S)

    def __exit__(self, *_: object) -> None:
        if self._limit_s:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._call = None

    def name_slow(self, notices: Notices) -> None:
        """Name the functions that were slow."""
        slow, self.slow = self.slow, {}
        for code, took_s in slow.items():
            place = f"{code.co_qualname} ({code.co_filename[-60:]}:{code.co_firstlineno})"
            text = f"{place} ran for {took_s:.0f} s; meanwhile the agent neither reads nor sends"
            notices.begin(f"slow {place}", text)

    def _look(self, _number: int, frame: FrameType | None) -> None:
        """End the call that runs, if it has been the same for too long."""
        call = self._users_call(frame)
        now_s = time.monotonic()  # noqa: TID251 - a timer of the process
        if call is None or frame is None or call is not self._call:
            self._call, self._since_s = call, now_s
            return
        code, took_s = call.f_code, now_s - self._since_s
        if took_s >= SLOW_S and (code in self.slow or len(self.slow) < MOST_SLOW):
            self.slow[code] = max(took_s, self.slow.get(code, 0.0))
        limit_s = self._limit_s / SHORTER ** min(self._ended[code], MOST_SHORTER)
        if took_s < limit_s or is_ours(frame.f_code.co_filename):
            return
        self._ended[code] += 1
        self._call = None
        what = f"{code.co_qualname} was ended after {limit_s:g} s, the --handler-limit"
        raise HandlerLimitError(what)

    def _users_call(self, frame: FrameType | None) -> FrameType | None:
        """Return the outermost frame of the user's inside of the loop, if there is one."""
        found = None
        while frame is not None and frame.f_code is not self._loop:
            if is_users(frame.f_code.co_filename):
                found = frame
            frame = frame.f_back
        return None if frame is None else found
