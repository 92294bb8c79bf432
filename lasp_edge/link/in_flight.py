"""Messages that were handed to the broker and are not yet confirmed, bounded in number and bytes.

Two threads, no lock: the caller's thread adds messages and forgets the confirmed ones, the
network's thread only appends confirmations.
"""

from collections import deque

from lasp_edge.link.taken_sizes import TakenSizes
from lasp_edge.link.trouble import Refusals


class InFlight:
    """The unconfirmed messages of one connection, by packet number.

    Args:
        messages: how many there may be.
        total_bytes: how long they may be together; a single message may be longer.
        refusals: is given the broker's answer to each, in the caller's thread.
        sizes: is given the sizes that the broker took.
    """

    def __init__(
        self, messages: int, total_bytes: int, refusals: Refusals, sizes: TakenSizes
    ) -> None:
        self._messages = messages
        self._total_bytes = total_bytes
        self._refusals = refusals
        self._sizes = sizes
        self._sent: dict[int, tuple[str, int]] = {}
        self._bytes = 0
        self._answered: deque[tuple[int, str | None]] = deque()
        self._progress_s = 0.0

    def limit(self, messages: int) -> None:
        """Lower the bound to what the broker announces: it disconnects who exceeds that."""
        self._messages = min(self._messages, messages)

    def has_room(self, size: int) -> bool:
        """Return whether a message of `size` bytes may be handed to the broker."""
        self._forget_answered()
        return len(self._sent) < self._messages and (
            not self._sent or self._bytes + size <= self._total_bytes
        )

    def add(self, packet: int, topic: str, size: int, now_s: float) -> None:
        """Note a message that was handed to the broker."""
        if not self._sent:
            self._progress_s = now_s
        self._sent[packet] = topic, size
        self._bytes += size

    def answer(self, packet: int, refused: str | None, now_s: float) -> None:
        """Note that the broker has a message, or why it refused it; in the network's thread."""
        self._progress_s = now_s
        self._answered.append((packet, refused))

    def waits_s(self, now_s: float) -> float:
        """Return for how long something is unconfirmed and nothing was confirmed; 0 for nothing."""
        return now_s - self._progress_s if len(self._sent) > len(self._answered) else 0.0

    def pending(self) -> int:
        """Return how many messages are unconfirmed."""
        if self._answered:
            self._forget_answered()
        return len(self._sent)

    def _forget_answered(self) -> None:
        # An answer may overtake the entry that `add` makes; one thread settles both here.
        while self._answered:
            packet, refused = self._answered.popleft()
            topic, size = self._sent.pop(packet, ("", 0))
            self._bytes -= size
            self._refusals.answer(topic, refused)
            if refused is None:
                self._sizes.confirm(size)

    def greatest(self) -> int:
        """Return the size of the greatest message that is unconfirmed; 0 for none."""
        return max([size for _, size in list(self._sent.values())], default=0)
