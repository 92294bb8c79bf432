"""Who is retired, as this device knows it; it repeats operators' commands, so that none is lost."""

from collections.abc import Callable, Iterable
from typing import Any

from crdts import Member, Membership, Version
from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes
from device_agent.agent.facts import Facts
from device_agent.agent.fleet.commands import OperatorCommands
from lasp_edge.protocol.admission import Known, command_refusal
from lasp_edge.protocol.frames import MemberFrame


class Members(OperatorCommands[Membership]):
    """The fleet's membership as a device holds it: what operators last said of each device.

    Args:
        agent: what all parts share.
        tell: is given the membership, and of which devices it says something new, now and whenever
            it changes.
    """

    name = "members"
    frame_kind = MemberFrame

    def __init__(self, agent: Agent, tell: Callable[[Membership, Iterable[str]], None]) -> None:
        super().__init__(agent, agent.facts.membership or Membership(), jitter=1)
        self._changed: dict[str, Member] = {}
        self.is_changed = False
        self._retired: dict[str, Version] | None = None
        self._tell = tell
        tell(self.membership, sorted(self.membership.entries))

    @property
    def membership(self) -> Membership:
        """What operators last said of each device."""
        return self.known

    @property
    def retired(self) -> dict[str, Version]:
        """Device -> the version up to which it counts, of the retired; not to be changed."""
        if self._retired is None:
            self._retired = self.membership.retired
        return self._retired

    @property
    def subjects(self) -> Iterable[str]:
        return self.known.entries

    def subject_of(self, frame: MemberFrame) -> str:
        return frame.about

    def said_by(self, frame: MemberFrame) -> Membership:
        return frame.membership()

    def known_of(self, subject: str) -> Membership:
        return Membership({subject: self.known.entries[subject]})

    def frame_of(self, number: int, subject: str) -> MemberFrame:
        member = self.known.entries[subject]
        return MemberFrame.of(self._agent.replica, number, subject, member)

    def refusal_of(self, frame: MemberFrame) -> str | None:
        reason = command_refusal(frame, Known(membership=self.membership))
        return None if reason is None else f"member: {reason}"

    def heard_of(self, subject: str) -> None:
        self._changed[subject] = self.known.entries[subject]
        self.is_changed = True
        self._retired = None
        self._tell(self.known, (subject,))

    def take_changes(self) -> Changes | None:
        changed, self._changed, self.is_changed = self._changed, {}, False
        return Changes(facts=Facts(membership=Membership(changed)))

    def report(self) -> dict[str, Any]:
        return {"retired": list(self.retired)}
