"""The lander: takes the fleet's messages from the broker into the lake, without Spark.

    message -> log, synced -> acknowledged to the broker
            -> segment closed -> decoded -> one commit to `landing` -> acknowledged to the devices

So whatever the broker has forgotten is on disk here, and whatever a device has forgotten is in the
lake. A kill between any two arrows loses nothing and doubles nothing: the log is landed at the
next start, and a segment that had landed already is known by its number.

A segment is closed soon after data arrived, later if it holds promises only, and seldom if it is
empty: its tick tells Spark that time has passed, and each tick costs a commit.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cloud_tier.lander.columns import LandedColumns
from cloud_tier.lander.landing import Landing, collector_off
from cloud_tier.lander.segments import Log, Segment, replace_durably
from crdts import Frontier, Replica
from lasp_edge.link import Connected, Disconnected, Event, Message
from lasp_edge.protocol.acceptance import Acceptance, Accepted, Record
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.replies import Replies
from lasp_edge.protocol.sizes import MAX_MESSAGE_BYTES
from lasp_edge.protocol.topics import topic_of
from lasp_edge.protocol.witness import Witness

log = logging.getLogger(__name__)

DEVICES_FILE = "devices.jsonl"
"""Beside the log: what the lander knows of each device."""


class MessageLink(Protocol):
    """What the lander needs of `lasp_edge.link.Link`."""

    def poll(self, timeout_s: float) -> list[Event]:
        """Return what happened."""

    def publish(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> bool:
        """Send a message, or return False."""

    def acknowledge(self, message: Message) -> None:
        """Let the broker forget a message."""


class WitnessFile:
    """A witness, and the file in which it is kept.

    The lake's rows record which incarnations there were, but not how far a device's sources had
    come. A device that lost its store asks for that; so the lander writes it with each segment, and
    reads it when it starts. Where the file is lost too, the lake's incarnations are all that is
    known.

    Args:
        witness: of the fleet.
        folder: where the file is.
    """

    def __init__(self, witness: Witness, folder: Path) -> None:
        self._witness = witness
        self._path = folder / DEVICES_FILE
        self._kept: list[str] = []

    def read(self) -> None:
        """Take over the lines that an earlier process has written."""
        if self._path.exists():
            self._witness.read(self._path.read_text(encoding="utf-8").splitlines())

    def write(self) -> None:
        """Make all of the witness durable, if it has changed, in place of the former lines.

        The log's segment may be dropped only after that: a device reports this once.
        """
        lines = list(self._witness.lines())
        if lines == self._kept:
            return
        try:
            replace_durably(self._path, "\n".join(lines))
        except OSError as error:  # the log says it louder, and the lake is not concerned
            log.warning("cannot keep the devices' progress: %s", error)
            return
        self._kept = lines


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
        self._now_us = now_us
        self._pace = pace
        self._since_us: int | None = None
        self._closed_us = now_us()
        self._first_us: int | None = None
        self._data_us: int | None = None
        self._bytes = 0
        self._replies = Replies(acceptance, sender)
        self._begun = landing.commit
        acceptance.lacks = self._lacks
        self._witness_file = WitnessFile(acceptance.witness, log_.folder)

    def recover(self) -> None:
        """Land what an earlier process has logged and not landed."""
        self._witness_file.read()
        landed = self._landing.landed
        self._log.start_after(landed)
        for number in self._log.closed():
            segment = self._log.read(number)
            if number > landed and segment.records:
                self._land(segment)
            self._log.drop(number)

    def turn(self, timeout_s: float) -> None:
        """Take the messages that arrived, land a segment that is due, send acknowledgements."""
        now_us = self._now_us()
        due_us = self._due_us()
        if due_us is not None:
            timeout_s = min(timeout_s, max(0.0, (due_us - now_us) / 1e6))
        self._take(self._link.poll(timeout_s))
        due_us = self._due_us()
        if due_us is not None and self._now_us() >= due_us:
            self.close_segment()
        self._replies.answer(self._publish, self._now_us())
        self._replies.remind(self._publish, self._now_us(), is_connected=self._since_us is not None)

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
        self._replies.answer(self._publish, self._now_us())
        self._log.release()

    def _publish(self, frame: Frame) -> bool:
        topic, is_kept = topic_of(frame, self._acceptance.topics), FRAME_KINDS[frame.kind].retained
        return self._link.publish(topic, frame.encode(), retain=is_kept)

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
        self._landing.refresh()
        self._know_store()
        with collector_off():
            accepted = self._acceptance.take(segment.records)
            if accepted.lost:
                self._begin_store(accepted)
            tick = Tick(segment.number, segment.clock)
            rows = self._columns.table(accepted, self._log.lander, tick)
        self._landing.land(segment.number, rows, accepted.refused, accepted.shared)
        self._replies.landed = self._landing.commit
        self._witness_file.write()
        self._replies.owe(accepted, segment.clock.now_us)

    def _know_store(self) -> None:
        """Take over the id under which devices know the lake."""
        self._acceptance.sink = (self._acceptance.sink[0], self._landing.lake_id)

    def _lacks(self, device: str, commit: int) -> bool:
        """Return whether a commit after which the device was acknowledged is not in the lake."""
        known = max(self._begun, self._replies.acknowledged.get(device, 0))
        return commit > known and self._landing.lacks(commit)

    def _begin_store(self, accepted: Accepted) -> None:
        """Be another store: promises to the one before speak of what is not there any more."""
        log.warning(
            "the lake was put back: it lacks a commit (%d of landing) that a device was "
            "acknowledged; devices send again what they keep",
            accepted.lost,
        )
        self._landing.begin_store()
        accepted.promises = Frontier()
        accepted.heard = dict.fromkeys(accepted.heard, False)
        self._know_store()
