"""Wakes a thread that waits for sockets; to wake it again before it looks costs nothing.

>>> waker = Waker()
>>> waker.wake(), waker.wake(), waker.clear()
(None, None, None)
>>> waker.close()
"""

import contextlib
import socket


class Waker:
    """A pair of sockets: the thread waits for one, and others write to the other."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)  # noqa: FBT003 socket's own signature
        self._writer.setblocking(False)  # noqa: FBT003
        self._is_woken = False

    def fileno(self) -> int:
        """Return what the thread waits for."""
        return self._reader.fileno()

    def wake(self) -> None:
        """Wake the thread, which then looks for what the caller has left for it before."""
        if self._is_woken:
            return
        self._is_woken = True
        with contextlib.suppress(OSError):  # closed
            self._writer.send(b"!")

    def clear(self) -> None:
        """The thread is awake, and looks for work after this call."""
        with contextlib.suppress(BlockingIOError):
            self._reader.recv(64)
        # The order matters: who still sees the mark has left its work before the thread looks.
        self._is_woken = False

    def close(self) -> None:
        """Close both sockets; to wake is void from then on."""
        self._reader.close()
        self._writer.close()
