"""Who is retired, as this device knows it; it repeats operators' commands, so that none is lost."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any

from crdts import Member, Membership, Version
from device_agent.agent import Agent
from device_agent.changes import Changes
from device_agent.facts import Facts
from device_agent.parts import FrameRefusedError, Handler, Part, Publication
from lasp_edge.protocol.admission import Known, command_refusal
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import MemberFrame
from lasp_edge.protocol.repeating import Repeating


class Members(Part):
    """The fleet's membership as a device holds it.

    Args:
        agent: what all parts share.
        tell: is given the membership, and of which devices it says something new, now and whenever
            it changes.

    Attributes:
        membership: what operators last said of each device.
    """

    name = "members"

    def __init__(self, agent: Agent, tell: Callable[[Membership, Iterable[str]], None]) -> None:
        self._agent = agent
        self.membership = agent.facts.membership or Membership()
        self._repeating = Repeating(Random(agent.replica.nonce + 1))
        self._sent = 0
        self._changed: dict[str, Member] = {}
        self._retired: dict[str, Version] | None = None
        self._tell = tell
        tell(self.membership, sorted(self.membership.entries))

    @property
    def retired(self) -> dict[str, Version]:
        """Device -> the version up to which it counts, of the retired; not to be changed."""
        if self._retired is None:
            self._retired = self.membership.retired
        return self._retired

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {MemberFrame: self._receive}

    def _receive(self, frame: MemberFrame, now_us: int) -> None:
        """Join a command."""
        command, device = frame.membership(), frame.about
        reason = command_refusal(frame, Known(membership=self.membership))
        if reason is not None:
            raise FrameRefusedError(f"member: {reason}")
        known = self.membership.entries.get(device)
        if known is not None and command <= self.membership:
            self._repeating.hear(device, now_us, is_newest=known == command.entries[device])
            return
        self.membership |= command
        self._changed[device] = self.membership.entries[device]
        self._retired = None
        self._tell(self.membership, (device,))
        self._repeating.hear(device, now_us, is_newest=True)

    def connected(self, now_us: int) -> None:
        self._repeating.begin(self.membership.entries, now_us)

    def take_changes(self) -> Changes | None:
        if not self._changed:
            return None
        changed, self._changed = self._changed, {}
        return Changes(facts=Facts(membership=Membership(changed)))

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Repeat the commands that were not heard for some time."""
        for device in self._repeating.due(now_us):
            self._sent += 1
            member = self.membership.entries[device]
            frame = MemberFrame.of(self._agent.replica, self._sent, device, member)
            yield Publication.of(frame, self._agent.topics)

    def report(self) -> dict[str, Any]:
        return {"retired": list(self.retired)}
