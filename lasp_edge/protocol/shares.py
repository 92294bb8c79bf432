"""Shares: the events in order of a scan with local events, as an evaluator publishes them.

A gateway retains a frame for each cell of ten seconds that has such events, each with the share
behind it as soon as it is known. A device steps its own events from there. The frame with the
greatest version counts: a version is in the gateway's file before it is sent.

    >>> from crdts import Replica
    >>> frame = SharesFrame(Replica(1, 7, "gateway-pi"), 1, 5, 20_000_000, 23, b"...")
    >>> frame.about, frame.subtopic, frame.body()
    ('gateway-pi', ('5', '14'), [5, 20, 3, b'...'])

A version is about the seconds of a clock at that time, so it travels as what it lies behind the
cell. A gateway that hears a greater one in its own name publishes above it. Above the greatest that
there is nothing is: two of these count by their arrival.
"""

from dataclasses import dataclass
from typing import Any, Final, Self

from lasp_edge.protocol import checks
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import Envelope, Frame
from lasp_edge.protocol.limits import TIME_LIMIT_US
from lasp_edge.units import SECOND_US

_LAST_S: Final = TIME_LIMIT_US // SECOND_US
LAST_VERSION: Final = 1 << 62
"""The greatest version: what it lies behind any cell has 64 bits."""
_STREAMS: Final = 1 << 32
"""Scans whose topics and frames differ surely enough: brokers send topics in full, so they are
short."""


def short_stream(stream: int) -> int:
    """Return what names the shares of a scan where they travel.

    >>> short_stream(-1), short_stream(5)
    (4294967295, 5)
    """
    return stream % _STREAMS


def version_of(number: int) -> int:
    """Return the version of what a gateway has stored under a number, as it is published."""
    return min(number, LAST_VERSION)


def replaces(version: int, known: int) -> bool:
    """Return whether a version of a cell replaces another one of the same gateway.

    >>> replaces(5, 4), replaces(4, 4), replaces(LAST_VERSION, LAST_VERSION)
    (True, False, True)
    """
    return version > known or version == LAST_VERSION


@dataclass(frozen=True, slots=True)
class SharesFrame(Frame):
    """The events in order of a cell.

    Attributes:
        stream: the hash of what the scan means, shortened by `short_stream`.
        cell_us: the start of the cell.
        version: of the content; the greatest of a gateway counts.
        content: the events (`lasp_edge.ordered.shared_places`).
    """

    stream: int
    cell_us: int
    version: int
    content: bytes

    kind = 16

    @property
    def subtopic(self) -> tuple[str, ...]:
        return (f"{self.stream:x}", f"{self.cell_us // SECOND_US:x}")

    def body(self) -> list[Any]:
        cell_s = self.cell_us // SECOND_US
        return [self.stream, cell_s, self.version - cell_s, self.content]

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        stream, cell_s, behind, content = envelope.body
        if short_stream(checks.integer(stream)) != stream:
            raise FrameError("shares of another release: use one release everywhere")
        return cls(
            envelope.sender,
            envelope.number,
            stream,
            checks.integer(cell_s, -_LAST_S, _LAST_S) * SECOND_US,
            checks.integer(checks.integer(behind) + cell_s, 1, LAST_VERSION + 1),
            checks.binary(content),
        )
