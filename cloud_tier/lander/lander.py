"""The lander: takes the fleet's messages from the broker into the lake, without Spark.

    message -> log, synced -> acknowledged to the broker
            -> segment closed -> decoded -> one commit to `landing` -> acknowledged to the devices

So whatever the broker has forgotten is on disk here, and whatever a device has forgotten is in the
lake. A kill between any two arrows loses nothing and doubles nothing: the log is landed at the
next start, and a segment that had landed already is known by its number.

A segment is closed soon after data came in, later if it holds promises only, and seldom if it is
empty: its tick tells Spark that time has passed, and each tick costs a commit.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from cloud_tier.lander.columns import LandedColumns
from cloud_tier.lander.landing import Landing, collector_off
from cloud_tier.lander.remembered import Remembered
from cloud_tier.lander.segments import Log, Segment
from crdts import Replica
from lasp_edge.link import Connected, Disconnected, Event, Message
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.acks import Answer
from lasp_edge.protocol.fencing import HelloFrame, VouchFrame
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.greetings import Greetings
from lasp_edge.protocol.kinds import FRAME_KINDS, topic_of
from lasp_edge.protocol.sizes import MAX_MESSAGE_BYTES

log = logging.getLogger(__name__)

SECOND_US: Final = 1_000_000
_DEVICES_AWAITING: Final = 100_000
"""Devices whose acknowledgements wait for the broker at most: the greatest fleet ten times. Beyond
that the oldest wait in vain and their devices resend."""


class MessageLink(Protocol):
    """What the lander needs of `lasp_edge.link.Link`."""

    def poll(self, timeout_s: float) -> list[Event]:
        """Return what happened."""

    def publish(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> bool:
        """Send a message, or return False."""

    def acknowledge(self, message: Message) -> None:
        """Let the broker forget a message."""


@dataclass(frozen=True)
class SegmentPace:
    """When a segment is closed.

    Attributes:
        data_us: the time from its first pane or variable frame.
        promises_us: the time from its first message, if it holds only other frames.
        idle_us: the time from the end of the segment before, if it holds no message.
        full_bytes: the size at which it is closed in any case.
    """

    data_us: int = 1_000_000
    promises_us: int = 3_000_000
    idle_us: int = 15_000_000
    full_bytes: int = 8 << 20


class Lander:
    """One lander.

    Args:
        link: connected to the fleet's broker, with manual acknowledgement.
        log_: where messages are kept until they have landed.
        landing: the lake's tables.
        acceptance: what is taken from messages.
        columns: makes tables of what was taken.
        sender: this process, as the devices see it in acknowledgements.
        now_us: the clock.
        pace: when a segment is closed.
    """

    def __init__(
        self,
        *,
        link: MessageLink,
        log_: Log,
        landing: Landing,
        acceptance: Acceptance,
        columns: LandedColumns,
        sender: Replica,
        now_us: Callable[[], int],
        pace: SegmentPace = SegmentPace(),
    ) -> None:
        self._link = link
        self._log = log_
        self._landing = landing
        self._acceptance = acceptance
        self._columns = columns
        self._sender = sender
        self._now_us = now_us
        self._pace = pace
        self._since_us: int | None = None
        self._closed_us = now_us()
        self._first_us: int | None = None
        self._data_us: int | None = None
        self._bytes = 0
        self._answers: dict[str, Answer] = {}
        self._acks_sent = self._vouches_sent = 0
        self._greetings = Greetings()
        self._remembered = Remembered(acceptance.witness, log_.folder)
        self._hellos: dict[tuple[str, str], HelloFrame] = {}
        self._overtaken: set[str] = set()

    def recover(self) -> None:
        """Land what an earlier process has logged and not landed."""
        self._remembered.read()
        landed = self._landing.landed
        self._log.start_after(landed)
        for number in self._log.closed():
            segment = self._log.read(number)
            if number > landed and segment.records:
                self._land(segment)
            self._log.drop(number)

    def turn(self, timeout_s: float) -> None:
        """Take the messages that came in, land a segment that is due, send acknowledgements."""
        now_us = self._now_us()
        due_us = self._due_us()
        if due_us is not None:
            timeout_s = min(timeout_s, max(0.0, (due_us - now_us) / 1e6))
        self._take(self._link.poll(timeout_s))
        due_us = self._due_us()
        if due_us is not None and self._now_us() >= due_us:
            self.close_segment()
        self._send_acks()
        self._vouch()
        self._repeat_commands()
        self._ask()

    def close_segment(self) -> None:
        """Close the segment and land it."""
        now_us = self._now_us()
        since_us = now_us if self._since_us is None else self._since_us
        number = self._log.close_segment(Listening(now_us, since_us))
        self._closed_us = now_us
        self._first_us = self._data_us = None
        self._bytes = 0
        self._land(self._log.read(number))
        self._log.drop(number)

    def stop(self) -> None:
        """Land the open segment, send the last acknowledgements and release the log."""
        if self._log.is_open:
            self.close_segment()
        self._send_acks()
        self._vouch()
        self._log.release()

    def _vouch(self) -> None:
        """Tell who asked what was known of a device when everything before had landed.

        Who is not heard any more is told to ask.
        """
        for at, hello in list(self._hellos.items()):
            vouch = self._acceptance.witness.vouch(self._sender, self._vouches_sent + 1, hello)
            if not self._sends(vouch):
                return
            del self._hellos[at]
        for device in sorted(self._overtaken):
            if not self._sends(VouchFrame.hint(self._sender, self._vouches_sent + 1, device)):
                return
            self._overtaken.discard(device)

    def _sends(self, vouch: VouchFrame) -> bool:
        topic = topic_of(vouch, self._acceptance.topics)
        sent = self._link.publish(topic, vouch.encode())
        self._vouches_sent += sent
        return sent

    def _ask(self) -> None:
        """Ask devices for what is lacking of shared variables; an ask that is lost comes again."""
        for frame in self._acceptance.overheard.asks(self._sender, self._now_us()):
            self._link.publish(topic_of(frame, self._acceptance.topics), frame.encode())

    def _repeat_commands(self) -> None:
        """Let everybody hear what operators said, should the broker and the devices forget it."""
        if self._since_us is None:
            return  # a message that finds no broker would be lost
        for frame in self._acceptance.repeated(self._sender, self._now_us()):
            topic = topic_of(frame, self._acceptance.topics)
            self._link.publish(topic, frame.encode(), retain=True)

    def _take(self, events: Sequence[Event]) -> None:
        messages: list[Message] = []
        for event in events:
            if isinstance(event, Message):
                self._append(event)
                messages.append(event)
            elif isinstance(event, Connected):
                log.info("connected to the broker (MQTT %s)", event.protocol)
                self._since_us = self._now_us()
                self._acceptance.connected(self._since_us)
            elif isinstance(event, Disconnected):
                log.warning("no broker: %s", event.reason)
                self._close_for_silence()
        # One sync for all of them, and only then may the broker forget them.
        self._log.sync()
        for message in messages:
            self._link.acknowledge(message)

    def _append(self, message: Message) -> None:
        now_us = self._now_us()
        since_us = now_us if self._since_us is None else self._since_us
        # What is longer is refused in any case; its length shows with one byte too many.
        payload = message.payload[: MAX_MESSAGE_BYTES + 1]
        self._log.append(Record(now_us, message.topic, message.retain, payload), since_us)
        self._bytes += len(payload)
        self._first_us = now_us if self._first_us is None else self._first_us
        if self._data_us is None and not self._is_beat(message.topic):
            self._data_us = now_us

    def _close_for_silence(self) -> None:
        """Close the segment with the clock of the connection that was lost."""
        if self._log.is_open:
            self.close_segment()
        self._since_us = None

    def _is_beat(self, topic: str) -> bool:
        return f"/{FRAME_KINDS[BeatFrame.kind].topic}/" in topic

    def _due_us(self) -> int | None:
        """Return when the segment is to be closed; None: not before a message comes."""
        if self._bytes >= self._pace.full_bytes:
            return self._closed_us
        if self._data_us is not None:
            return self._data_us + self._pace.data_us
        if self._first_us is not None:
            return self._first_us + self._pace.promises_us
        return None if self._since_us is None else self._closed_us + self._pace.idle_us

    def _land(self, segment: Segment) -> None:
        with collector_off():
            accepted = self._acceptance.take(segment.records)
            tick = Tick(segment.number, segment.clock)
            rows = self._columns.table(accepted, self._log.lander, tick)
        self._landing.land(segment.number, rows, accepted.refused, accepted.shared)
        self._remembered.write()
        self._hellos |= accepted.hellos
        self._overtaken |= accepted.overtaken
        for device, answer in accepted.answers.items():
            self._answers.setdefault(device, Answer()).add(answer)
        for device in accepted.known - accepted.heard.keys():
            if self._greetings.is_first(device):  # it sends few beats on its own
                self._answers.setdefault(device, Answer())
        for device, is_ours in accepted.heard.items():
            if self._greetings.is_due(device, is_ours, segment.clock.now_us):
                self._answers.setdefault(device, Answer())
        while len(self._answers) > _DEVICES_AWAITING:  # they send again, and are answered then
            del self._answers[next(iter(self._answers))]

    def _send_acks(self) -> None:
        for device, answer in list(self._answers.items()):
            said = (self._sender, self._acks_sent + 1, device, self._acceptance.sink)
            for frame in answer.frames(*said, self._now_us() // SECOND_US):
                topic = topic_of(frame, self._acceptance.topics)
                if not self._link.publish(topic, frame.encode()):
                    return
                self._acks_sent += 1
            del self._answers[device]
