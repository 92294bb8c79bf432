"""What an operator hears of a fleet: who is there, in which life, and who was retired.

A device is known by its presence, its beats and its retained variables. Of several lives the newest
counts, and of a life's beats the one with the greatest pane seq. It is pure: frames go in, and out
come the words that retire or admit a device.

    >>> roster = Roster(Topics("greenhouse"), nonce=1)
    >>> beat = BeatFrame(Replica(2, 7, "attic"), 5, None, False, (), seq=60)
    >>> roster.hear(roster.topics.beat("attic"), beat.encode())
    >>> roster.retiring("attic").version
    Version(incarnation=2, nonce=7, seq=60)
"""

from typing import NamedTuple

from crdts import Membership, Replica, Version
from crdts.membership import NEVER
from crdts.replica import SEQS
from device_agent.fleet.peers import LONGEST_JUMP
from lasp_edge.protocol.frames import BeatFrame, MemberFrame, PresenceFrame, VariableFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.topics import Topics, level, shard_of

OPERATOR = "operator"
"""The name under which commands about a fleet send; only `about` says which device they concern."""
WHOLE_LIFE = SEQS - 1
"""The seq that lets everything of a life count, whatever it was."""


class Seen(NamedTuple):
    """What was heard of a device's newest life; `seq` is None where no beat of it came."""

    replica: Replica
    online: bool
    seq: int | None


class Roster:
    """The devices of a fleet, as far as they were heard.

    Args:
        topics: of the fleet.
        nonce: 32 random bits of this command's process.

    Attributes:
        membership: what operators last said.
    """

    def __init__(self, topics: Topics, nonce: int) -> None:
        self.topics = topics
        self._sender = Replica.checked(1, nonce, OPERATOR)
        self._sent = 0
        self.membership = Membership()
        self._seen: dict[str, Seen] = {}

    def hear(self, topic: str, payload: bytes) -> None:
        """Take a message of the fleet."""
        try:
            frame, address = decode(payload), self.topics.address(topic)
        except ValueError:  # a stranger's: a guest leaves it aside, the agents count it
            return
        if address.device != frame.about:
            return
        if isinstance(frame, MemberFrame):
            self._take(frame)
        elif isinstance(frame, PresenceFrame):
            self._note(frame.sender, online=frame.online)
        elif isinstance(frame, BeatFrame):
            self._note(frame.sender, online=True, seq=frame.seq)
        elif isinstance(frame, VariableFrame):
            self._note(frame.sender)

    def topics_of(self, device: str) -> str:
        """Return the filter for all that concerns one device."""
        return f"{self.topics.root}/{shard_of(device)}/+/{level(device)}/#"

    @property
    def devices(self) -> list[str]:
        """All that were heard, or spoken of by an operator, sorted."""
        return sorted({*self._seen, *self.membership.entries})

    def seen(self, device: str) -> Seen | None:
        """Return what was heard of a device."""
        return self._seen.get(device)

    def awaits_beat(self, device: str) -> bool:
        """Return whether the device may yet say how far it is: it is there, or was not heard."""
        seen = self._seen.get(device)
        return seen is None or (seen.online and seen.seq is None)

    def retiring(self, device: str, seq: int | None = None) -> MemberFrame:
        """Return the word that retires a device.

        Args:
            device: its name.
            seq: up to which pane entry of its newest life it counts. Where it is None, up to what
                the device last said it has; where it said nothing, all of that life counts, so that
                nothing that may have landed is ever taken back; of a device that was never heard
                nothing does.
        """
        seen = self._seen.get(device)
        if seen is None:
            version = NEVER
        else:
            known = WHOLE_LIFE if seen.seq is None else seen.seq
            version = Version.of(seen.replica, known if seq is None else seq)
        return self._word(device, self.membership.retire(device, version))

    def admitting(self, device: str) -> MemberFrame:
        """Return the word that admits a device."""
        return self._word(device, self.membership.admit(device))

    def _word(self, device: str, delta: Membership) -> MemberFrame:
        self._sent += 1
        return MemberFrame.of(self._sender, self._sent, device, delta.entries[device])

    def _take(self, frame: MemberFrame) -> None:
        """Join a word, unless it is one that the agents leave aside, too."""
        known = self.membership.entries.get(frame.about)
        if frame.control - (known.control if known else 0) <= LONGEST_JUMP:
            self.membership |= frame.membership()

    def _note(
        self, replica: Replica, *, online: bool | None = None, seq: int | None = None
    ) -> None:
        """Take what a message says of a life; None for what it does not say."""
        known = self._seen.get(replica.device)
        if known is None or replica > known.replica:
            known = Seen(replica, online=False, seq=None)
        if replica == known.replica:
            here = known.online if online is None else online
            seqs = [each for each in (known.seq, seq) if each is not None]
            known = Seen(replica, here, max(seqs, default=None))
        self._seen[replica.device] = known
