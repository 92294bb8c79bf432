"""A new kind of frame is its class, one row of the table, and its handler: nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import pytest

from device_agent.agent.agent import Agent
from device_agent.agent.parts import Part
from lasp_edge.protocol import checks, kinds
from lasp_edge.protocol.acceptance import Acceptance, Accepted, Record
from lasp_edge.protocol.admission import sender_refusal
from lasp_edge.protocol.envelope import Envelope, Frame
from lasp_edge.protocol.kinds import FRAME_KINDS, FrameKind, Publisher, Subscriber
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.topics import topic_of
from tests.device_agent.agents import NOW_US, Device

PEER_NAME = "pi-2"


@dataclass(frozen=True, slots=True)
class MoodFrame(Frame):
    """A device's mood."""

    mood: str

    kind = 99

    def body(self) -> list[Any]:
        return [self.mood]

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        (mood,) = envelope.body
        return cls(envelope.sender, envelope.number, checks.name(mood))


ROW = FrameKind(
    MoodFrame,
    "mood",
    Subscriber.DEVICES | Subscriber.LANDER,
    Publisher.ITSELF,
    sender_refusal,
    "take_mood",
    retained=True,
)


class Moods(Part):
    """The device's part: publishes its own mood once, and remembers the others'."""

    name = "moods"

    def __init__(self, agent: Agent) -> None:
        self._due = [MoodFrame(agent.replica, 1, "calm")]
        self._topics = agent.topics
        self.known: dict[str, str] = {}

    @property
    def handlers(self):
        return {MoodFrame: self._take}

    def _take(self, frame: MoodFrame, _now_us: int) -> None:
        self.known[frame.about] = frame.mood

    def publications(self, _now_us: int) -> Iterator[Publication]:
        due, self._due = self._due, []
        return (Publication.of(frame, self._topics) for frame in due)


class MoodyAcceptance(Acceptance):
    """The lander's handler, which a real kind would have in `Acceptance` itself."""

    def take_mood(self, frame: MoodFrame, record: Record, accepted: Accepted) -> None:
        accepted.rows.append((frame.about, frame.mood, record.received_us))


@pytest.fixture
def device(tmp_path, monkeypatch):
    monkeypatch.setitem(FRAME_KINDS, MoodFrame.kind, ROW)
    device = Device(tmp_path)
    part = Moods(device.core.agent)
    # A real part stands in the core's list of parts; the core takes its handlers from there.
    device.core.part_list.add(part)
    return device, part


def test_a_device_subscribes_to_it_publishes_it_and_takes_it_on_its_topic_only(device):
    device, part = device
    topics = device.core.agent.topics
    assert topics.every("mood") in device.core.subscriptions()
    (said,) = [p for p in device.tick() if "/mood/" in p.topic]
    assert said.retain
    assert kinds.decode(said.payload) == MoodFrame(device.core.replica, 1, "calm")
    peer = MoodFrame(device.core.replica._replace(device=PEER_NAME), 1, "gloomy")
    device.core.handle_message(topic_of(peer, topics), peer.encode(), NOW_US)
    device.core.handle_message(topics.of("mood", "pi-3"), peer.encode(), NOW_US)
    assert part.known == {PEER_NAME: "gloomy"}
    assert device.counted["frame: on another's topic"] == 1


def test_a_lander_takes_it_by_the_same_row(device):
    device, _ = device
    plan, topics = device.program, device.core.agent.topics
    acceptance = MoodyAcceptance(
        plan.windows.values(),
        plan.published_folds.values(),
        topics,
        ("lake", "lake-1"),
        incarnations={PEER_NAME: 3},
    )
    peer = device.core.replica._replace(device=PEER_NAME, incarnation=4)
    frames = [
        MoodFrame(peer, 1, "gloomy"),
        MoodFrame(peer._replace(incarnation=2_000), 1, "a stranger's"),
    ]
    records = [
        Record(NOW_US, topic_of(frame, topics), retained=True, payload=frame.encode())
        for frame in frames
    ]
    accepted = acceptance.take(records)
    assert accepted.rows == [(PEER_NAME, "gloomy", NOW_US)]
    assert [reason for _, reason in accepted.refused] == ["incarnation too far ahead"]
