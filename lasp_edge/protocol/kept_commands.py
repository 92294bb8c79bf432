"""What operators said and a sink keeps for ever, repeated as long as nobody else does.

A broker forgets what it retained, and devices lose their stores. Where both happen to a fleet of
one device, its sinks alone know what an operator said; and they take no promise of a device that
knows less. See `lasp_edge.protocol.repeating`.
"""

from collections.abc import Iterator
from random import Random

from crdts import ControlLog, Membership, Replica
from lasp_edge.protocol.control import ControlFrame
from lasp_edge.protocol.frames import MemberFrame
from lasp_edge.protocol.repeating import Repeating

_BETWEEN = "\0"
"""Stands between a parameter and its scope."""


class KeptCommands:
    """When a sink repeats what operators said.

    Args:
        sink: the id of its store, which tells its repetitions from those of others.
    """

    def __init__(self, sink: str) -> None:
        self._members = Repeating(Random(sink))
        self._parameters = Repeating(Random(f"{sink} parameters"))
        self._sent = 0

    def begin(self, membership: Membership, log: ControlLog, now_us: int) -> None:
        """Note a new connection: the broker may have lost all of it."""
        self._members.begin(membership.entries, now_us)
        self._parameters.begin(map(_BETWEEN.join, log.lanes()), now_us)

    def hear_member(self, device: str, now_us: int, *, is_newest: bool) -> None:
        """Note that a command about a device was heard, the newest one or an older one."""
        self._members.hear(device, now_us, is_newest=is_newest)

    def hear_parameter(self, frame: ControlFrame, log: ControlLog, now_us: int) -> None:
        """Note what was heard of a parameter; the log has it already."""
        is_newest = frame.log() == log.of(frame.about, frame.scope)
        subject = _BETWEEN.join((frame.about, frame.scope))
        self._parameters.hear(subject, now_us, is_newest=is_newest)

    def due(
        self, sender: Replica, membership: Membership, log: ControlLog, now_us: int
    ) -> Iterator[MemberFrame | ControlFrame]:
        """Yield what was not heard for some time, for everybody to hear."""
        for device in self._members.due(now_us):
            self._sent += 1
            yield MemberFrame.of(sender, self._sent, device, membership.entries[device])
        for subject in self._parameters.due(now_us):
            self._sent += 1
            parameter, _, scope = subject.partition(_BETWEEN)
            yield ControlFrame.of(sender, self._sent, parameter, scope, log)
