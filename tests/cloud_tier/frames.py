"""Messages of a device, and a link that brings them, for tests of the lander."""

from collections import deque
from typing import Any

from lasp_edge.link import Event, Message
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.topics import topic_of
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
        self.retained: dict[str, bytes] = {}
        self.connected = True

    def poll(self, timeout_s: float) -> list[Event]:
        return self.coming.popleft() if self.coming else []

    def publish(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> bool:
        if self.connected:
            self.published.append((topic, payload))
            if retain:
                self.retained[topic] = payload
        return self.connected

    def acknowledge(self, message: Message) -> None:
        self.acknowledged.append(message)

    def acks(self) -> dict[str, dict[tuple[int, int], list[int]]]:
        """Return by device which entries it was told have landed: seqs by replica."""
        told: dict[str, dict[tuple[int, int], list[int]]] = {}
        for frame in self.ack_frames():
            of_device = told.setdefault(frame.about, {})
            for incarnation, nonce, runs in frame.taken:
                seqs = [seq for first, last in runs for seq in range(first, last + 1)]
                of_device.setdefault((incarnation, nonce), []).extend(seqs)
        return told

    def not_taken(self) -> list[tuple[str, int]]:
        """Return (device, reason) of all that devices were told was not taken."""
        return [
            (frame.about, reason) for frame in self.ack_frames() for reason, _ in frame.not_taken
        ]

    def ack_frames(self) -> list[AckFrame]:
        """Return all acknowledgements that were published."""
        frames = []
        for topic, payload in self.published:
            frame = decode(payload)
            assert isinstance(frame, AckFrame)
            assert (frame.sender, topic) == (LANDER, topic_of(frame, TOPICS))
            frames.append(frame)
        return frames
