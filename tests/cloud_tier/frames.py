"""Messages of a device, and a link that brings them, for tests of the lander."""

from collections import deque
from typing import Any

from crdts import Replica
from lasp_edge.link import Event, Message
from lasp_edge.protocol.frames import AckFrame
from lasp_edge.protocol.kinds import decode, topic_of
from tests.lasp_edge.protocol.support_frames import LANDER, TOPICS


def message(frame: Any, *, retain: bool = False) -> Message:
    """Return the message that brings a frame."""
    return Message(topic_of(frame, TOPICS), frame.encode(), retain, 1, (1, 1))


class FakeLink:
    """A link that hands over what it was given, and keeps what is published."""

    def __init__(self) -> None:
        self.coming: deque[list[Event]] = deque()
        self.acknowledged: list[Message] = []
        self.published: list[tuple[str, bytes]] = []
        self.connected = True

    def poll(self, timeout_s: float) -> list[Event]:
        return self.coming.popleft() if self.coming else []

    def publish(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> bool:
        if self.connected:
            self.published.append((topic, payload))
        return self.connected

    def acknowledge(self, message: Message) -> None:
        self.acknowledged.append(message)

    def acks(self) -> dict[Replica, list[int]]:
        """Return the frame numbers that devices were told have landed."""
        told: dict[Replica, list[int]] = {}
        for topic, payload in self.published:
            frame = decode(payload)
            assert isinstance(frame, AckFrame)
            assert (frame.sender, topic) == (LANDER, topic_of(frame, TOPICS))
            told.setdefault(frame.addressee, []).extend(frame.numbers)
        return told
