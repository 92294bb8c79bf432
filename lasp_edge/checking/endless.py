"""Functions of the user's own that do not return: each is made to fail, and is named.

A signal looks at what runs, once a second. Where that is one call of a function for five seconds,
an error is raised in it, as in any function that fails; after that each call has one second, and
with the eighth all ends. What no signal interrupts, as the sum of a huge range, and what goes on
after its error, ends the process: Python prints the line that runs.
"""

import faulthandler
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from lasp_edge.errors import ENDS_PROCESS

LOOK_S: Final = 1.0
"""Seconds between two looks."""
STUCK_S: Final = 20
"""Seconds after which the process ends, where no look has taken place or ended the call."""
_LOOKS: Final = 5
"""Looks at which one call may be seen, before any was ended."""
MOST_ENDED: Final = 8
"""Calls that are ended, at most: with the last one of them all ends."""
_OURS: Final = frozenset({"cloud_tier", "crdts", "device_agent", "lasp_edge", "simulations"})


class EndlessCallError(BaseException):
    """A function of the user's did not return; no `except Exception` of its own takes it."""


@contextmanager
def limited(look_s: float | None = None) -> Iterator[None]:
    """Let each call of a function that is not of this project end after some looks.

    Nothing else may use the alarm of the main thread meanwhile; another thread has none.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    every_s = LOOK_S if look_s is None else look_s
    watch = _Watch(sys._getframe(2), every_s)  # noqa: SLF001 - the frame that is entered
    before = signal.signal(signal.SIGALRM, watch.look)
    signal.setitimer(signal.ITIMER_REAL, every_s, every_s)
    watch.wait()
    try:
        yield
    finally:
        # In this order: a look that still comes would have the process end some seconds later.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


class _Watch:
    """What was seen to run, look by look.

    Args:
        owner: frames outside of it are not looked at.
        look_s: the time between two looks, in seconds.
    """

    def __init__(self, owner: FrameType, look_s: float) -> None:
        self._owner, self._look_s = owner, look_s
        self._seen: FrameType | None = None
        self._ended: FrameType | None = None
        self._looks, self._most, self._count = 0, _LOOKS, 0

    def wait(self) -> None:
        """Let the process end if this is not called again in time."""
        faulthandler.dump_traceback_later(STUCK_S, exit=True, file=2)

    def look(self, _signal: int, frame: FrameType | None) -> None:
        """Raise an error in a call that was seen too often."""
        runs = self._call_of_user(frame)
        if runs is None or runs is not self._ended:
            self.wait()
        self._looks = self._looks + 1 if runs is not None and runs is self._seen else 0
        self._seen = runs
        if runs is not None and self._looks >= self._most:
            most, self._most, self._looks, self._ended = self._most, 1, 0, runs
            what = runs.f_code.co_qualname.rpartition("<locals>.")[2]
            error = EndlessCallError(f"{what} did not return within {most * self._look_s:g} s")
            self._count += 1
            if self._count >= MOST_ENDED:
                error.add_note(ENDS_PROCESS)
            raise error

    def _call_of_user(self, frame: FrameType | None) -> FrameType | None:
        """Return the outermost call of a function of the user's that one of ours called.

        The text of a module is no function: what it does by itself may take as long as it likes.
        """
        found = None
        while frame is not None and frame is not self._owner:
            caller = frame.f_back
            is_called = caller is self._owner or not _is_users(caller)
            if is_called and _is_users(frame) and frame.f_code.co_name != "<module>":
                found = frame
            frame = caller
        return found


def _is_users(frame: FrameType | None) -> bool:
    """Return whether a frame is neither of this project nor of Python's own library."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0] if frame else ""
    return bool(frame) and package not in _OURS and package not in sys.stdlib_module_names
