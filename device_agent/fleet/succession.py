"""Which replica this device is: it takes a later incarnation where it meets one, and finds clones.

A device whose store was lost, or is an old copy, starts with an incarnation that it had before. The
broker remembers the later one, so the device becomes a replica later than that. If
that one goes on to speak, it is alive: the device was cloned, and an alarm is counted.
"""

from collections.abc import Callable, Mapping

from crdts import Replica
from crdts.replica import INCARNATIONS
from device_agent.agent import Agent
from device_agent.changes import Changes
from device_agent.parts import Handler, Part
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.admission import is_too_far_ahead
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame, VariableFrame

MOST_SUCCESSIONS = 8
"""Incarnations that one process takes, at most: two living clones would outbid each other without
end, and the lives that a lost store forgot are rarely more than one or two."""


class Succession(Part):
    """The replica that this device is.

    Args:
        agent: what all parts share.
        become: lets all parts go on as a later replica.
    """

    name = "succession"

    def __init__(self, agent: Agent, become: Callable[[Replica], None]) -> None:
        self._agent = agent
        self._become = become
        self._is_known = any(
            sink.store for sink in agent.facts.sinks or ()
        )  # a lander has acknowledged frames of it
        self._met: list[int] = []
        self._changed = True

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {
            VariableFrame: self._meet_sender,
            PresenceFrame: self._meet_sender,
            AckFrame: self._be_known,
            BeatFrame: self._look_for_clone,
        }

    def _meet_sender(self, frame: Frame, _now_us: int) -> None:
        self._meet(frame.sender)

    def _be_known(self, frame: AckFrame, _now_us: int) -> None:
        self._is_known |= frame.about == self._agent.replica.device

    def _look_for_clone(self, frame: BeatFrame, _now_us: int) -> None:
        # A beat of an earlier incarnation may come late. One of a later incarnation, or of this one
        # with another nonce, is sent by another process with this device's name.
        other, me = frame.sender, self._agent.replica
        is_later = other.device == me.device and other.incarnation >= me.incarnation
        if is_later and other.nonce != me.nonce:
            self._agent.counters.note("clone_alarms")

    def _meet(self, other: Replica) -> None:
        """Become later than a later replica of this device."""
        me = self._agent.replica
        if other.device != me.device or other <= me:
            return
        if other.nonce in self._met:
            self._agent.counters.note("clone_alarms")
        if not self._is_plausible(other.incarnation):
            self._agent.counters.note("frame: own incarnation too far ahead")
        elif len(self._met) < MOST_SUCCESSIONS:
            self._met.append(other.nonce)
            self._become(Replica(other.incarnation + 1, me.nonce, me.device))

    def _is_plausible(self, incarnation: int) -> bool:
        if incarnation + 1 >= INCARNATIONS:
            return False
        # A new store knows no incarnation to compare with. Once a lander has taken what it sent,
        # it has also heard everything that the broker retained.
        knows_itself = self._is_known or self._agent.replica.incarnation > 1
        return not (knows_itself and is_too_far_ahead(incarnation, self._agent.replica.incarnation))

    def succeed(self) -> None:
        self._changed = True

    def take_changes(self) -> Changes | None:
        if not self._changed:
            return None
        self._changed = False
        return Changes(replica=self._agent.replica)
