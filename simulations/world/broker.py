"""The broker: sessions, queues, retained messages and Last Wills, with what brokers lose of them.

It passes a message on to whom the protocol's table of frames names. A device that is away has a
session, in which messages wait up to a bound; what comes then is dropped silently, as brokers do.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber
from lasp_edge.protocol.shares import SharesFrame
from lasp_edge.protocol.topics import Topics

QUEUED = 40
"""Messages that wait for a device that is away, at most: a small broker's setting."""
SNAPSHOT_STEPS = 15
"""Steps between two copies of what is retained: a broker that crashes comes back with one."""

_KINDS = {row.topic: row for row in FRAME_KINDS.values()}


class LastWill(NamedTuple):
    """What the broker publishes for a client whose connection breaks."""

    topic: str
    payload: bytes
    retain: bool


class Receivers(NamedTuple):
    """Whom a topic's messages go to.

    Attributes:
        everybody: all devices, unless it is for one; and operators.
        device: the one device; "" for none.
        landers: the landers.
        itself: the gateway that it is of: it takes what was published in its name; "" for none.
    """

    everybody: bool
    device: str
    landers: bool
    itself: str = ""

    def has(self, sink: str) -> bool:
        """Return whether a sink is one of them."""
        return self.landers or self.itself == sink


NOWHERE = Receivers(False, "", False)  # noqa: FBT003 - a row


class VirtualBroker:
    """An MQTT broker.

    Args:
        topics: of the fleet.
        keeps_sessions: messages wait for devices that are away.
        are_apart: devices listen to no beats but their own.

    Attributes:
        retained: topic -> payload.
        wills: device -> its Last Will, while it is connected.
        dropped: messages that found a full queue.
    """

    def __init__(self, topics: Topics, *, keeps_sessions: bool, are_apart: bool) -> None:
        self.retained: dict[str, bytes] = {}
        self.wills: dict[str, LastWill] = {}
        self.dropped = 0
        self._keeps_sessions, self._are_apart = keeps_sessions, are_apart
        self._topics = topics
        self._queues: dict[str, deque[tuple[str, bytes]]] = {}
        self._routes: dict[str, Receivers] = {}
        self._snapshots: deque[dict[str, bytes]] = deque(maxlen=4)

    def route(self, topic: str) -> Receivers:
        """Return whom a topic's messages go to."""
        found = self._routes.get(topic)
        if found is None:
            found = self._routes[topic] = self._made(topic)
        return found

    def _made(self, topic: str) -> Receivers:
        try:
            kind, about = self._topics.address(topic)
        except ValueError:
            return NOWHERE
        row = _KINDS.get(kind)
        if row is None:
            return NOWHERE
        to = row.subscribers
        addressee = about if to & Subscriber.ADDRESSEE and not to & Subscriber.DEVICES else ""
        if row.frame is BeatFrame and self._are_apart:
            addressee = about
        itself = about if row.frame is SharesFrame else ""
        return Receivers(
            bool(to & Subscriber.DEVICES), addressee, bool(to & Subscriber.LANDER), itself
        )

    def keep(self, topic: str, payload: bytes) -> None:
        """Retain a message; an empty one deletes."""
        if payload:
            self.retained[topic] = payload
        else:
            self.retained.pop(topic, None)

    def wait(self, device: str, topic: str, payload: bytes) -> None:
        """Let a message wait for a device that is away, if there is room."""
        if not self._keeps_sessions:
            return
        queue = self._queues.setdefault(device, deque())
        if len(queue) < QUEUED:
            queue.append((topic, payload))
        else:
            self.dropped += 1

    def connect(self, device: str, will: LastWill) -> Iterable[tuple[str, bytes]]:
        """Return what a device gets when it connects: what waited, and what is retained."""
        self.wills[device] = will
        waiting = self._queues.pop(device, ())
        kept = [
            (topic, payload)
            for topic, payload in sorted(self.retained.items())
            if (to := self.route(topic)).everybody or to.device == device
        ]
        return [*waiting, *kept]

    def kept_for_landers(self, name: str) -> list[tuple[str, bytes]]:
        """Return what a sink that connects gets of what is retained."""
        return [each for each in sorted(self.retained.items()) if self.route(each[0]).has(name)]

    def disconnect(self, device: str) -> LastWill | None:
        """Return the Last Will of a device whose connection broke."""
        return self.wills.pop(device, None)

    def take_snapshot(self) -> None:
        """Let what is retained now be what a crash may bring back."""
        self._snapshots.append(dict(self.retained))

    def crash(self, *, back: bool) -> None:
        """Restart, without what was retained or with what was retained some time ago."""
        self.retained = dict(self._snapshots[0]) if back and self._snapshots else {}
        self._queues.clear()
        self.wills.clear()

    def drop_queues(self) -> int:
        """Lose what waits for devices; return how many messages that were."""
        lost = sum(map(len, self._queues.values()))
        self._queues.clear()
        return lost
