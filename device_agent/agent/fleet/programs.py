"""Devices that run another program or release than this one: they may never agree with it.

A device's program and release are in its retained presence, so they are known while it is away.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes
from device_agent.agent.facts import Facts
from device_agent.agent.parts import Handler, Part
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import PresenceFrame
from lasp_edge.protocol.limits import MEMBERS
from lasp_edge.release import RELEASE


class Programs(Part):
    """The programs of the other devices.

    Args:
        agent: what all parts share.
        retired: returns the devices that do not count.
    """

    name = "programs"

    def __init__(self, agent: Agent, retired: Callable[[], Collection[str]]) -> None:
        self._agent = agent
        self._retired = retired
        self._runs = agent.plan.digest, RELEASE
        before = agent.facts.other_programs or {}
        self._others = {device: runs for device, runs in before.items() if runs != self._runs}
        self._noted = dict(before)
        self.is_changed = agent.facts.program != agent.plan.name

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {PresenceFrame: self._hear}

    def _hear(self, frame: PresenceFrame, _now_us: int) -> None:
        device, runs = frame.about, (frame.program, frame.release)
        if device == self._agent.replica.device or not frame.program or runs == self._runs:
            self._others.pop(device, None)
        elif device in self._others or len(self._others) < MEMBERS:
            self._others[device] = runs

    @property
    def others(self) -> dict[str, tuple[str, str]]:
        """Devices that run something else and count -> (digest of the program, release)."""
        retired = self._retired()
        return {name: runs for name, runs in sorted(self._others.items()) if name not in retired}

    def take_changes(self) -> Changes | None:
        """Return whose store it is, once."""
        self.is_changed = False
        return Changes(facts=Facts(program=self._agent.plan.name))

    def take_notes(self) -> Changes | None:
        others = self.others
        if others == self._noted:
            return None
        self._noted = others
        return Changes(facts=Facts(other_programs=others))

    def report(self) -> dict[str, Any]:
        return {"other_programs": other_programs(self.others, self._runs)}


def other_programs(others: Mapping[str, tuple[str, str]], own: tuple[str, str]) -> dict[str, str]:
    """Return device -> words for what it runs, of those that run something else than `own`."""
    return {
        device: f"{'the same' if program == own[0] else 'another'} program "
        f"({program or 'unknown'}), release {release or 'unknown'}"
        for device, (program, release) in others.items()
        if (program, release) != own
    }
