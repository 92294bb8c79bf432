"""Messages of a device, a link that brings them, and a lander that can be started again."""

from collections import deque
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.shared import overheard
from cloud_tier.lake.tables import LakeTables
from cloud_tier.lander.columns import LandedColumns
from cloud_tier.lander.landing import Landing
from cloud_tier.lander.process import Lander
from cloud_tier.lander.run import SegmentPace
from cloud_tier.lander.segments import Log
from lasp_edge.language.plan import Plan
from lasp_edge.link import Connected, Event, Message
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.listening import ListeningClock
from lasp_edge.protocol.topics import topic_of
from lasp_edge.units import SECOND_US
from tests.cloud_tier.support_devices import BEGIN_US
from tests.lasp_edge.protocol.support_frames import LANDER, TOPICS, acceptance

CONNECTED = Connected("5", session_present=False)


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
        """Return the acknowledged entries by device: seqs by replica."""
        entries: dict[str, dict[tuple[int, int], list[int]]] = {}
        for frame in self.ack_frames():
            of_device = entries.setdefault(frame.about, {})
            for incarnation, nonce, runs in frame.taken:
                seqs = [seq for first, last in runs for seq in range(first, last + 1)]
                of_device.setdefault((incarnation, nonce), []).extend(seqs)
        return entries

    def not_taken(self) -> list[tuple[str, int]]:
        """Return (device, reason) of all refusals."""
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


class Station:
    """A lander on a fake link and a clock that stands still, over one folder.

    Args:
        folder: of its log and its lake.
        plan: of a program "rooms".
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder, self.plan = folder, plan
        self.lake = LakeTables(folder / "lake")
        self.now_us, self.off_us = BEGIN_US, 0
        self.log: Log | None = None
        self.pace = SegmentPace()
        self.start()

    def start(self) -> None:
        """Begin a process; the memory of the one before is gone."""
        prepare(self.plan, self.lake)
        if self.log is not None:
            self.log.release()
        self.link = FakeLink()
        self.log = Log(self.folder / "log", "lander")
        self.landing = Landing(self.lake, self.log.lander)
        self.lander = Lander(
            link=self.link,
            log_=self.log,
            landing=self.landing,
            acceptance=acceptance(
                self.plan,
                sink=("lake", self.landing.lake_id),
                incarnations=self.landing.incarnations(),
                overheard=overheard(self.plan, self.lake),
            ),
            columns=LandedColumns(self.plan),
            sender=LANDER,
            clock=ListeningClock(
                0,
                lambda: self.now_us + self.off_us,
                lambda: self.now_us,
                pause_us=3_600 * SECOND_US,
            ),
            pace=self.pace,
        )
        self.lander.recover()

    def turn(self, *events: Event, after_s: float = 0.0) -> None:
        """Let time pass and one poll bring these events."""
        self.now_us += round(after_s * SECOND_US)
        self.link.coming.append(list(events))
        self.lander.turn(0.0)

    def rows(self, kind: str = "pane") -> list[dict[str, Any]]:
        """Return the landed rows of a kind."""
        rows = DeltaTable(self.lake.landing).to_pyarrow_table().to_pylist()
        return [row for row in rows if row["kind"] == kind]
