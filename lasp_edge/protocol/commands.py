"""Commands: what operators decided, as one log that everybody keeps and repeats.

A command has a **subject**: a device, which is retired or admitted (`crdts.Membership`); or a
parameter in one scope, the whole fleet or a device, which has a schedule (`crdts.ControlLog`). At
each place of a subject the entry with the greatest number stands, and a frame holds all of one
subject: one retained message tells it to whoever comes late. A number is above those that the
operator received, and at least the seconds of the operator's clock: so the later command stands,
where neither operator received the other's.

    >>> known = CommandLog()
    >>> known |= CommandLog(control=known.control.set("above", "cellar", 600, "30", "ann"))
    >>> frame = CommandFrame.of(Replica(1, 7, "operator"), 1, ("above", "cellar"), known)
    >>> (frame.subject, frame.subtopic, frame.commands() == known)
    (('above', 'cellar'), ('schedule', 'cellar'), True)
    >>> command_refusal(frame, CommandLog(), parameters=())
    'no such parameter'
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final, Self

from crdts import ControlLog, Membership, Pair, Replica
from crdts.control_log import control_rows
from lasp_edge.protocol import checks
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import Envelope, Frame
from lasp_edge.protocol.limits import (
    CLOCK_NUMBERS,
    CONTROLS_AHEAD,
    INCARNATIONS_AHEAD,
    MEMBERS,
    TIME_LIMIT_US,
)

MOST_PLACES: Final = 1_000
"""Places of one parameter and scope, at most: with names and values some 40 bytes each, they fit
into one message."""

OPERATOR: Final = "operator"
"""The name under which operators send; only `about` says which device a command concerns."""

Subject = tuple[str, ...]
"""Of a command: (device,), or (parameter, scope) with "" for the scope of the whole fleet."""


class CommandLog(Pair[Membership, ControlLog]):
    """All that operators decided: which devices count, and the schedule of each parameter."""

    __slots__ = ()

    def __init__(
        self, membership: Membership | None = None, control: ControlLog | None = None
    ) -> None:
        super().__init__(membership or Membership(), control or ControlLog())

    @property
    def membership(self) -> Membership:
        """Which devices count."""
        return self.first

    @property
    def control(self) -> ControlLog:
        """The schedules of parameters."""
        return self.second

    @property
    def subjects(self) -> list[Subject]:
        """All of which something was decided."""
        return [*((device,) for device in self.membership.entries), *self.control.lanes()]

    def about(self, subject: Subject) -> "CommandLog":
        """Return the part that is about one subject."""
        if len(subject) > 1:
            return CommandLog(control=self.control.of(*subject))
        entries = self.membership.entries
        return CommandLog(Membership({name: entries[name] for name in subject if name in entries}))


@dataclass(frozen=True, slots=True)
class CommandFrame(Frame):
    """All that its sender knows of the device, or of the parameter in one scope, `about`.

    The broker retains it for everybody, and devices that know it repeat it in their own name.

    Attributes:
        scope: of the parameter, "" for the whole fleet; None where it is about a device.
        rows: the device's one row (number, retired, version up to which it counts); or
            (from_us, number, author, value) of each of a parameter's places, by time.
    """

    about: str = field()  # the base class's property is not its default
    scope: str | None
    rows: tuple[tuple[Any, ...], ...]

    kind = 15

    @classmethod
    def of(cls, sender: Replica, number: int, subject: Subject, known: CommandLog) -> Self:
        """Return the sender's frame that holds all that is known of a subject."""
        if len(subject) == 1:
            (device,) = subject
            row = Membership.row(known.membership.entries[device])
            return cls(sender, number, device, None, (row,))
        rows = tuple((from_us, *entry) for from_us, entry in known.control.places(*subject))
        parameter, scope = subject
        return cls(sender, number, parameter, scope, rows)

    @property
    def subject(self) -> Subject:
        """The device, or the parameter and scope, that it is about."""
        return (self.about,) if self.scope is None else (self.about, self.scope)

    @property
    def subtopic(self) -> tuple[str, ...]:
        if self.scope is None:
            return ()
        return (SCHEDULE, self.scope) if self.scope else (SCHEDULE,)

    def commands(self) -> CommandLog:
        """Return the frame's content as a delta of all commands."""
        if self.scope is None:
            return CommandLog(Membership({self.about: Membership.value_of(self.rows[0])}))
        return CommandLog(control=ControlLog(dict(control_rows(self.about, self.scope, self.rows))))

    def body(self) -> list[Any]:
        return [self.scope, list(map(list, self.rows))]

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        scope, packed = envelope.body
        rows = tuple([tuple(checks.array(row)) for row in checks.array(packed)])
        if not 0 < len(rows) <= (1 if scope is None else MOST_PLACES):
            raise FrameError("too many places, or no place")
        if scope is not None:
            times_us = [checks.integer(row[0], -TIME_LIMIT_US, TIME_LIMIT_US) for row in rows]
            if times_us != sorted(set(times_us)):
                raise FrameError("places out of order")
        frame = cls(envelope.sender, envelope.number, envelope.about, scope, rows)
        frame.commands()  # raises where a row does not fit
        return frame


SCHEDULE: Final = "schedule"
"""The level of a command's topic that tells a parameter from a device of the same name."""


def command_refusal(
    frame: CommandFrame,
    known: CommandLog,
    parameters: Collection[str],
    incarnation: int | None = None,
) -> str | None:
    """Return why a command is refused; None if it is not.

    Args:
        frame: the command.
        known: all commands that were taken before.
        parameters: of the program.
        incarnation: the greatest known of the device that it is about; None of an unknown one.
    """
    if frame.scope is None:
        return _member_refusal(frame, known.membership, incarnation)
    if frame.about not in parameters:
        return "no such parameter"
    schedule = known.about(frame.subject).control
    if not schedule.entries and len(known.control.lanes()) >= MEMBERS:
        return "too many devices"
    if len((schedule | frame.commands().control).entries) > MOST_PLACES:
        return "too many places"
    return None


def _member_refusal(
    frame: CommandFrame, membership: Membership, incarnation: int | None
) -> str | None:
    (new,) = frame.commands().membership.entries.values()
    member = membership.entries.get(frame.about)
    if new.control > max(CLOCK_NUMBERS, member.control if member else 0) + CONTROLS_AHEAD:
        return "control too far ahead"
    if member is None and len(membership.entries) >= MEMBERS:
        return "too many members"
    if incarnation is not None and new.version.incarnation - incarnation > INCARNATIONS_AHEAD:
        return "incarnation too far ahead"
    return None
