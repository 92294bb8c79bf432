"""The fence: which replica this device is, by the answers of all that know.

Problem: a device whose store was lost, or is an older image, starts with an incarnation that it had
before. Its entries then look older than what the others hold of its later life, so their value
stays as it was, for ever; and readings that it reads again would count twice. What it published
itself is no help, for a broker forgets. Sketch:

1. Before it publishes anything else a new replica says hello, and repeats it. Landers answer, and
   of its peers some few (`device_agent.agent.fleet.witnessing`), with the newest replica of this
   device that they know and how far its sources had come.
2. A second after a lander answered it decides: it becomes a replica later than the greatest that
   the answers name, and what its store does not know of its sources is doubtful. A lander that
   received the hello of the later replica takes no panes of earlier lives from then on (see
   `lasp_edge.protocol.lives`), so a replica that has become later asks once more before it reads.
   How far its sources had come it believes of a lander, and of two peers that agree: one alone, who
   may lie, is believed only by a new store, where nobody else answers.
3. Peers hear less than landers: a beat now and then. Where only they answer, it waits for a lander
   until `fence_wait_us`, unless the program has no windows, decides by what they know, and goes on
   asking for a while. Where nobody answers it goes on alone after that time, says so, and goes on
   asking. Whenever it hears a lander that has not answered it yet, it asks again.
4. Sources with own times are not read before that, or before the same time has passed without a
   connection. Readings accepted before an answer made them doubtful are counted.
5. After each reconnect, and when it hears of a later life of itself, it asks again. Only an answer
   to its own hello changes anything, and one process never takes more than `INCARNATIONS_AHEAD`
   incarnations, unless its store is new and several vouch for more, or one goes on to do so for two
   minutes: who has taken a stranger for this device hears only what is later than that stranger.

If another replica of this device goes on to speak, it is alive: the device was cloned, and an alarm
is counted. Of one that only others hear, `device_agent.agent.fleet.claims` says who.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from random import Random
from typing import Any, Final

from crdts import Replica
from device_agent.agent.agent import Agent
from device_agent.agent.allowance import Allowance
from device_agent.agent.changes import Changes, Restored
from device_agent.agent.fleet.answers import MOST_VOUCHES, Answers, is_ignorant
from device_agent.agent.fleet.claims import Claims
from device_agent.agent.fleet.clones import CloneAlarm
from device_agent.agent.intake.peer_reports import KnownProgress
from device_agent.agent.parts import Handler, Part
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import (
    ATTEMPTS,
    CHALLENGES,
    HINT,
    HelloFrame,
    SourceHigh,
    VouchFrame,
)
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame, VariableFrame
from lasp_edge.protocol.publication import Publication
from lasp_edge.timers import NEVER_US, has_passed, is_time
from lasp_edge.units import SECOND_US

GATHER_US: Final = 1 * SECOND_US
"""Microseconds from a lander's answer until it is decided: another may know of a later life."""
ASK_US: Final = 1 * SECOND_US
"""Microseconds between two hellos of a process that waits for answers."""
ASK_AGAIN_US: Final = 10 * SECOND_US
"""Least time in microseconds between two rounds of hellos of a process that has decided."""
MOST_ASKED: Final = 5
"""Hellos of such a round to which a lander has answered, at most; the time between them doubles. A
process that is alone goes on asking, every half minute."""
MOST_ASKED_OF_LANDERS: Final = 10
"""Hellos of a round to which only peers have answered, at most: a minute of them."""
IGNORANT_US: Final = 60 * SECOND_US
"""Microseconds from the start in which a peer that knows no earlier life says nothing by that: it
may have started just now, too. A lander keeps what it hears."""
MOST_SUCCESSIONS: Final = 8
"""Incarnations that one process takes at once: two living clones outbid each other."""
SUCCEEDS_AGAIN_US: Final = 120 * SECOND_US
"""Microseconds until it may take one more. The other one may have ended meanwhile, and a lander
that starts takes nothing of this one before it is the later of both."""


class FenceState(Enum):
    """How a process came to publish."""

    ASKING = "asking"
    VOUCHED = "vouched"
    ALONE = "alone"
    NOT_ASKED = "not asked"


