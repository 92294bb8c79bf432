"""The devices of a fleet, the operators' commands, and the devices that have received them.

A device is known by its presence, its beats and its retained variables. Its newest incarnation
counts, and of that one's beats the one with the greatest pane seq.

    >>> devices = KnownDevices(Topics("greenhouse"), parameters={"offset"})
    >>> beat = BeatFrame(Replica(2, 7, "attic"), 5, (), False, (), seq=60, floor_us=60)
    >>> _ = devices.take(devices.topics.of("beat", "attic"), beat.encode())
    >>> devices.seen("attic").seq
    60
    >>> devices.has_all_entries("attic"), devices.floors_us
    (True, {'attic': 60})
    >>> log = devices.commands.control.set("offset", "", 600, "3", "ann")
    >>> devices.commands |= CommandLog(control=log)
    >>> devices.lacking_entries
    ['attic']
"""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from crdts import Replica
from lasp_edge.protocol.admission import Known
from lasp_edge.protocol.commands import CommandFrame, CommandLog, command_refusal
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame, VariableFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber, decode
from lasp_edge.protocol.topics import Topics, level, shard_of
from lasp_edge.units import SECOND_US


class Sighting(NamedTuple):
    """A device's newest incarnation.

    Attributes:
        seq: its newest pane entry; None before its first beat.
        runs: the digests of its program and its release, as its presence states.
        beat: the newest beat of the device, also of an earlier incarnation.
    """

    replica: Replica
    online: bool
    seq: int | None
    runs: tuple[str, str] = ("", "")
    beat: BeatFrame | None = None


class KnownDevices:
    """The devices of a fleet that sent something since the command started, or left it retained.

    Args:
        topics: of the fleet.
        parameters: of the program; entries about others, of a former program, are left aside.

    Attributes:
        commands: those of operators, as far as they were received.
        online_lives: device -> its incarnations that were connected.
    """

    def __init__(self, topics: Topics, parameters: Collection[str] = ()) -> None:
        self.topics = topics
        self.commands = CommandLog()
        self.online_lives: dict[str, set[Replica]] = {}
        self._parameters = parameters
        self._seen: dict[str, Sighting] = {}

    def take(self, topic: str, payload: bytes) -> Frame | None:
        """Take a frame, and return it; None for one that operators leave aside.

        Raises:
            ValueError: it is no frame of this fleet.
        """
        frame, address = decode(payload), self.topics.address(topic)
        kind = FRAME_KINDS[frame.kind]
        known = Known(waited=True)
        if not kind.subscribers & Subscriber.OPERATOR or (kind.topic, frame.about) != address:
            return None
        if kind.guard(frame, known) is not None:
            return None
        getattr(self, kind.handler)(frame)
        return frame

    def take_command(self, frame: CommandFrame) -> None:
        """Join an operator's command."""
        if command_refusal(frame, self.commands, self._parameters) is None:
            self.commands |= frame.commands()

    def take_presence(self, frame: PresenceFrame) -> None:
        """Note whether a device is connected."""
        self._note(frame.sender, online=frame.online, runs=(frame.program, frame.release))
        if frame.online:
            self.online_lives.setdefault(frame.about, set()).add(frame.sender)

    def take_beat(self, frame: BeatFrame) -> None:
        """Note a device's newest pane entry, its log of parameters and its floor."""
        self._note(frame.sender, online=True, seq=frame.seq)
        seen = self._seen[frame.sender.device]
        if seen.beat is None or _order(frame) > _order(seen.beat):
            self._seen[frame.sender.device] = seen._replace(beat=frame)

    def take_entries(self, frame: VariableFrame) -> None:
        """Note that there was this replica of a device."""
        self._note(frame.sender)

    def _note(
        self,
        replica: Replica,
        *,
        online: bool | None = None,
        seq: int | None = None,
        runs: tuple[str, str] | None = None,
    ) -> None:
        """Take the facts that a frame states of a replica; None stands for a missing one."""
        known = self._seen.get(replica.device)
        if known is None or replica > known.replica:
            known = Sighting(replica, online=False, seq=None, beat=known and known.beat)
        if replica == known.replica:
            here = known.online if online is None else online
            seqs = [each for each in (known.seq, seq) if each is not None]
            known = Sighting(replica, here, max(seqs, default=None), runs or known.runs, known.beat)
        self._seen[replica.device] = known

    # Who is there

    @property
    def names(self) -> list[str]:
        """The devices that sent something or that a command names, sorted."""
        return sorted({*self._seen, *self.commands.membership.entries})

    @property
    def counting(self) -> list[str]:
        """The devices that are not retired, sorted."""
        return [device for device in self.names if device not in self.commands.membership.retired]

    def seen(self, device: str) -> Sighting | None:
        """Return the newest incarnation of a device; None if it sent nothing."""
        return self._seen.get(device)

    def is_online(self, device: str) -> bool:
        """Return whether a device is connected: then it answers."""
        seen = self._seen.get(device)
        return seen is not None and seen.online

    @property
    def awaited(self) -> list[str]:
        """The devices that count, are connected, and sent no beat yet."""
        return [each for each in self.counting if self.is_online(each) and self.awaits_beat(each)]

    def awaits_beat(self, device: str) -> bool:
        """Return whether a beat may still come: the device is connected, or is not known yet."""
        seen = self._seen.get(device)
        return seen is None or (seen.online and seen.seq is None)

    @property
    def mostly_runs(self) -> tuple[str, str]:
        """The digest of the program and the release that most devices run."""
        counts = Counter(seen.runs for _, seen in sorted(self._seen.items()) if seen.runs[0])
        return max(counts, key=lambda runs: (counts[runs], runs), default=("", ""))

    # Parameters

    def has_all_entries(self, device: str) -> bool:
        """Return whether a device has received all entries about parameters that are known here."""
        seen = self._seen.get(device)
        known = self.commands.control.mark
        return seen is not None and seen.beat is not None and seen.beat.control == known

    @property
    def lacking_entries(self) -> list[str]:
        """The devices that count, and that have not received all entries about parameters."""
        return [device for device in self.counting if not self.has_all_entries(device)]

    @property
    def floors_us(self) -> dict[str, int]:
        """Device -> since when it has all its readings, of those that count and reported it."""
        beats = self._beats.items()
        return {device: beat.floor_us for device, beat in beats if beat.floor_us is not None}

    def ahead_us(self, now_us: int) -> dict[str, int]:
        """Return how far clocks are ahead of `now_us`, of devices that sent a beat and trust them.

        A beat's clock is in whole seconds, and some pass until a command asks for this.
        """
        clocks = {device: beat.clock_s for device, beat in self._beats.items()}
        return {at: each * SECOND_US - now_us for at, each in clocks.items() if each is not None}

    @property
    def _beats(self) -> dict[str, BeatFrame]:
        """Device -> its newest beat, of those that count and sent one."""
        found = ((device, self._seen.get(device)) for device in self.counting)
        return {device: seen.beat for device, seen in found if seen and seen.beat is not None}


def filter_of(topics: Topics, device: str) -> str:
    """Return the filter for all that concerns one device."""
    return f"{topics.root}/{shard_of(device)}/+/{level(device)}/#"


def _order(beat: BeatFrame) -> tuple[Replica, int]:
    return beat.sender, beat.number
