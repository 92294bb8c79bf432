"""One run of a lander: messages in, into its log and the lake, and what leaves after that.

    message -> log, synced -> acknowledged to the broker
            -> segment closed -> decoded -> one commit to `landing` -> acknowledged to the devices

So whatever the broker has forgotten is on disk here, and whatever a device has forgotten is in the
lake. A kill between any two arrows loses nothing and doubles nothing: the log is landed at the
next start, and a segment that had landed already is known by its number.

A segment is closed soon after data arrived, later if it holds promises only, and seldom if it is
empty: its tick tells Spark that time has passed, and each tick costs a commit. After a step of the
clock the segment ends with the clock as it was, and the run must give way to another one: devices
are waited for as after a start, and send again what was refused by the clock as it was.

The link, the clocks, the log and the tables are its driver's: the process has those of the machine
(`cloud_tier.lander.process`), a simulation has its own.
"""

import gc
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from crdts import Frontier, Replica
from lasp_edge.protocol.acceptance import Acceptance, Accepted, Record, Refusal, SharedNews
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.listening import ListeningClock
from lasp_edge.protocol.replies import Publish, Replies
from lasp_edge.protocol.sizes import MAX_MESSAGE_BYTES
from lasp_edge.protocol.witness import Witness

log = logging.getLogger(__name__)


class ClosedSegment(Protocol):
    """A segment that is closed; see `cloud_tier.lander.segments.Segment`."""

    @property
    def number(self) -> int:
        """Greater than that of every earlier one of this lander."""

    @property
    def clock(self) -> Listening:
        """The lander's clock at its end."""

    @property
    def records(self) -> Sequence[Record]:
        """The messages."""


class SegmentLog(Protocol):
    """What a run needs of `cloud_tier.lander.segments.Log`."""

    lander: str

    @property
    def is_open(self) -> bool:
        """Whether a segment is being written."""

    def closed(self) -> list[int]:
        """Return the numbers of the segments that are not open, ascending."""

    def start_after(self, number: int) -> None:
        """Number later segments above this one."""

    def append(self, record: Record, since_us: int) -> None:
        """Write a message, not yet durably."""

    def sync(self) -> None:
        """Make everything that was written durable."""

    def close_segment(self, clock: Listening) -> int:
        """Close the open segment, or one without messages, and return its number."""

    def read(self, number: int) -> ClosedSegment:
        """Return a closed segment."""

    def drop(self, number: int) -> None:
        """Delete a segment: it has landed, and a later one too."""

    def release(self) -> None:
        """Let another process write to this log."""

    def devices(self) -> list[str]:
        """Return what was kept of each device, a line each."""

    def keep_devices(self, lines: Sequence[str]) -> None:
        """Make that durable in place of what was kept before."""


class LandingTable(Protocol):
    """What a run needs of `cloud_tier.lander.landing.Landing`."""

    @property
    def lake_id(self) -> str:
        """The id of the lake as a store."""

    @property
    def landed(self) -> int:
        """The number of the last segment that has landed, 0 before the first."""

    @property
    def newest(self) -> int:
        """The number of the newest commit that is known here: of a landed segment, at first."""

    def refresh(self) -> None:
        """Look for commits of others."""

    def lacks(self, commit: int) -> bool:
        """Return whether the lake lacks a commit that this process has not acknowledged."""

    def begin_store(self) -> None:
        """Take another id as a store."""

    def land(
        self,
        number: int,
        table: Any,
        refused: Mapping[tuple[str, str], Refusal],
        shared: Iterable[SharedNews] = (),
    ) -> None:
        """Commit a segment's rows, once."""


class SegmentColumns(Protocol):
    """What a run needs of `cloud_tier.lander.columns.LandedColumns`."""

    def table(self, accepted: Accepted, lander: str, tick: Tick) -> Any:
        """Return the rows of a segment, and the lander's clock at its end."""


class WitnessFile:
    """A witness, and the file in which it is kept.

    The lake's rows record which incarnations there were, but not how far a device's sources had
    come. A device that lost its store asks for that; so the lander writes it with each segment, and
    reads it when it starts. Where the file is lost too, the lake's incarnations are all that is
    known.

    Args:
        witness: of the fleet.
        log_: beside which it is kept.
    """

    def __init__(self, witness: Witness, log_: SegmentLog) -> None:
        self._witness, self._log = witness, log_
        self._kept: list[str] = []

    def read(self) -> None:
        """Take over the lines that an earlier process has written."""
        self._witness.read(self._log.devices())

    def write(self) -> None:
        """Make all of the witness durable, if it has changed, in place of the former lines.

        The log's segment may be dropped only after that: a device reports this once.
        """
        lines = list(self._witness.lines())
        if lines == self._kept:
            return
        try:
            self._log.keep_devices(lines)
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