class Fence(Part):
    """The replica that this device is.

    Args:
        agent: what all parts share.
        restored: what the store holds.
        known: how far the sources have come.
        become: lets all parts go on as a later replica.

    Attributes:
        state: how it came to publish, or that it is still asking.
        is_asking: it says hello until it is answered, or has asked often enough.
        is_due_again: it is about to ask once more.
        answered_by: landers that have answered this process, some of them at least.
    """

    name = "fence"

    def __init__(
        self,
        agent: Agent,
        restored: Restored,
        known: KnownProgress,
        become: Callable[[Replica], None],
    ) -> None:
        self._agent, self._known, self._become = agent, known, become
        self._wait_us = agent.settings.fence_wait_us
        self.state = FenceState.ASKING if self._wait_us else FenceState.NOT_ASKED
        self.answered_by: set[str] = set()
        self._landers: set[str] = set()
        me = agent.replica
        self._answers = Answers({*restored.replicas, me[:2]}, me.incarnation)
        self._is_new = restored.incarnation == 0
        self._met: set[int] = set()
        self._clones = CloneAlarm(agent)
        self._claims = Claims(agent, self._answers, known.peer_reports, self._clones)
        self._random = Random(me.nonce + 2)
        self._successions = Allowance(
            SUCCEEDS_AGAIN_US,
            least_us=0,
            burst=MOST_SUCCESSIONS,
            reserve=0,
            offset_us=me.nonce % SUCCEEDS_AGAIN_US,  # two clones do not go on at the same time
        )
        self._needs_lander = bool(agent.plan.sent_streams)
        self._challenge = self._attempt = self._hellos = 0
        self.is_asking = self._is_landed = self._is_renewed = False
        self._began_us: int | None = None
        self._asked_us: int | None = None
        self._answered_us: int | None = None
        self._next_us = 0
        self._round_us: int | None = None
        self._waited = False
        self.is_due_again = False

    @property
    def closed(self) -> bool:
        return self.state is FenceState.ASKING

    @property
    def lets_read(self) -> bool:
        """Whether sources with own times may be read."""
        return self._waited or not (self.closed or self._is_renewed)

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {
            VouchFrame: self._take_vouch,
            HelloFrame: self._look_for_clone,
            BeatFrame: self._look_for_clone,
            VariableFrame: self._look_for_later_life,
            PresenceFrame: self._look_for_later_life,
            AckFrame: self._hear_lander,
        }

    def source_highs(self) -> tuple[SourceHigh, ...]:
        """Return the progress of this device's sources, for all others."""
        return self._known.highs.published()

    def connected(self, now_us: int) -> None:
        if self._wait_us:
            self._ask(now_us)

    def _ask(self, now_us: int) -> None:
        """Begin a round of hellos."""
        self._challenge = self._random.randrange(1, CHALLENGES)
        self._answers.clear()
        self._answered_us, self._is_landed = None, False
        self._attempt, self.is_asking, self.is_due_again = 0, True, False
        self._next_us = self._round_us = now_us

    def tick(self, now_us: int) -> None:
        if self._began_us is None:
            self._began_us = now_us
        if self.is_due_again and has_passed(self._round_us, ASK_AGAIN_US, now_us):
            self._ask(now_us)
        self._waited = self._waited or has_passed(self._began_us, self._wait_us, now_us)
        if not self.closed:
            self._claims.tick(now_us, self._wait_us)
            if self._waited and not (self.is_asking or self.is_due_again):
                self.due_us = NEVER_US
            return
        is_over = self._asked_us is not None and has_passed(self._asked_us, self._wait_us, now_us)
        if self._answered_us is not None:
            has_gathered = has_passed(self._answered_us, GATHER_US, now_us)
            if is_over or (has_gathered and (self._is_landed or not self._needs_lander)):
                self._follow(now_us)
        elif is_over:
            self.state, self._attempt = FenceState.ALONE, 1
            self._agent.counters.add("fence: started alone")

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Say hello while nobody has answered."""
        if not (self.is_asking and is_time(now_us, self._next_us, ASK_US << MOST_ASKED)):
            return
        attempt = min(self._attempt + 1, ATTEMPTS - 1)
        me = self._agent.replica
        hello = HelloFrame(me, self._hellos + 1, me.device, self._challenge, attempt)
        yield Publication.of(hello, self._agent.topics)
        self._hellos += 1  # the link took it, or else it asked for no more
        self._attempt += 1
        if self._asked_us is None:
            self._asked_us = now_us
        most = MOST_ASKED if self._is_landed else MOST_ASKED_OF_LANDERS
        doublings = self._attempt - (1 if self.state is FenceState.ALONE else most // 2)
        wait_us = ASK_US if self.closed else ASK_US << min(max(0, doublings), MOST_ASKED)
        self._next_us = now_us + wait_us
        self.is_asking = self.state is not FenceState.VOUCHED or self._attempt < most

    def _take_vouch(self, frame: VouchFrame, now_us: int) -> None:
        """Take an answer to the own hello."""
        me, voucher = self._agent.replica, frame.sender
        if frame.subject.device != me.device:
            return  # about another device, of which the witness asked
        if frame.challenge == HINT:
            self.is_due_again = self.is_due_again or not self.closed
        elif frame.challenge != self._challenge:
            self._agent.counters.note("frame: a vouch that was not asked for")
        elif self._answers.has_room_for(voucher.device):
            if voucher.device == me.device and voucher.nonce != me.nonce:
                self._clones.met(voucher.nonce, now_us)
            tells = not is_ignorant(frame, me.nonce)
            if tells or has_passed(self._began_us, IGNORANT_US, now_us):
                self._answers.add(frame, now_us)
                if frame.keeps and len(self.answered_by) < MOST_VOUCHES:
                    self.answered_by.add(voucher.device)
                self._answered(now_us, is_landed=frame.keeps)

    def _answered(self, now_us: int, *, is_landed: bool) -> None:
        if self._answered_us is None or (is_landed and not self._is_landed):
            self._answered_us = now_us
        self._is_landed = self._is_landed or is_landed
        if not self.closed:
            self._follow(now_us)

    def _follow(self, now_us: int) -> None:
        """Become the later replica that the answers name."""
        answers, me = self._answers, self._agent.replica
        is_young = self.closed and self._is_new
        newest = answers.newest(me, self._agent.counters, now_us, is_young=is_young)
        self._learn(newest, now_us, is_young=is_young)
        self.state = FenceState.VOUCHED
        if newest is not None and self._succeeds(newest, now_us):
            self._ask(now_us)  # a lander is to hear what it has become
            self._is_renewed = self._needs_lander
        elif self._is_landed:
            self.is_asking = self._is_renewed = False
            if len(self._landers) < MOST_VOUCHES:
                self._landers.update(answers.landers_of(self._agent.replica))

    def _learn(self, newest: Replica | None, now_us: int, *, is_young: bool) -> None:
        """Learn how far other processes have come."""
        own, reports = self._agent.replica.nonce, self._known.peer_reports
        known = sorted(self._answers.reports(own, is_young=is_young))
        for report in known:
            reports.learn(report, now_us)
        if newest is not None:
            has_report = newest.nonce in {each.reporter.nonce for each in known}
            since_us = now_us if self._round_us is None else self._round_us
            self._claims.hear(newest, since_us, has_report=has_report)
        self._claims.look(now_us, self._wait_us)

    def _succeeds(self, newest: Replica, now_us: int) -> bool:
        """Become later than a life that the store does not know; return whether that was done."""
        me = self._agent.replica
        if newest.nonce in self._met:
            self._claims.goes_on(newest.nonce, now_us)
        if not self._successions.takes(now_us):
            return False
        self._met.add(newest.nonce)
        self._agent.counters.add("fence: later lives met")
        self._answers.lives.add(newest[:2])
        self._become(Replica(newest.incarnation + 1, me.nonce, me.device))
        return True

    def _look_for_clone(self, frame: BeatFrame | HelloFrame, now_us: int) -> None:
        # A frame of an earlier incarnation may come late. One of a later incarnation, or of this
        # one with another nonce, is sent by another process with this device's name.
        other, me = frame.sender, self._agent.replica
        is_later = other.device == me.device and other.incarnation >= me.incarnation
        if is_later and other.nonce != me.nonce and not self.closed:
            self._clones.met(other.nonce, now_us)
            self.is_due_again = True

    def _look_for_later_life(self, frame: Frame, now_us: int) -> None:
        """Ask again where the broker kept something of a later life: that alone is no proof."""
        self._clones.look(frame, now_us)
        other, me = frame.sender, self._agent.replica
        if other.device == me.device and other > me and other.nonce != me.nonce:
            self.is_due_again = self.is_due_again or not self.closed

    def _hear_lander(self, frame: AckFrame, _now_us: int) -> None:
        """Ask again where a lander is heard that has not answered this replica yet.

        Each knows what has landed there, and a device may deliver to several.
        """
        waits = frame.sender.device not in self._landers and not self.is_asking
        if self._wait_us and waits and not self.closed:
            self.is_due_again = True

    def succeed(self) -> None:
        self._landers.clear()
        self._answers.lives.add(self._agent.replica[:2])
        self.is_changed = True

    def take_changes(self) -> Changes | None:
        self.is_changed = False
        return Changes(replica=self._agent.replica)

    def report(self) -> dict[str, Any]:
        return {"fence": self.state.value}
