"""The envelope: the fields of every frame, and how a frame becomes bytes.

A frame is one msgpack array `[format, kind, device, incarnation, nonce, number, about, body]`, and
no field of it means two things:

    sender      (incarnation, nonce, device): the replica that sent the frame
    number      the sender's number of this frame among its frames of this kind, from 1; the greater
                one was made later
    about       the device that the frame concerns: nil where it is the sender's own
    body        what only this kind of frame says

An optional ninth element is a map that a reader ignores where it does not know a key.

Nothing a stranger sends can do more than raise `FrameError`: size, depth, types and ranges are
checked here and in `lasp_edge.protocol.checks`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import msgpack

from crdts import Replica
from crdts.plain import pack
from crdts.replica import SEQS
from lasp_edge.protocol import checks
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.sizes import MAX_MESSAGE_BYTES

FORMAT = 3
"""The format's number; a frame of any other format is refused."""
_FIELDS = 8
_FORMATS = 1 << 8


class Envelope(NamedTuple):
    """A decoded envelope; body and extra element are not checked yet."""

    kind: int
    sender: Replica
    number: int
    about: str
    body: list[Any]
    extra: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Frame(ABC):
    """One message between agents, landers and operators.

    Attributes:
        sender: the replica that sent it.
        number: the sender's number of it among its frames of this kind, from 1.
    """

    sender: Replica
    number: int

    kind: ClassVar[int]

    @property
    def about(self) -> str:
        """The device that the frame concerns; the sender's own unless the kind says otherwise."""
        return self.sender.device

    @property
    def subtopic(self) -> tuple[str, ...]:
        """What follows the device's name in the frame's topic."""
        return ()

    @abstractmethod
    def body(self) -> list[Any]:
        """Return the fields of this kind of frame alone, as msgpack takes them."""

    def extra(self) -> dict[str, Any]:
        """Return what readers of an earlier release may ignore, by key; most often nothing."""
        return {}

    @classmethod
    @abstractmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        """Return the frame with the body checked.

        Raises:
            FrameError, TypeError, ValueError, IndexError: it is not the body of such a frame.
        """

    def encode(self) -> bytes:
        """Return the frame as bytes."""
        incarnation, nonce, device = self.sender
        about = None if self.about == device else self.about
        envelope = [FORMAT, self.kind, device, incarnation, nonce, self.number, about, self.body()]
        extra = self.extra()
        if extra:
            envelope.append(extra)
        return pack(envelope)


def unpack(payload: bytes) -> Envelope:
    """Return the envelope that the bytes hold.

    Raises:
        FrameError: they hold none of this format.
    """
    if len(payload) > MAX_MESSAGE_BYTES:
        raise FrameError("too large")
    try:
        fields = msgpack.unpackb(payload, use_list=True, strict_map_key=True)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        raise FrameError("not msgpack") from None
    if not isinstance(fields, list) or not fields:
        raise FrameError("not an envelope")
    _check_format(fields[0])
    extra: dict[str, Any] = {}
    if len(fields) == _FIELDS + 1 and isinstance(fields[_FIELDS], dict):
        extra = fields.pop()
    if len(fields) != _FIELDS:
        raise FrameError("not an envelope")
    _, kind, device, incarnation, nonce, number, about, body = fields
    sender = checks.replica(incarnation, nonce, device)
    if not isinstance(body, list):
        raise FrameError("not an envelope")
    if type(kind) is not int:
        raise FrameError("bad kind")
    concerned = sender.device if about is None else checks.replica(0, 0, about).device
    return Envelope(kind, sender, checks.integer(number, 1, SEQS), concerned, body, extra)


def _check_format(found: Any) -> None:
    # What is no small integer is not repeated: its repr may be as deep as a stranger likes.
    if type(found) is not int or not 0 <= found < _FORMATS:
        raise FrameError(f"not format {FORMAT}")
    if found != FORMAT:
        raise FrameError(f"format {found}, and this lasp-edge reads format {FORMAT}")
