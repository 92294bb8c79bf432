"""Frames of a device, and the messages that bring them, for tests of the lander."""

from collections import deque
from typing import Any

from crdts import Replica, Version
from lasp_edge import Program
from lasp_edge.link import Event, Message
from lasp_edge.protocol import kinds
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.frames import AckFrame, BeatFrame, MemberFrame, PaneFrame, VariableFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.topics import Topics
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US

TOPICS = Topics("rooms")
ME = Replica(3, 7, "pi-0")
LANDER = Replica(1, 4, "lander-1")
OPERATOR = Replica(1, 5, "operator")


def panes(
    program: Program, number: int, *, replica: Replica = ME, first_seq: int = 1, **changes: Any
) -> PaneFrame:
    """Return a frame of two panes of `by_room`."""
    window = program.windows["by_room"]
    block = PaneEntries(
        stream=window.stream,
        span_us=window.span_us,
        incarnation=replica.incarnation,
        nonce=replica.nonce,
        columns=((1, 2), (2000, 4100)),
        keys=("attic", "cellar"),
        panes_us=(BEGIN_US, BEGIN_US + 10 * SECOND_US),
        seqs=(first_seq, first_seq + 1),
    )
    return PaneFrame(replica, number, (block._replace(**changes),))


def variable(program: Program, seq: int, *parts: int, replica: Replica = ME) -> VariableFrame:
    """Return the frame of the local average."""
    local = program.published_folds["local_average"]
    columns = tuple((part,) for part in parts)
    return VariableFrame(replica, seq, local.name, local.stream, 0, ("",), (seq,), columns)


def beat(
    number: int, low_us: int | None, *, replica: Replica = ME, done: bool = False
) -> BeatFrame:
    """Return a beat."""
    return BeatFrame(replica, number, low_us, done, ())


def member(
    control: int, *, retired: bool = True, seq: int = 0, replica: Replica = ME
) -> MemberFrame:
    """Return an operator's word on a device."""
    return MemberFrame(OPERATOR, 1, replica.device, control, retired, Version.of(replica, seq))


def topic_of(frame: Any) -> str:
    """Return where a frame is published."""
    return kinds.topic_of(frame, TOPICS)


def message(frame: Any, *, retain: bool = False) -> Message:
    """Return the message that brings a frame."""
    return Message(topic_of(frame), frame.encode(), retain, 1, (1, 1))


class FakeLink:
    """A link that hands over what it was given, and keeps what is published."""

    def __init__(self) -> None:
        self.coming: deque[list[Event]] = deque()
        self.acknowledged: list[Message] = []
        self.published: list[tuple[str, bytes]] = []
        self.connected = True

    def poll(self, timeout_s: float) -> list[Event]:
        return self.coming.popleft() if self.coming else []

    def publish(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> bool:
        if self.connected:
            self.published.append((topic, payload))
        return self.connected

    def acknowledge(self, message: Message) -> None:
        self.acknowledged.append(message)

    def acks(self) -> dict[Replica, list[int]]:
        """Return the frame numbers that devices were told have landed."""
        told: dict[Replica, list[int]] = {}
        for topic, payload in self.published:
            frame = decode(payload)
            assert isinstance(frame, AckFrame)
            assert (frame.sender, topic) == (LANDER, topic_of(frame))
            told.setdefault(frame.addressee, []).extend(frame.numbers)
        return told
