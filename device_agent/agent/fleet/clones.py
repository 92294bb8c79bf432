"""The alarm that another process has this device's name."""

from device_agent.agent.agent import Agent
from device_agent.agent.notices import CLONED, CLONED_BY, CLONED_US
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import PresenceFrame
from lasp_edge.units import SECOND_US

CLONE_LEFT_US = 60 * SECOND_US
"""Microseconds after the end of a clone's connection in which there may be one: two clones that end
each other's connections connect again within a minute."""


class CloneAlarm:
    """Raises the alarm; it ends when no clone is met for long, or soon after it has disconnected.

    Args:
        agent: what all parts share.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._left: int | None = None

    def met(self, nonce: int, now_us: int, *, by: str = "") -> None:
        """Raise the alarm for a process of this name; others name one that has ended, too.

        Args:
            nonce: of that process.
            now_us: the driver's clock.
            by: who named it, and when; "": it was heard itself.
        """
        if not by and nonce == self._left:
            self._left = None
        lasts_us = CLONE_LEFT_US if nonce == self._left else CLONED_US
        self._agent.counters.note("clone_alarms")
        text = CLONED_BY.format(by) if by else CLONED
        self._agent.notices.alarm("clone", text, now_us=now_us, lasts_us=lasts_us)

    def look(self, frame: Frame, now_us: int) -> None:
        """Let the alarm end soon where the connection of that process has ended."""
        me, (_, nonce, device) = self._agent.replica, frame.sender
        is_its = device == me.device and nonce != me.nonce
        if is_its and isinstance(frame, PresenceFrame) and not frame.online:
            self._left = nonce
            self._agent.notices.shorten("clone", now_us=now_us, lasts_us=CLONE_LEFT_US)
