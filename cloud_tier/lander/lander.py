"""The lander: takes the fleet's messages from the broker into the lake, without Spark.

It gives what its link reports to a run (`cloud_tier.lander.run`), and lets the broker forget a
message once it is on disk.
"""

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from cloud_tier.lander.run import LanderRun
from lasp_edge.link import Connected, Disconnected, Event, Message
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.topics import topic_of

log = logging.getLogger(__name__)


class MessageLink(Protocol):
    """What the lander needs of `lasp_edge.link.Link`."""

    def poll(self, timeout_s: float) -> list[Event]:
        """Return what happened."""

    def publish(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> bool:
        """Send a message, or return False."""

    def acknowledge(self, message: Message) -> None:
        """Let the broker forget a message."""


class Lander(LanderRun):
    """One lander on a link.

    Args:
        link: connected to the fleet's broker, with manual acknowledgement.
        run: the arguments of `LanderRun`.
    """

    def __init__(self, *, link: MessageLink, **run: Any) -> None:
        super().__init__(**run)
        self._link = link

    def turn(self, timeout_s: float) -> None:
        """Take the messages that arrived, land a segment that is due, send acknowledgements."""
        due_us = self.due_us
        if due_us is not None:
            timeout_s = min(timeout_s, max(0.0, (due_us - self._clock.now_us) / 1e6))
        events = self._link.poll(timeout_s)
        self.look()
        self._take(events)
        self.land_due()
        self.reply(self._publish)

    def stop(self) -> None:
        """Land the open segment, send the last acknowledgements and release the log."""
        self.finish(self._publish)

    def _publish(self, frame: Frame) -> bool:
        topic, is_kept = topic_of(frame, self._acceptance.topics), FRAME_KINDS[frame.kind].retained
        return self._link.publish(topic, frame.encode(), retain=is_kept)

    def _take(self, events: Sequence[Event]) -> None:
        messages: list[Message] = []
        for event in events:
            if isinstance(event, Message):
                self.hear(event.topic, event.payload, retained=event.retain)
                messages.append(event)
            elif isinstance(event, Connected):
                log.info("connected to the broker (MQTT %s)", event.protocol)
                self.connected()
            elif isinstance(event, Disconnected):
                log.warning("no broker: %s", event.reason)
                self.disconnected()
        # One sync for all of them, and only then may the broker forget them.
        self._log.sync()
        for message in messages:
            self._link.acknowledge(message)
