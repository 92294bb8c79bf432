"""Frames of shared variables: what a device leaves at the broker, and directed repair.

A shared variable is one lattice state over the fleet, and each frame holds a part of it: parts may
be lost, doubled and reordered, for they are joined. A device retains its own part in **slots**, one
frame each; a change is the frame of one small slot. Where two devices' digests differ, one sends
the other the digest of its state in a `SummaryFrame`, and is sent in `RepairFrame`s what it lacks.
Whatever part of a state a frame holds, it is of one meaning: `stream` is a hash of it.

    >>> from crdts import GSet, Replica
    >>> from crdts.wire import encode
    >>> me = Replica(1, 7, "pi-1")
    >>> frame = SharedFrame(me, 1, "doors", 5, slot=0, state=encode(GSet({"front"})))
    >>> (frame.about, frame.subtopic, frame.kind)
    ('pi-1', ('doors', '00'), 10)
    >>> RepairFrame(me, 1, "pi-2", "doors", 5, frame.state).about
    'pi-2'
"""

from dataclasses import dataclass, field
from typing import Any, Final, Self

import msgpack

from crdts import Lattice
from lasp_edge.protocol import checks
from lasp_edge.protocol.envelope import Envelope, Frame

SLOTS: Final = 1 << 16
"""Slots of a device and variable are below it."""
SUMMARY_BYTES: Final = 48_000
"""Bytes of a summary, at most. One of more replicas says nothing, and all of a state is sent."""


@dataclass(frozen=True, slots=True)
class SharedFrame(Frame):
    """A slot of the sender's own part of a shared variable, retained until the slot is used again.

    Attributes:
        stream: the hash of the variable's meaning.
        state: an encoded part of its state.
    """

    variable: str
    stream: int
    slot: int
    state: bytes

    kind = 10

    @property
    def subtopic(self) -> tuple[str, ...]:
        return (self.variable, f"{self.slot:02x}")

    def body(self) -> list[Any]:
        return [self.variable, self.stream, self.slot, self.state]

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        variable, stream, slot, state = envelope.body
        return cls(
            envelope.sender,
            envelope.number,
            checks.name(variable),
            checks.integer(stream),
            checks.integer(slot, 0, SLOTS),
            checks.binary(state),
        )


@dataclass(frozen=True, slots=True)
class SummaryFrame(Frame):
    """A device summarises its state of a shared variable for the device `about`, for a repair.

    Attributes:
        stream: the hash of the variable's meaning.
        digest: that of its state, as msgpack.
    """

    about: str = field()  # the base class's property is not its default
    variable: str
    stream: int
    digest: bytes

    kind = 11

    def body(self) -> list[Any]:
        return [self.variable, self.stream, self.digest]

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        return cls(envelope.sender, envelope.number, envelope.about, *_named(envelope.body))


@dataclass(frozen=True, slots=True)
class RepairFrame(Frame):
    """A part of a shared variable that the device `about` lacks.

    Attributes:
        stream: the hash of the variable's meaning.
        state: an encoded part of its state.
    """

    about: str = field()  # the base class's property is not its default
    variable: str
    stream: int
    state: bytes

    kind = 12

    def body(self) -> list[Any]:
        return [self.variable, self.stream, self.state]

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        return cls(envelope.sender, envelope.number, envelope.about, *_named(envelope.body))


def packed_digest(state: Lattice) -> bytes:
    """Return the summary of a state, for a `SummaryFrame`."""
    digest: bytes = msgpack.packb(state.digest())
    return digest if len(digest) <= SUMMARY_BYTES else msgpack.packb(None)


def _named(body: list[Any]) -> tuple[str, int, bytes]:
    variable, stream, content = body
    return checks.name(variable), checks.integer(stream), checks.binary(content)
