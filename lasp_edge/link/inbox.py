"""Messages that came in and were not polled yet, bounded in bytes; two threads, no lock.

Each of the two running totals has one writer, the network's thread and the poller's, so their
difference is at worst a moment old.
"""

import contextlib
import queue
from collections.abc import Callable

from lasp_edge.link.events import Event, Message

_MESSAGE_OVERHEAD_BYTES = 400  # what a small message costs in memory beside its payload


class Inbox:
    """A queue of events from the network's thread to the thread that polls.

    Args:
        limit_bytes: From here on the network's thread leaves its socket unread.
        notify: Called after each event, in the network's thread.

    Attributes:
        reader_waits: The network's thread is to be woken after a `take`.
    """

    def __init__(self, limit_bytes: int, notify: Callable[[], None] | None) -> None:
        self._limit_bytes = limit_bytes
        self._notify = notify
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self.reader_waits = False
        self._put_bytes = 0
        self._taken_bytes = 0

    def put(self, event: Event) -> None:
        """Append an event."""
        if isinstance(event, Message):
            self._put_bytes += len(event.payload) + _MESSAGE_OVERHEAD_BYTES
        self._events.put(event)
        if self._notify is not None:
            self._notify()

    def take(self, timeout_s: float) -> list[Event]:
        """Return all events in order; wait up to `timeout_s` seconds for the first one."""
        events: list[Event] = []
        if not timeout_s and self._events.empty():
            return events
        with contextlib.suppress(queue.Empty):
            event = self._events.get(timeout=max(0.0, timeout_s))
            while True:
                if event is not None:
                    events.append(event)
                event = self._events.get_nowait()
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
        self._events.put(None)

    def makes_wait(self) -> bool:
        """Return whether the network's thread has to wait until `take` has made room."""
        # Raised before it looks: a `take` in between makes room that is seen here, a later one
        # sees the flag. So no wake-up can be lost.
        self.reader_waits = True
        full = self._put_bytes - self._taken_bytes >= self._limit_bytes
        self.reader_waits = full
        return full
