"""Control frames: what operators said of one parameter, for the fleet or for one device.

A frame holds the whole schedule of its parameter and scope, so one retained message tells all of
it to whoever comes late. Everybody who keeps a log repeats what was not heard for some time, as it
is with member commands.

    >>> log = ControlLog()
    >>> log |= log.say("above", "cellar", 600, "30", "ann")
    >>> frame = ControlFrame.of(Replica(1, 7, "operator"), 1, "above", "cellar", log)
    >>> (frame.about, frame.subtopic, frame.log() == log)
    ('above', ('cellar',), True)
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, Self

from crdts import ControlEntry, ControlLog, ControlPlace, Replica
from crdts.control_log import control_rows
from lasp_edge.protocol import checks
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import Envelope, Frame
from lasp_edge.protocol.fitting import PaneStream
from lasp_edge.protocol.limits import TIME_LIMIT_US

MOST_PLACES: Final = 1_000
"""Places of one parameter and scope, at most: with names and values some 40 bytes each, they fit
into one message."""


@dataclass(frozen=True, slots=True)
class ControlFrame(Frame):
    """What operators said of the parameter `about`, for one scope.

    The broker retains it for everybody, and devices that know it repeat it in their own name.

    Attributes:
        scope: a device, or "" for the whole fleet.
        places: (from_us, number, author, value) of each, by time.
    """

    about: str = field()  # the base class's property is not its default
    scope: str
    places: tuple[tuple[int, int, str, str | None], ...]

    kind = 14

    @classmethod
    def of(cls, sender: Replica, number: int, parameter: str, scope: str, log: ControlLog) -> Self:
        """Return the sender's frame that says what a log holds of a parameter and scope."""
        places = tuple((from_us, *entry) for from_us, entry in log.places(parameter, scope))
        return cls(sender, number, parameter, scope, places)

    @property
    def subtopic(self) -> tuple[str, ...]:
        return (self.scope,) if self.scope else ()

    def log(self) -> ControlLog:
        """Return what it says as a delta of the fleet's log."""
        return ControlLog(
            {
                ControlPlace(self.about, self.scope, from_us): ControlEntry(number, author, value)
                for from_us, number, author, value in self.places
            }
        )

    def body(self) -> list[Any]:
        return [self.scope, list(map(list, self.places))]

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        scope, rows = envelope.body
        given = tuple([tuple(checks.array(row)) for row in checks.array(rows)])
        found = list(control_rows(envelope.about, checks.text(scope), given))
        times_us = [checks.integer(at.from_us, -TIME_LIMIT_US, TIME_LIMIT_US) for at, _ in found]
        if not 0 < len(found) <= MOST_PLACES:
            raise FrameError("too many places, or no place")
        if times_us != sorted(set(times_us)):
            raise FrameError("places out of order")
        places = tuple((at.from_us, *entry) for at, entry in found)
        return cls(envelope.sender, envelope.number, envelope.about, scope, places)


class ControlRows(NamedTuple):
    """What operators said of a parameter that was not known yet."""

    said: ControlLog
    received_us: int


class ControlledStreams(Protocol):
    """What must be known of windows with parameters to take their panes."""

    @property
    def parameters(self) -> Collection[str]:
        """Of which something can be said."""

    @property
    def log(self) -> ControlLog:
        """What was said."""

    @property
    def control(self) -> int:
        """What tells the log from others; 0 while nothing was said."""

    def stream(self, stream: int) -> PaneStream | None:
        """Return what is known of a stream; None for an unknown one."""

    def hear(self, said: ControlLog) -> bool:
        """Join what was said; return whether it was news."""
