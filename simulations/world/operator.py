"""The operator: commands devices, changes parameters, and repeats that until it is known."""

from collections.abc import Iterable, Iterator

from crdts import ControlLog, Membership, Replica, Version
from crdts.membership import NEVER
from lasp_edge.protocol.control import ControlFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, MemberFrame
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.topics import Topics, topic_of
from simulations.world.decoding import decoded
from simulations.world.links import TO_BROKER, LegMessage

OPERATOR = Replica(1, 1, "operator")
_BEAT = FRAME_KINDS[BeatFrame.kind].topic


class SimulatedOperator:
    """Commands which devices count, and says what parameters are worth.

    Attributes:
        membership: all commands so far.
        control: all that was said of parameters.
    """

    def __init__(self, topics: Topics) -> None:
        self.membership, self.control = Membership(), ControlLog()
        self._topics = topics
        self._newest: dict[str, Version] = {}
        self._pending: list[MemberFrame] = []
        self._commands = 0

    def hear(self, topic: str, payload: bytes) -> None:
        """Note the newest version of its panes that a device reports in its beats."""
        try:
            beat = decoded(payload) if self._topics.address(topic).kind == _BEAT else None
        except ValueError:
            return  # no frame of this fleet
        if isinstance(beat, BeatFrame) and topic_of(beat, self._topics) == topic:
            reported = Version.of(beat.sender, beat.seq)
            self._newest[beat.about] = max(reported, self._newest.get(beat.about, NEVER))

    def retire(self, device: str) -> None:
        """Retire a device at the newest version that it reported."""
        at = self._newest.get(device, NEVER)
        self._command(device, self.membership.retire(device, at))

    def admit(self, device: str) -> None:
        """Let a device count again."""
        self._command(device, self.membership.admit(device))

    def _command(self, device: str, command: Membership) -> None:
        self.membership |= command
        self._commands += 1
        member = command.entries[device]
        self._pending.append(MemberFrame.of(OPERATOR, self._commands, device, member))

    def say(self, parameter: str, scope: str, from_us: int, value: str | None) -> None:
        """Say what a parameter is worth from a time on, for a device or for all (scope "")."""
        self.control |= self.control.say(parameter, scope, from_us, value, OPERATOR.device)

    def repeated(
        self, landers: Iterable[Membership], devices: Iterable[Membership]
    ) -> Iterator[LegMessage]:
        """Yield the commands that a lander, or every device, does not know yet."""
        landed, held = list(landers), list(devices)
        self._pending = [
            command
            for command in self._pending
            if not all(command.membership() <= one for one in landed)
            or not any(command.membership() <= one for one in held)
        ]
        yield from map(self._message, self._pending)

    def repeated_entries(
        self, landers: Iterable[ControlLog], devices: Iterable[ControlLog]
    ) -> Iterator[LegMessage]:
        """Yield what was said of parameters that a lander, or every device, does not know yet."""
        landed, held = list(landers), list(devices)
        for lane in self.control.lanes():
            said = self.control.of(*lane)
            if not all(said <= one for one in landed) or not any(said <= one for one in held):
                self._commands += 1
                yield self._message(ControlFrame.of(OPERATOR, self._commands, *lane, said))

    def _message(self, frame: Frame) -> LegMessage:
        return LegMessage(TO_BROKER, topic_of(frame, self._topics), frame.encode(), retain=True)