class LanderRun:
    """One run of a lander.

    Args:
        log_: where messages are kept until they have landed.
        landing: the lake's tables.
        acceptance: what is taken from messages.
        columns: makes tables of what was taken.
        sender: this process, as the devices see it in acknowledgements.
        clock: the machine's.
        pace: when a segment is closed.

    Attributes:
        must_restart: the clock was set, or nobody listened for a while.
        has_landed: whether it has logged and committed a segment of its own.
    """

    def __init__(
        self,
        *,
        log_: SegmentLog,
        landing: LandingTable,
        acceptance: Acceptance,
        columns: SegmentColumns,
        sender: Replica,
        clock: ListeningClock,
        pace: SegmentPace = SegmentPace(),
    ) -> None:
        self._log = log_
        self._landing = landing
        self._acceptance = acceptance
        self._columns = columns
        self._clock = clock
        self._pace = pace
        self.must_restart = self.has_landed = False
        self._closed_us = clock.now_us
        self._listened = self._listening
        self._first_us: int | None = None
        self._data_us: int | None = None
        self._bytes = 0
        self._replies = Replies(acceptance, sender)
        self._begun = landing.newest
        acceptance.lacks = self._lacks
        self._witness_file = WitnessFile(acceptance.witness, log_)

    def recover(self) -> None:
        """Land what an earlier process has logged and not landed.

        The last segment that landed is still in the log. So where an earlier one has not landed,
        the lake was put back since. What a segment reports of devices is kept before it is dropped.
        """
        self._witness_file.read()
        landed, closed = self._landing.landed, self._log.closed()
        if closed and landed < closed[0] - 1:
            log.warning("the lake was put back, or is another one: it lacks segments that landed")
            self._landing.begin_store()
        self._log.start_after(landed)
        for number in closed:
            segment = self._log.read(number)
            if number > landed and segment.records:
                self._land(segment)
            elif number <= landed:  # what it reports of devices may not be kept: that comes last
                self._acceptance.take(segment.records)
        self._witness_file.write()
        landed = self._landing.landed
        kept = max([number for number in closed if number <= landed], default=0)
        for number in closed:
            if number != kept:
                self._log.drop(number)

    @property
    def _is_connected(self) -> bool:
        return self._clock.listening is not None

    @property
    def _listening(self) -> Listening:
        now_us = self._clock.now_us
        return self._clock.listening or Listening(now_us, now_us)

    def look(self) -> None:
        """See whether the clock was set: then the segment ends with the clock as it was."""
        if self._clock.look():
            self.must_restart = True
            if self._log.is_open:
                self._close(self._listened)
        self._listened = self._listening

    def connected(self) -> None:
        """Note a new connection to the broker."""
        self._clock.begin()
        self._acceptance.connected(self._clock.now_us)

    def disconnected(self) -> None:
        """Close the segment with the clock of the connection that was lost."""
        if self._log.is_open:
            self.close_segment()
        self._clock.end()

    def hear(self, topic: str, payload: bytes, *, retained: bool = False) -> None:
        """Write a message to the log, not yet durably.

        Args:
            topic: its topic.
            payload: its bytes.
            retained: the broker had kept it.
        """
        now_us, since_us = self._listening
        # What is longer is refused in any case; its length shows with one byte too many.
        payload = payload[: MAX_MESSAGE_BYTES + 1]
        self._log.append(Record(now_us, topic, retained, payload), since_us)
        self._bytes += len(payload)
        self._first_us = now_us if self._first_us is None else self._first_us
        if self._data_us is None and not _is_beat(topic):
            self._data_us = now_us

    def land_due(self) -> None:
        """Land the segment, if that is due."""
        due_us = self.due_us
        if due_us is not None and self._clock.now_us >= due_us:
            self.close_segment()

    def reply(self, publish: Publish) -> None:
        """Send what is owed to devices."""
        now_us = self._clock.now_us
        self._replies.answer(publish, now_us)
        self._replies.remind(publish, now_us, is_connected=self._is_connected)

    def close_segment(self) -> None:
        """Close the segment and land it."""
        self._close(self._listening)

    def _close(self, clock: Listening) -> None:
        number = self._log.close_segment(clock)
        self._closed_us = self._clock.now_us
        self._first_us = self._data_us = None
        self._bytes = 0
        self._land(self._log.read(number))
        self.has_landed = True
        for before in self._log.closed():
            if before != number:
                self._log.drop(before)

    def finish(self, publish: Publish) -> None:
        """Land the open segment, send the last acknowledgements and release the log."""
        if self._log.is_open:
            self.close_segment()
        self._replies.answer(publish, self._clock.now_us)
        self._log.release()

    @property
    def due_us(self) -> int | None:
        """When the segment is to be closed; None: not before a message comes."""
        if self._bytes >= self._pace.full_bytes:
            return self._closed_us
        if self._data_us is not None:
            return self._data_us + self._pace.data_us
        if self._first_us is not None:
            return self._first_us + self._pace.promises_us
        return self._closed_us + self._pace.idle_us if self._is_connected else None

    def _land(self, segment: ClosedSegment) -> None:
        self._landing.refresh()
        self._know_store()
        with collector_off():
            accepted = self._acceptance.take(segment.records)
            if accepted.lost:
                self._begin_store(accepted)
            tick = Tick(segment.number, segment.clock)
            rows = self._columns.table(accepted, self._log.lander, tick)
        self._landing.land(segment.number, rows, accepted.refused, accepted.shared)
        self._replies.landed = self._landing.newest
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
        accepted.promises, accepted.begun = Frontier(), {}
        accepted.heard = dict.fromkeys(accepted.heard, False)
        self._know_store()


def _is_beat(topic: str) -> bool:
    return f"/{FRAME_KINDS[BeatFrame.kind].topic}/" in topic


@contextmanager
def collector_off() -> Iterator[None]:
    """Decode without the garbage collector: it would walk every new tuple, and none is garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
