"""What a source is."""

from typing import Protocol

from device_agent.intake.batch import Batch


class Source(Protocol):
    """Gives readings when it is asked; the agent says when they are durable.

    Attributes:
        name: stable over restarts; the cursor and the low watermark are kept under it.
    """

    name: str

    def open(self, cursor: str | None) -> None:
        """Begin, or resume behind what `cursor` stands for.

        Raises:
            ValueError: the source cannot be read, or not from there.
        """

    def poll(self, now_us: int) -> Batch | None:
        """Return what there is, up to some 500 rows; None if there is nothing. Never waits."""

    def due_us(self, now_us: int) -> int | None:
        """Return when to poll next; None if it is finished, or wakes the agent by itself."""

    def acknowledge(self, cursor: str | None) -> None:
        """Take note that the batch with this cursor, and all before it, are durable."""

    def close(self) -> None:
        """Let go of files and connections."""
