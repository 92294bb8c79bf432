"""Who is retired, as this device knows it, and how operators' commands are kept alive.

An operator retires or admits a device with one command and is gone; brokers lose retained messages.
So every device that knows a command repeats it when it has not heard it for some time. Each waits a
random time, so that of many devices about one repeats it and the others hear it.

Source: Levis, Patel, Culler and Shenker, "Trickle: A Self-Regulating Algorithm for Code Propagation
and Maintenance in Wireless Sensor Networks", NSDI 2004 (polite gossip).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any

from crdts import Member, Membership, Version
from device_agent.agent import Agent
from device_agent.changes import Changes
from device_agent.clock import is_time
from device_agent.facts import Facts
from device_agent.parts import FrameRefusedError, Handler, Part, Publication
from device_agent.settings import SECOND_US
from lasp_edge.protocol.admission import Known, command_refusal
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import MemberFrame

REPEAT_US = 60 * SECOND_US
"""Least time in which a command was not heard before it is repeated; at most twice that."""
CORRECT_US = 2 * SECOND_US
"""The same where an older command was heard: somebody does not know the newer one."""


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
        self._jitter = Random(agent.replica.nonce + 1)
        self._due_us: dict[str, int] = {}
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
            same = known == command.entries[device]
            self._wait(device, now_us, REPEAT_US if same else CORRECT_US)
            return
        self.membership |= command
        self._changed[device] = self.membership.entries[device]
        self._retired = None
        self._tell(self.membership, (device,))
        self._wait(device, now_us, REPEAT_US)

    def _wait(self, device: str, now_us: int, least_us: int) -> None:
        self._due_us[device] = now_us + round(least_us * self._jitter.uniform(1, 2))

    def connected(self, now_us: int) -> None:
        for device in sorted(self.membership.entries):
            self._wait(device, now_us, CORRECT_US)

    def take_changes(self) -> Changes | None:
        if not self._changed:
            return None
        changed, self._changed = self._changed, {}
        return Changes(facts=Facts(membership=Membership(changed)))

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Repeat the commands that were not heard for some time."""
        waiting = self._due_us.items()
        due = [each for each, due_us in waiting if is_time(now_us, due_us, 2 * REPEAT_US)]
        for device in sorted(due):
            self._wait(device, now_us, REPEAT_US)
            self._sent += 1
            member = self.membership.entries[device]
            frame = MemberFrame.of(self._agent.replica, self._sent, device, member)
            yield Publication.of(frame, self._agent.topics)

    def report(self) -> dict[str, Any]:
        return {"retired": list(self.retired)}
