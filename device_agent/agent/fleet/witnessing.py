"""The other devices' lives: whose frames this device takes, and for whom it vouches.

It answers hellos politely. Each device that hears one has a rank by its hash with the challenge,
and only the first few of those that sent a beat lately answer; with each repetition, four times as
many. A device that beats as an older replica than a known one is asked to say hello, by the same
few. Of a first contact with an unlikely incarnation it asks itself what the others know.

Source: David Thaler, Chinya Ravishankar, "Using Name-Based Mappings to Increase Hit Rates",
IEEE/ACM Transactions on Networking 6(1), 1998 (rendezvous hashing).
"""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final
from zlib import crc32

from device_agent.agent.agent import Agent
from device_agent.agent.fleet.fence import Fence
from device_agent.agent.parts import Handler, Part
from lasp_edge.protocol.admission import FIRST_CONTACT_HELD, HELD, sender_refusal
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import CHALLENGES, HINT, HelloFrame, VouchFrame
from lasp_edge.protocol.frames import BeatFrame, VariableFrame
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.limits import MEMBERS
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.witness import Witness
from lasp_edge.timers import NEVER_US
from lasp_edge.units import SECOND_US

POLITE: Final = 4
"""Devices that answer the first hello, about; four times as many each time it is repeated: the
answer of one of four is lost hardly ever, and all of a large fleet's would be a storm."""
ALIVE_US: Final = 60 * SECOND_US
"""Microseconds without a beat after which a device is not counted upon to answer."""
HINT_US: Final = 20 * SECOND_US
"""Least time in microseconds between two hints to one device: late beats look like old ones."""
ASK_US: Final = 10 * SECOND_US
"""Microseconds between two questions about the devices that are held back."""
MOST_WAITING: Final = 100
"""Answers, hints and questions that wait for the next tick, at most; the rest is asked again."""


class Witnessing(Part):
    """The other devices' lives, as this one knows them.

    Args:
        agent: what all parts share.
        fence: the replica that this device is, and its own progress.

    Attributes:
        witness: the lives, and the progress of their sources.
    """

    name = "witness"

    def __init__(self, agent: Agent, fence: Fence) -> None:
        self._agent, self._fence = agent, fence
        self.witness = Witness(MEMBERS)
        self._hellos: dict[tuple[str, str], HelloFrame] = {}
        self._hints: dict[str, None] = {}
        self._hinted_us: dict[str, int] = {}
        self._held: dict[str, int] = {}  # device -> challenge of the hello about it
        self._ask_us: int | None = None
        self._random = Random(agent.replica.nonce + 3)
        self._sent = 0

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {
            HelloFrame: self._hear_hello,
            VouchFrame: self._hear_vouch,
            BeatFrame: self._hear_beat,
            VariableFrame: self._hear,
        }

    def refusal(self, frame: Frame, now_us: int) -> str | None:
        device = frame.sender.device
        kind = FRAME_KINDS[frame.kind]
        if kind.guard is not sender_refusal:
            return None
        if device == self._agent.replica.device:
            return None
        known = self.witness.known(device, now_us, nonce=frame.sender.nonce)
        reason = sender_refusal(frame, known)
        if reason in HELD and not kind.retained:  # what a broker keeps may be old
            self.witness.hold(frame.sender, now_us)
        if reason == FIRST_CONTACT_HELD and len(self._held) < MOST_WAITING:
            self._held.setdefault(device, self._random.randrange(1, CHALLENGES))
        return reason

    def _hear(self, frame: Frame, now_us: int) -> None:
        if frame.sender.device != self._agent.replica.device:
            self.witness.take(frame, now_us)
            self._held.pop(frame.sender.device, None)

    def _hear_beat(self, frame: BeatFrame, now_us: int) -> None:
        device = frame.sender.device
        known = self.witness.of(device)
        self._hear(frame, now_us)
        if known is None or frame.sender >= known.replica or len(self._hints) >= MOST_WAITING:
            return
        hinted_us = self._hinted_us.get(device)
        waits = hinted_us is not None and hinted_us <= now_us < hinted_us + HINT_US
        if not waits and self._is_chosen(HINT, device, POLITE, now_us):
            self._hints[device] = None
            self._hinted_us[device] = now_us

    def _hear_hello(self, frame: HelloFrame, now_us: int) -> None:
        """Answer a hello with the next tick, if this device is one of those that answer."""
        asker, subject = frame.sender, frame.about
        me = self._agent.replica
        if asker.nonce == me.nonce or len(self._hellos) >= MOST_WAITING:
            return  # the own hello
        if subject != me.device:
            if self.witness.of(subject) is None:
                return
            wanted = POLITE ** min(frame.attempt, 7)
            if not self._is_chosen(frame.challenge, subject, wanted, now_us):
                return
        self._hellos[asker.device, subject] = frame

    def _is_chosen(self, challenge: int, subject: str, wanted: int, now_us: int) -> bool:
        """Return whether this device is one of the first `wanted` of those that may answer."""
        mine = _rank(challenge, self._agent.replica.device)
        before = 0
        for device in self.witness.heard_since(max(1, now_us - ALIVE_US)):
            before += device != subject and _rank(challenge, device) < mine
        return before < wanted

    def _hear_vouch(self, frame: VouchFrame, _now_us: int) -> None:
        """Learn what others know of a device that is held back."""
        subject = frame.subject
        asked = self._held.get(subject.device)
        if asked is None or frame.challenge != asked or not subject.incarnation:
            return
        self.witness.learn(subject, frame.reports)
        del self._held[subject.device]

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Answer, hint, and ask."""
        for frame in self._frames(now_us):
            yield Publication.of(frame, self._agent.topics)
            self._sent += 1
        self.due_us = NEVER_US if self._ask_us is None or not self._held else self._ask_us + ASK_US

    def _frames(self, now_us: int) -> Iterator[Frame]:
        me = self._agent.replica
        while self._hellos:
            _, hello = self._hellos.popitem()
            if hello.about == me.device:
                highs = self._fence.source_highs()
                yield VouchFrame.of(me, self._sent + 1, hello, me, me, highs)
            else:
                yield self.witness.vouch(me, self._sent + 1, hello)
        while self._hints:
            device, _ = self._hints.popitem()
            yield VouchFrame.hint(me, self._sent + 1, device)
        asked_us = self._ask_us
        if self._held and (asked_us is None or not asked_us <= now_us < asked_us + ASK_US):
            self._ask_us = now_us
            for device, challenge in sorted(self._held.items()):
                yield HelloFrame(me, self._sent + 1, device, challenge, 1)

    def report(self) -> dict[str, Any]:
        return {"held_back": sorted(self._held)}


def _rank(challenge: int, device: str) -> int:
    return crc32(f"{challenge}:{device}".encode())
