"""The operator: commands devices, changes parameters, and repeats that until it is known."""

from collections.abc import Iterable, Iterator

from crdts import ControlLog, ControlPlace, Membership, Replica, Version
from crdts.membership import NEVER
from lasp_edge.protocol.commands import CommandFrame, CommandLog, Subject
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US
from simulations.world.decoding import decoded
from simulations.world.hostile import FAR
from simulations.world.links import TO_BROKER, LegMessage

OPERATOR = Replica(1, 1, "operator")
_BEAT = FRAME_KINDS[BeatFrame.kind].topic


class SimulatedOperator:
    """An operator who retires and admits devices, and sets parameters.

    Attributes:
        commands: all so far.
    """

    def __init__(self, topics: Topics) -> None:
        self.commands = CommandLog()
        self._topics = topics
        self._newest: dict[str, Version] = {}
        self._pending: list[CommandFrame] = []
        self._sent = 0

    def hear(self, topic: str, payload: bytes) -> None:
        """Note the newest version of its panes that a device reports in its beats."""
        try:
            beat = decoded(payload) if self._topics.address(topic).kind == _BEAT else None
        except ValueError:
            return  # no frame of this fleet
        if type(beat) is BeatFrame and topic_of(beat, self._topics) == topic:
            if beat.sender.incarnation >= FAR:
                return  # forged, and no reader believes it
            reported = Version.of(beat.sender, beat.seq)
            self._newest[beat.about] = max(reported, self._newest.get(beat.about, NEVER))

    def retire(self, device: str) -> None:
        """Retire a device at the newest version that it reported."""
        at = self._newest.get(device, NEVER)
        self._command(device, self.commands.membership.retire(device, at))

    def admit(self, device: str) -> None:
        """Let a device count again."""
        self._command(device, self.commands.membership.admit(device))

    def repeat_all(self) -> None:
        """Give all commands on devices again: whoever knew them may have lost them."""
        subjects = [(device,) for device in sorted(self.commands.membership.entries)]
        self._pending = list(map(self._frame, subjects))

    def _command(self, device: str, command: Membership) -> None:
        self.commands |= CommandLog(command)
        self._pending.append(self._frame((device,)))

    def _frame(self, subject: Subject) -> CommandFrame:
        self._sent += 1
        return CommandFrame.of(OPERATOR, self._sent, subject, self.commands)

    def set(
        self, place: ControlPlace, value: str | None, now_us: int, *, knows_log: bool = True
    ) -> ControlLog:
        """Return the entry that sets a parameter, as of a machine whose clock is right.

        Without the log, as on a machine that reaches no broker, it is numbered by the clock alone.
        """
        known = self.commands.control if knows_log else ControlLog()
        return known.set(*place, value, OPERATOR.device, least=now_us // SECOND_US)

    def publish(self, entry: ControlLog) -> None:
        """Give an entry to the fleet."""
        self.commands |= CommandLog(control=entry)

    def repeated(
        self, landers: Iterable[CommandLog], devices: Iterable[CommandLog]
    ) -> Iterator[LegMessage]:
        """Yield the commands that a lander, or every device, does not know yet."""
        landed, held = list(landers), list(devices)

        def is_unknown(command: CommandLog) -> bool:
            return not all(command <= one for one in landed) or not any(
                command <= one for one in held
            )

        self._pending = [each for each in self._pending if is_unknown(each.commands())]
        yield from map(self._message, self._pending)
        for lane in self.commands.control.lanes():
            if is_unknown(self.commands.about(lane)):
                yield self._message(self._frame(lane))

    def _message(self, frame: Frame) -> LegMessage:
        return LegMessage(TO_BROKER, topic_of(frame, self._topics), frame.encode(), retain=True)
