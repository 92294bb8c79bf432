"""What a gateway publishes of scans with local events: events in order, and shares.

Each cell that has changed is published once that is durable, and retained. After a connection all
cells are published again, some at a time: the broker may have lost them.
"""

from collections.abc import Iterator
from typing import Final

from crdts import Replica
from lasp_edge.evaluation.parted import PartedScans
from lasp_edge.language.halves import shares_stream
from lasp_edge.language.plan import Plan
from lasp_edge.ordered.cells import CELL_US
from lasp_edge.ordered.gathering import OrderedRecord
from lasp_edge.ordered.shared_places import SharedPlace, packed_places
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.kinds import FRAME_KINDS, decode
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.shares import SharesFrame, short_stream, version_of
from lasp_edge.protocol.sizes import MAX_MESSAGE_BYTES
from lasp_edge.protocol.topics import Topics
from lasp_edge.timers import Timer
from lasp_edge.units import SECOND_US

AT_ONCE: Final = 1_000
"""Cells that are published at a time, at most: the newest, and of these the oldest first. A device
that knows the newest steps all readings before it, and again with each cell that comes behind."""
REPEAT_US: Final = 60 * SECOND_US
"""Microseconds between two rounds in which cells are published again, if one was not answered since
the round before: a device that publishes once a minute has answered, unless a message was lost."""


class SharesPublisher:
    """Publishes the events in order of a gateway.

    Args:
        plan: the program.
        parted: what is gathered.
        sender: the gateway, as the devices see it.
        topics: of the fleet.
    """

    def __init__(self, plan: Plan, parted: PartedScans, sender: Replica, topics: Topics) -> None:
        self._parted, self._sender, self._topics = parted, sender, topics
        self._streams = {name: short_stream(shares_stream(plan, name)) for name in parted.scans}
        scans = plan.functions.streams
        self._constant = {name for name in parted.scans if scans[name].is_share_constant}
        self._number, self._timer = 0, Timer(REPEAT_US)
        self.subscription = f"{topics.of(FRAME_KINDS[SharesFrame.kind].topic, sender.device)}/#"

    def hear(self, topic: str, payload: bytes) -> bool:
        """Take a message of shares in this gateway's name; return whether it is one.

        A former run may have had another store, and a stranger may publish anything: nobody would
        take what is not above their versions.
        """
        if not topic.startswith(self.subscription[:-1]):
            return False
        try:
            frame = decode(payload)
        except FrameError:
            return True
        if (
            isinstance(frame, SharesFrame)
            and not frame.cell_us % CELL_US
            and not self._is_own(frame)
        ):
            of_former = frame.sender != self._sender
            self._parted.overtake(frame.stream, frame.cell_us, frame.version, of_former=of_former)
        return True

    def _is_own(self, frame: SharesFrame) -> bool:
        """Return whether this run has published a frame, as far as its version and content tell."""
        for name, stream in self._streams.items():
            at = name, frame.cell_us
            if stream == frame.stream and at in self._parted.numbers:
                version = version_of(self._parted.numbers[at])
                is_former = frame.version < version
                is_current = frame.version == version and frame.content == self._content(*at)
                return frame.sender == self._sender and (is_former or is_current)
        return False

    def connected(self) -> None:
        """Publish all again."""
        self._parted.publish_all()

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Yield changed shares, and those without an answer for a while."""
        if self._timer.is_due(now_us):
            self._parted.repeat()
        newest = sorted(self._parted.unpublished, key=lambda each: each[::-1], reverse=True)
        for name, cell_us in reversed(newest[:AT_ONCE]):
            self._number += 1
            version, content = (
                version_of(self._parted.numbers[name, cell_us]),
                self._content(name, cell_us),
            )
            frame = SharesFrame(
                self._sender, self._number, self._streams[name], cell_us, version, content
            )
            if len(content) < MAX_MESSAGE_BYTES // 2:
                yield Publication.of(frame, self._topics)
            else:
                self._parted.failed[f"{name}: shares of 10 s too large to publish"] = 1
            # The link has taken it: whoever asks for the next one says so.
            self._parted.unpublished.pop((name, cell_us), None)

    def _content(self, name: str, cell_us: int) -> bytes:
        places = {
            place: self._shown(name, record)
            for place, record in self._parted.records(name, cell_us).items()
        }
        return packed_places(places, cell_us, self._parted.scans[name].events)

    def _shown(self, name: str, record: OrderedRecord) -> SharedPlace:
        """Return an event in order as devices need it: a share that never changes they know."""
        is_known = record.known and name not in self._constant
        return SharedPlace(record.key, is_known, record.share if is_known else None)
