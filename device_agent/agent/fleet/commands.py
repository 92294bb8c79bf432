"""The commands of operators as a device keeps them, and repeats them so that none is lost.

A frame holds all that its sender knows of one device or parameter. A device joins it, and repeats
the commands that it did not receive for some time, soon where somebody seems to know less
(`lasp_edge.protocol.repeating`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from shlex import quote
from typing import Any, Final

from crdts import ControlLog, Membership, Version
from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes, Facts
from device_agent.agent.parts import FrameRefusedError, Handler, Part
from lasp_edge.protocol.commands import OPERATOR, CommandFrame, CommandLog, command_refusal
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.repeating import Repeating
from lasp_edge.units import SECOND_US

OVERRULED: Final = (
    "an operator's command about {} came after a later one was known, and does not count: look at "
    "lasp-edge schedule or members, and type it again if it is meant"
)
OVERRULED_US: Final = 3_600 * SECOND_US
"""Microseconds for which that is an alarm: an hour, as operators look now and then."""


def retired_notice(device: str, fleet: str, broker: str = "URL") -> str:
    """Return the sentence for a device that is retired.

    >>> retired_notice("attic", "greenhouse").partition("type ")[2].partition(",")[0]
    'lasp-edge admit attic --fleet greenhouse --broker URL'
    """
    return (
        "this device is retired: what it measures from then on counts nowhere; to count it again, "
        f"type lasp-edge admit {quote(device)} --fleet {quote(fleet)} --broker {broker}, with an "
        "operator's login where the broker asks for one"
    )


class OperatorCommands(Part):
    """Which devices count, and the schedules of the program's parameters.

    Args:
        agent: what all parts share.
        on_members: is given the membership, and the devices about which it has something new, now
            and whenever it changes.
        on_control: are given the log of parameters, now and whenever it changes.

    Attributes:
        known: all commands.
        control: the mark of the log of parameters.
    """

    name = "commands"

    def __init__(
        self,
        agent: Agent,
        on_members: Callable[[Membership, Iterable[str]], None],
        on_control: Iterable[Callable[[ControlLog], None]] = (),
    ) -> None:
        self._agent, self._parameters = agent, agent.plan.parameters
        # Entries of parameters that a former program had count for nobody: a new device does not
        # take them, and all have to know the same.
        log = (agent.facts.control or ControlLog()).of_parameters(self._parameters)
        self.known = CommandLog(agent.facts.membership, log)
        self._repeating = Repeating(Random(agent.replica.nonce + 1))
        self._sent = 0
        self._changes, self.is_changed = Changes(), False
        self._retired: dict[str, Version] | None = None
        self._on_members, self._on_control = on_members, tuple(on_control)
        on_members(self.membership, sorted(self.membership.entries))
        self._note_own()
        self._renew_control()

    @property
    def membership(self) -> Membership:
        """Which devices count."""
        return self.known.membership

    @property
    def retired(self) -> dict[str, Version]:
        """Device -> the version up to which it counts, of the retired; not to be changed."""
        if self._retired is None:
            self._retired = self.membership.retired
        return self._retired

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {CommandFrame: self._receive}

    def _receive(self, frame: CommandFrame, now_us: int) -> None:
        """Join a command."""
        reason = command_refusal(frame, self.known, self._parameters)
        if reason is not None:
            raise FrameRefusedError(f"command: {reason}")
        new = frame.commands()
        if not new <= self.known:
            self.known |= new
            self.is_changed = True
            if frame.scope is None:
                self._changes.facts.add(Facts(membership=new.membership))
                self._retired = None
                self._on_members(self.membership, frame.subject)
                self._note_own()
            else:
                self._changes.facts.add(Facts(control=self.known.control.copy()))
                self._renew_control()
        is_newest = new == self.known.about(frame.subject)
        if not is_newest and frame.sender.device == OPERATOR:
            about = " of ".join(filter(None, frame.subject))
            self._agent.counters.note(f"command: {about}: a later one than an operator's is known")
            text = OVERRULED.format(about)
            self._agent.notices.alarm(
                f"command {about}", text, now_us=now_us, lasts_us=OVERRULED_US
            )
        self._repeating.hear(frame.subject, now_us, is_newest=is_newest)
        self.due_us = self._repeating.next_us

    def _note_own(self) -> None:
        """Note for people that this device is retired, as long as it is."""
        me, notices = self._agent.replica.device, self._agent.notices
        if me in self.retired:
            notices.begin("retired", retired_notice(me, self._agent.topics.fleet))
        else:
            notices.end("retired")

    def _renew_control(self) -> None:
        self.control = self.known.control.mark
        for on_control in self._on_control:
            on_control(self.known.control)

    def connected(self, now_us: int) -> None:
        self._repeating.begin(self.known.subjects, now_us)

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Repeat the commands that were not received for some time."""
        for subject in self._repeating.due(now_us):
            self._sent += 1
            frame = CommandFrame.of(self._agent.replica, self._sent, subject, self.known)
            yield Publication.of(frame, self._agent.topics)
        self.due_us = self._repeating.next_us

    def take_changes(self) -> Changes | None:
        taken, self._changes, self.is_changed = self._changes, Changes(), False
        return taken

    def report(self) -> dict[str, Any]:
        control = {"control": self.control} if self._parameters else {}
        return {"retired": list(self.retired), **control}
