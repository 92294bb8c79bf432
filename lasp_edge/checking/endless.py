"""Functions of the user's own that do not return: each is made to fail, and is named.

A signal looks at what runs, once a second. Where that is one call of a function for five seconds,
an error is raised in it, as in any function that fails; after that each call has one second.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_LOOKS: Final = 5
"""Looks at which one call may be seen, before any was ended."""
_OURS: Final = frozenset({"cloud_tier", "crdts", "device_agent", "lasp_edge", "simulations"})


@contextmanager
def limited(look_s: float = 1.0) -> Iterator[None]:
    """Let each call of a function that is not of this project end after some looks.

    Nothing else may use the alarm of the main thread meanwhile; another thread has none.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watch = _Watch(sys._getframe(2), look_s)  # noqa: SLF001 - the frame that is entered
    before = signal.signal(signal.SIGALRM, watch.look)
    signal.setitimer(signal.ITIMER_REAL, look_s, look_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _Watch:
    """What was seen to run, look by look.

    Args:
        owner: frames outside of it are not looked at.
        look_s: the time between two looks, in seconds.
    """

    def __init__(self, owner: FrameType, look_s: float) -> None:
        self._owner, self._look_s = owner, look_s
        self._seen: FrameType | None = None
        self._looks, self._most = 0, _LOOKS

    def look(self, _signal: int, frame: FrameType | None) -> None:
        """Raise an error in a call that was seen too often."""
        runs = self._call_of_user(frame)
        self._looks = self._looks + 1 if runs is not None and runs is self._seen else 0
        self._seen = runs
        if self._looks >= self._most:
            most, self._most, self._looks, self._seen = self._most, 1, 0, None
            raise TimeoutError(f"it did not return within {most * self._look_s:g} s")

    def _call_of_user(self, frame: FrameType | None) -> FrameType | None:
        """Return the outermost call of a function that is neither of this project nor Python's."""
        found = None
        while frame is not None and frame is not self._owner:
            package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
            if package not in _OURS and package not in sys.stdlib_module_names:
                found = frame
            frame = frame.f_back
        return found
