"""A seal closes what a link sends, and opens what comes in: signatures, where a fleet uses them."""

from typing import Protocol


class BrokenSealError(ValueError):
    """A message whose author is not the one that it names; the text is the counted reason."""


class Seal(Protocol):
    """Signs messages and checks signatures; called in the link's thread and in the caller's."""

    def closed(self, topic: str, payload: bytes) -> bytes:
        """Return a message as it is sent."""

    def opened(self, topic: str, payload: bytes) -> bytes:
        """Return a message as it was before it was closed.

        Raises:
            BrokenSealError: it is not what an author, who may write there, has closed.
        """
