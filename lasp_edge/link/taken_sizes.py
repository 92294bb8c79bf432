"""Which sizes of messages a broker takes, where it does not say: learned from how it behaves.

A broker with a limit may close the connection without a word when a greater message comes
(mosquitto 2.0 does so with `message_size_limit`). A program that sends the message again on each
connection would never be rid of it, and nothing else would pass. So a size that was in flight at
several such ends in a row, and was never confirmed, is not sent any more for some time.

    >>> sizes = TakenSizes()
    >>> sizes.confirm(900)
    >>> for _ in range(SILENT_ENDS):
    ...     sizes.ended_silently(5_000, now_s=10.0)
    >>> sizes.takes(4_999, now_s=11.0), sizes.takes(5_000, now_s=11.0)
    (True, False)
    >>> sizes.takes(5_000, now_s=11.0 + TRY_AGAIN_S)
    True
"""

SILENT_ENDS = 3
"""Ends without a word in a row until a size is held for refused: a broker that crashes may show
two, and each costs a reconnection."""
TRY_AGAIN_S = 600.0
"""Seconds after which a refused size is tried again: somebody may have raised the limit."""


class TakenSizes:
    """What a link knows of the sizes that its broker takes, over all connections."""

    def __init__(self) -> None:
        self._greatest_taken = 0
        self._suspect = 0
        self._ends = 0
        self._refused: int | None = None
        self._refused_s = 0.0

    def takes(self, size: int, now_s: float) -> bool:
        """Return whether a message of this size may be sent."""
        if self._refused is not None and now_s >= self._refused_s + TRY_AGAIN_S:
            self._refused, self._ends = None, SILENT_ENDS - 1
        return self._refused is None or size < self._refused

    def confirm(self, size: int) -> None:
        """Note that the broker took a message."""
        self._greatest_taken = max(self._greatest_taken, size)
        if size >= self._suspect:
            self._suspect = self._ends = 0

    def ended_silently(self, greatest_sent: int, now_s: float) -> None:
        """Note that the broker closed a connection without a word.

        Args:
            greatest_sent: the size of the greatest message that was in flight; 0 for none.
            now_s: the time in seconds.
        """
        if greatest_sent <= self._greatest_taken:
            return
        self._suspect = min(self._suspect or greatest_sent, greatest_sent)
        self._ends += 1
        if self._ends >= SILENT_ENDS:
            self._refused, self._refused_s = self._suspect, now_s
