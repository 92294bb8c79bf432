"""What somebody has recorded of a world's messages, to play it again or to change it."""

from collections import deque

from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.envelope import Frame

DEVICES = 40
"""The last messages of devices that are recorded."""
ANSWERS = 12
"""The first acknowledgements that are recorded: of stores that may be lost by now."""


class Recordings:
    """The messages of devices, and the answers of sinks.

    Attributes:
        devices: the last messages that devices published, where strangers use them.
        answers: the first acknowledgements of sinks.
    """

    def __init__(self) -> None:
        self.devices: deque[tuple[str, bytes]] = deque(maxlen=DEVICES)
        self.answers: list[tuple[str, bytes]] = []

    def take_answer(self, topic: str, payload: bytes, frame: Frame | None) -> None:
        """Record what a sink sends, if it is one of its first acknowledgements."""
        if type(frame) is AckFrame and len(self.answers) < ANSWERS:
            self.answers.append((topic, payload))
