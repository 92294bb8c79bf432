"""Messages that came in and were not polled yet, bounded in bytes; two threads, no lock.

Each of the two running totals has one writer, the network's thread and the poller's, so their
difference is at worst a moment old.
"""

import contextlib
import queue
from collections import deque
from collections.abc import Callable

from lasp_edge.link.events import Event, Message

_MESSAGE_OVERHEAD_BYTES = 400  # what a small message costs in memory beside its payload


class Inbox:
    """A queue of events from the network's thread to the thread that polls.

    Args:
        limit_bytes: From here on the network's thread leaves its socket unread.
        enough: Messages from which on a waiting `take` returns; any other event ends its wait.
        notify: Called after each event, in the network's thread.

    Attributes:
        reader_waits: The network's thread is to be woken after a `take`.
    """

    def __init__(self, limit_bytes: int, enough: int, notify: Callable[[], None] | None) -> None:
        self._limit_bytes, self._enough = limit_bytes, enough
        self._notify = notify
        self._events: deque[Event] = deque()
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.reader_waits = False
        self._put_bytes = 0
        self._taken_bytes = 0

    def put(self, event: Event) -> None:
        """Append an event."""
        if isinstance(event, Message):
            self._put_bytes += len(event.payload) + _MESSAGE_OVERHEAD_BYTES
        self._events.append(event)
        is_enough = len(self._events) >= self._enough or not isinstance(event, Message)
        if is_enough and self._wakes.empty():
            self._wakes.put(None)
        if self._notify is not None:
            self._notify()

    def take(self, timeout_s: float) -> list[Event]:
        """Return all events in order; wait up to `timeout_s` seconds for enough of them."""
        events: list[Event] = []
        with contextlib.suppress(queue.Empty):
            if timeout_s:
                self._wakes.get(timeout=max(0.0, timeout_s))
            while not self._wakes.empty():
                self._wakes.get_nowait()
        # Wakes go first: an event that comes in between leaves one, and the next call is early.
        while self._events:
            events.append(self._events.popleft())
        self._taken_bytes += sum(
            [
                len(event.payload) + _MESSAGE_OVERHEAD_BYTES
                for event in events
                if isinstance(event, Message)
            ]
        )
        return events

    def wake(self) -> None:
        """Make a waiting `take` return (SimpleQueue's `put` may interrupt itself)."""
        self._wakes.put(None)

    def makes_wait(self) -> bool:
        """Return whether the network's thread has to wait until `take` has made room."""
        # Raised before it looks: a `take` in between makes room that is seen here, a later one
        # sees the flag. So no wake-up can be lost.
        self.reader_waits = True
        full = self._put_bytes - self._taken_bytes >= self._limit_bytes
        self.reader_waits = full
        return full
