"""The one table of frame kinds: frame, topic, publishers, subscribers, guard and handler.

A new kind of frame is its class (`lasp_edge.protocol.frames`), a row here, and its handler.
Devices, landers, operators and simulations take from here how bytes are decoded, and which rule of
admission a frame must pass; `lasp_edge.protocol.topics` makes of it who subscribes to what, on
which topic a frame may come, and which names no value has on a topic. A broker's access rules
(`lasp-edge broker config`) are made from it, too.

    >>> from crdts import Replica
    >>> ask = AskFrame(Replica(1, 7, "pi-1"), 1, "pi-2", "average")
    >>> decode(ask.encode()) == ask
    True
"""

from collections.abc import Callable
from enum import Flag, auto
from typing import Final, NamedTuple

from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.admission import Known, nothing_refused, sender_refusal
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.envelope import Frame, unpack
from lasp_edge.protocol.fencing import HelloFrame, VouchFrame
from lasp_edge.protocol.frames import (
    AskFrame,
    BeatFrame,
    PaneFrame,
    PresenceFrame,
    VariableFrame,
)
from lasp_edge.protocol.shares import SharesFrame
from lasp_edge.protocol.sharing import RepairFrame, SharedFrame, SummaryFrame


class Subscriber(Flag):
    """Who subscribes to a kind of frame."""

    DEVICES = auto()  # every device, whomever a frame is about
    ADDRESSEE = auto()  # only the device that a frame is about
    LANDER = auto()
    OPERATOR = auto()


class Publisher(Flag):
    """Who may publish a kind of frame."""

    ITSELF = auto()  # only the device that a frame is about
    DEVICES = auto()  # every device, whomever a frame is about
    LANDER = auto()
    OPERATOR = auto()


Guard = Callable[[Frame, Known], str | None]
"""Returns why a reader that knows this refuses a frame; None if it does not."""


class FrameKind(NamedTuple):
    """One kind of frame.

    Attributes:
        topic: the level of its topics that names the kind.
        subscribers: who subscribes to it.
        publishers: who may publish it where a broker or signatures tell one writer from another.
        guard: why a reader refuses a frame, given what it knows; see `admission`.
        handler: the name of the method with which a lander or an operator takes a frame.
        retained: the broker keeps the newest one of a topic for later subscribers.
        qos: of MQTT; 0 for a frame that is soon followed by the next, so that nobody confirms it.
        divided: one of several landers that share the work takes a frame. Each of them takes
            what the broker keeps, and what tells of a device as a whole.
    """

    frame: type[Frame]
    topic: str
    subscribers: Subscriber
    publishers: Publisher
    guard: Guard
    handler: str
    retained: bool = False
    qos: int = 1
    divided: bool = False


_DEVICES, _ADDRESSEE = Subscriber.DEVICES, Subscriber.ADDRESSEE
_LANDER, _OPERATOR = Subscriber.LANDER, Subscriber.OPERATOR
_EVERYBODY = _DEVICES | _LANDER | _OPERATOR
_ITSELF = Publisher.ITSELF

FRAME_KINDS: Final[dict[int, FrameKind]] = {
    row.frame.kind: row
    for row in (
        FrameKind(PaneFrame, "pane", _LANDER, _ITSELF, sender_refusal, "take_panes", divided=True),
        FrameKind(
            VariableFrame, "var", _EVERYBODY, _ITSELF, sender_refusal, "take_entries", retained=True
        ),
        FrameKind(BeatFrame, "beat", _EVERYBODY, _ITSELF, sender_refusal, "take_beat", qos=0),
        FrameKind(
            PresenceFrame,
            "presence",
            _EVERYBODY,
            _ITSELF,
            sender_refusal,
            "take_presence",
            retained=True,
        ),
        FrameKind(AckFrame, "ack", _ADDRESSEE, Publisher.LANDER, nothing_refused, "take_ack"),
        FrameKind(
            AskFrame,
            "inbox",
            _ADDRESSEE,
            Publisher.DEVICES | Publisher.OPERATOR,
            nothing_refused,
            "take_ask",
        ),
        FrameKind(
            HelloFrame,
            "hello",
            _DEVICES | _LANDER,
            Publisher.DEVICES,
            nothing_refused,
            "take_hello",
        ),
        FrameKind(
            VouchFrame,
            "vouch",
            _ADDRESSEE,
            Publisher.DEVICES | Publisher.LANDER,
            nothing_refused,
            "take_vouch",
        ),
        FrameKind(
            SharedFrame,
            "shared",
            _DEVICES | _LANDER,
            _ITSELF,
            sender_refusal,
            "take_shared",
            retained=True,
        ),
        FrameKind(
            SummaryFrame,
            "summary",
            _ADDRESSEE,
            Publisher.DEVICES | Publisher.LANDER,
            nothing_refused,
            "take_summary",
        ),
        FrameKind(
            RepairFrame,
            "repair",
            _ADDRESSEE | _LANDER,  # what one device lacks a lander may lack, too
            Publisher.DEVICES,
            nothing_refused,
            "take_repair",
        ),
        FrameKind(
            CommandFrame,
            "command",
            _EVERYBODY,
            Publisher.OPERATOR,  # devices repeat commands where the broker lets them
            nothing_refused,  # by no rule that looks at a sender: see `commands.command_refusal`
            "take_command",
            retained=True,
        ),
        FrameKind(
            SharesFrame,
            "shares",
            _DEVICES,
            Publisher.LANDER,
            nothing_refused,
            "take_shares",
            retained=True,
        ),
    )
}
"""Kind number -> row."""


def decode(payload: bytes) -> Frame:
    """Return the frame that the bytes hold.

    Raises:
        FrameError: they hold no valid frame of this format.
    """
    envelope = unpack(payload)
    row = FRAME_KINDS.get(envelope.kind)
    if row is None:
        raise FrameError(f"unknown kind {envelope.kind}")
    try:
        frame = row.frame.from_envelope(envelope)
    except FrameError:
        raise
    except Exception as error:  # noqa: BLE001 - a body may make a check raise anything
        raise FrameError(f"malformed body: {type(error).__name__}") from None
    if frame.about != envelope.about:
        raise FrameError("about another device than its sender")
    return frame
