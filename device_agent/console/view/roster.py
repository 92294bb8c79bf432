"""A fleet as an operator's command sees it: which devices there are, and which are retired.

A device is known by its presence, its beats and its retained variables. Its newest incarnation
counts, and of that one's beats the one with the greatest pane seq. The module is pure: frames go
in, and out come the commands that retire or admit a device.

    >>> roster = Roster(Topics("greenhouse"), nonce=1)
    >>> beat = BeatFrame(Replica(2, 7, "attic"), 5, (), False, (), seq=60)
    >>> roster.hear(roster.topics.of("beat", "attic"), beat.encode())
    >>> roster.retiring("attic").version
    Version(incarnation=2, nonce=7, seq=60)
"""

from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from crdts import ControlLog, Membership, Replica, Version
from crdts.membership import NEVER
from crdts.replica import SEQS
from lasp_edge.protocol.admission import Known
from lasp_edge.protocol.commands import CommandFrame, CommandLog, Subject, command_refusal
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame, VariableFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber, decode
from lasp_edge.protocol.topics import Topics, level, shard_of

OPERATOR = "operator"
"""The name under which commands about a fleet send; only `about` says which device they concern."""
WHOLE_LIFE = SEQS - 1
"""The greatest seq: as the version of a retired device it lets all of that incarnation count."""


class Sighting(NamedTuple):
    """A device's newest incarnation; `seq` is its newest pane entry, None before its first beat.

    `runs` is the digest of its program and its release, as its presence said.
    """

    replica: Replica
    online: bool
    seq: int | None
    runs: tuple[str, str] = ("", "")


class Roster:
    """The devices of a fleet that sent something since the command started, or left it retained.

    Args:
        topics: of the fleet.
        nonce: 32 random bits of this command's process.
        parameters: of the program; the schedules of others, which a former program had, count for
            nobody.

    Attributes:
        sender: the replica in whose name this command sends.
        commands: those of operators, as far as they were received.
    """

    def __init__(self, topics: Topics, nonce: int, parameters: Collection[str] = ()) -> None:
        self.topics = topics
        self.sender = Replica.checked(1, nonce, OPERATOR)
        self._sent = 0
        self.commands, self._parameters = CommandLog(), parameters
        self._seen: dict[str, Sighting] = {}

    def hear(self, topic: str, payload: bytes) -> None:
        """Take a message of the fleet."""
        with suppress(Exception):  # no message may end a command; the agents count it
            self._take(topic, payload)

    def _take(self, topic: str, payload: bytes) -> None:
        frame, address = decode(payload), self.topics.address(topic)
        kind = FRAME_KINDS[frame.kind]
        known = Known(waited=True)
        if not kind.subscribers & Subscriber.OPERATOR or (kind.topic, frame.about) != address:
            return
        if kind.guard(frame, known) is None:
            getattr(self, kind.handler)(frame)

    @property
    def membership(self) -> Membership:
        """Which devices count."""
        return self.commands.membership

    @property
    def control(self) -> ControlLog:
        """The schedules of parameters."""
        return self.commands.control

    def take_command(self, frame: CommandFrame) -> None:
        """Join an operator's command."""
        if command_refusal(frame, self.commands, self._parameters) is None:
            self.commands |= frame.commands()

    def take_presence(self, frame: PresenceFrame) -> None:
        """Note whether a device is connected."""
        self._note(frame.sender, online=frame.online, runs=(frame.program, frame.release))

    def take_beat(self, frame: BeatFrame) -> None:
        """Note up to which pane entry a device has come."""
        self._note(frame.sender, online=True, seq=frame.seq)

    def take_entries(self, frame: VariableFrame) -> None:
        """Note that there was this replica of a device."""
        self._note(frame.sender)

    def topics_of(self, device: str) -> str:
        """Return the filter for all that concerns one device."""
        return f"{self.topics.root}/{shard_of(device)}/+/{level(device)}/#"

    @property
    def devices(self) -> list[str]:
        """The devices that sent something or that a command names, sorted."""
        return sorted({*self._seen, *self.membership.entries})

    def seen(self, device: str) -> Sighting | None:
        """Return what is known of a device; None if it sent nothing."""
        return self._seen.get(device)

    @property
    def mostly_runs(self) -> tuple[str, str]:
        """What most devices run: the digest of a program, and a release."""
        counts = Counter(seen.runs for _, seen in sorted(self._seen.items()) if seen.runs[0])
        return max(counts, key=lambda runs: (counts[runs], runs), default=("", ""))

    def awaits_beat(self, device: str) -> bool:
        """Return whether a beat may still come: the device is connected, or is not known yet."""
        seen = self._seen.get(device)
        return seen is None or (seen.online and seen.seq is None)

    def stands(self, frame: CommandFrame) -> bool:
        """Return whether nothing was received that overrides a command."""
        return self.commands.about(frame.subject) <= frame.commands()

    def retiring(self, device: str, seq: int | None = None) -> CommandFrame:
        """Return the command that retires a device.

        Args:
            device: its name.
            seq: the last pane entry of its newest incarnation that counts. Where it is None, the
                one that its last beat named; without a beat, all entries of that incarnation, so
                that nothing is taken back that may have landed; of an unknown device, none.
        """
        seen = self._seen.get(device)
        if seen is None:
            version = NEVER
        else:
            known = WHOLE_LIFE if seen.seq is None else seen.seq
            version = Version.of(seen.replica, known if seq is None else seq)
        return self.command((device,), CommandLog(self.membership.retire(device, version)))

    def admitting(self, device: str) -> CommandFrame:
        """Return the command that admits a device."""
        return self.command((device,), CommandLog(self.membership.admit(device)))

    def command(self, subject: Subject, known: CommandLog | None = None) -> CommandFrame:
        """Return the frame of a subject: of some commands, or of all that were received."""
        self._sent += 1
        return CommandFrame.of(self.sender, self._sent, subject, known or self.commands)

    def _note(
        self,
        replica: Replica,
        *,
        online: bool | None = None,
        seq: int | None = None,
        runs: tuple[str, str] | None = None,
    ) -> None:
        """Take what a frame says of a replica; None for what it does not say."""
        known = self._seen.get(replica.device)
        if known is None or replica > known.replica:
            known = Sighting(replica, online=False, seq=None)
        if replica == known.replica:
            here = known.online if online is None else online
            seqs = [each for each in (known.seq, seq) if each is not None]
            known = Sighting(replica, here, max(seqs, default=None), runs or known.runs)
        self._seen[replica.device] = known
