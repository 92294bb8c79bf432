"""The broker: what is retained, and whom a message goes to, by the protocol's table of frames."""

from collections.abc import Iterable
from operator import attrgetter

from lasp_edge.protocol.frames import VariableFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber, decode
from lasp_edge.protocol.topics import Topics

_KINDS = {row.topic: row for row in FRAME_KINDS.values()}


class SimulatedBroker:
    """An MQTT broker, as far as a fleet sees it.

    Attributes:
        retained: topic -> payload.
        entries: the newest entry of each (variable, shard, device) that was ever passed on.
    """

    def __init__(self, topics: Topics) -> None:
        self.retained: dict[str, bytes] = {}
        self.entries: dict[tuple[str, int, str], VariableFrame] = {}
        self._topics = topics

    def publish(self, topic: str, payload: bytes, *, retain: bool) -> None:
        """Keep what is to be kept of a message."""
        if retain and payload:
            self.retained[topic] = payload
        elif retain:
            self.retained.pop(topic, None)
        if payload and self._topics.address(topic).kind == "var":
            frame = decode(payload)
            assert isinstance(frame, VariableFrame)
            at = (frame.variable, frame.shard, frame.sender.device)
            self.entries[at] = max(frame, self.entries.get(at, frame), key=attrgetter("version"))

    def receivers(self, topic: str, devices: Iterable[str]) -> list[str]:
        """Return which of the devices subscribe to a topic."""
        kind, about = self._topics.address(topic)
        subscribers = _KINDS[kind].subscribers
        if subscribers & Subscriber.DEVICES:
            return list(devices)
        return [about] if subscribers & Subscriber.ADDRESSEE else []

    def lands(self, topic: str) -> bool:
        """Return whether a lander subscribes to a topic."""
        return bool(_KINDS[self._topics.address(topic).kind].subscribers & Subscriber.LANDER)

    def retained_for(self, device: str) -> list[tuple[str, bytes]]:
        """Return the retained messages that a device gets when it subscribes."""
        kept = sorted(self.retained.items())
        return [(topic, payload) for topic, payload in kept if self.receivers(topic, [device])]
