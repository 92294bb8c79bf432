"""Messages that were handed to the broker and are not yet confirmed, bounded in number and bytes.

Two threads, no lock: the caller's thread adds messages and forgets the confirmed ones, the
network's thread only appends confirmations.
"""

from collections import deque


class InFlight:
    """The unconfirmed messages of one connection, by packet number.

    Args:
        messages: how many there may be.
        total_bytes: how long they may be together; a single message may be longer.
    """

    def __init__(self, messages: int, total_bytes: int) -> None:
        self._messages = messages
        self._total_bytes = total_bytes
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self._confirmed: deque[int] = deque()
        self._progress_s = 0.0

    def limit(self, messages: int) -> None:
        """Lower the bound to what the broker announces: it disconnects who exceeds that."""
        self._messages = min(self._messages, messages)

    def has_room(self, size: int) -> bool:
        """Return whether a message of `size` bytes may be handed to the broker."""
        self._forget_confirmed()
        return len(self._sizes) < self._messages and (
            not self._sizes or self._bytes + size <= self._total_bytes
        )

    def add(self, packet: int, size: int, now_s: float) -> None:
        """Note a message that was handed to the broker."""
        if not self._sizes:
            self._progress_s = now_s
        self._sizes[packet] = size
        self._bytes += size

    def confirm(self, packet: int, now_s: float) -> None:
        """Note that the broker has a message; called in the network's thread."""
        self._progress_s = now_s
        self._confirmed.append(packet)

    def waits_s(self, now_s: float) -> float:
        """Return for how long something is unconfirmed and nothing was confirmed; 0 for nothing."""
        return now_s - self._progress_s if len(self._sizes) > len(self._confirmed) else 0.0

    def pending(self) -> int:
        """Return how many messages are unconfirmed."""
        self._forget_confirmed()
        return len(self._sizes)

    def _forget_confirmed(self) -> None:
        # A confirmation may overtake the entry that `add` makes; one thread settles both here.
        while self._confirmed:
            self._bytes -= self._sizes.pop(self._confirmed.popleft(), 0)
