"""A sink's process around what it holds, with latency and crashes; and the lander as one.

What arrives waits for the next commit. A crash before it loses that, and nothing was acknowledged
of it; what was committed stays. The other sink is a gateway (`gateway`).
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from crdts import Member, Membership, Replica, Version
from device_agent.agent.stored_rows import EntryKey
from device_agent.gateway.core import WaitingTerms
from device_agent.gateway.run import SHORT_OUTAGE
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acks import AckFrame, NotTaken
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import HelloFrame
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US
from simulations.world.clock import Clock
from simulations.world.decoding import decoded
from simulations.world.landed import LandedState
from simulations.world.lander import TERMS, SimulatedLander
from simulations.world.questions import PANES, Questions, answered_by
from simulations.world.stated import Stated

BEATS = f"/{FRAME_KINDS[BeatFrame.kind].topic}/"
"""Stands in the topics of beats."""
HELLOS = f"/{FRAME_KINDS[HelloFrame.kind].topic}/"
"""Stands in the topics of devices that ask who they were."""

KEPT = 8
"""Beats of a device of which it is known what they state of its clock."""
FULL_TAKES = 2
"""Messages that a link takes in a step while it is full."""
Inbox = Sequence[tuple[str, bytes, bool]]
"""Topic, payload, and whether the broker had kept it, of each message."""
AnyLanded_co = TypeVar("AnyLanded_co", bound=LandedState, covariant=True)


class SinkMessage(NamedTuple):
    """A message that a sink publishes; what is for people has no frame."""

    topic: str
    payload: bytes
    retain: bool
    frame: Frame | None


class VirtualSink(ABC, Generic[AnyLanded_co]):
    """The process of a sink, with its store.

    Args:
        plan: the program whose panes it takes.
        sink: the sink's name.
        name: the process's, as it answers.
        terms: for whom windows wait.

    Attributes:
        sink, name, terms: see there.
        lander: what it holds.
        former: the stores that were lost, as they were.
        clock: its wall clock.
        running: the program that it runs.
        refused: it ran a program that lacks a window, so it refused what devices had promised.
        not_taken: device -> which versions of its entries the present store did not take.
        beats: device -> in which second each of its beats came first that the broker had not kept.
        is_connected: whether there is a connection to the broker.
        inbox: what waits for its next turn.
        down_until, cut_until, slow_until: until which step it is off, hears nothing, is slow.
        away_until, full_until: until which step it has no connection, its link takes little.
        has_broker: whether it may connect now.
        named: device and tag of a store of this name -> the last second at which a beat named it.
        hellos: device -> the last second at which it asked who it was.
        ahead_us: device -> when its last beats came, and how far its clock was ahead of this one's,
            where it stated one.
        done: device -> which of its beats stated that it has ended, as far as this sink goes.
        logs: device -> beat -> under which logs of operators' entries it was sent, where there are
            any that change windows.
        ended: its process ended in this step.
        wrong: what it has done wrong in its last turn.
        questions: the frames of panes that came, and were not answered yet.
        stated: what beats and frames of panes state of their devices.
        unsent: the devices for which an answer did not leave, and has not since: what was in it.
        true_us, second: the true time, and the same in seconds since the world began.
        listens_from: the second from which on it has listened without a long break.
        due_step: when it commits next.
    """

    lander: AnyLanded_co
    former: list[AnyLanded_co]

    def __init__(self, plan: Plan, sink: str, name: str, terms: WaitingTerms) -> None:
        self.sink, self.name, self.terms = sink, name, terms
        self._plan = self.running = plan
        self.former = []
        self.clock = Clock()
        self.refused = self.is_connected = False
        self.not_taken: dict[str, set[EntryKey]] = defaultdict(set)
        self.beats: dict[str, dict[Version, int]] = defaultdict(dict)
        self.named: dict[tuple[str, int], int] = {}
        self.hellos: dict[str, int] = {}
        self.ahead_us: dict[str, list[tuple[int, int | None]]] = defaultdict(list)
        self.done: dict[str, set[Version]] = defaultdict(set)
        self.logs: dict[str, dict[Version, set[int]]] = defaultdict(dict)
        self.down_until = self.cut_until = self.slow_until = self.due_step = 0
        self.away_until = self.full_until = 0
        self.has_broker, self.ended = True, False
        self.unsent: dict[str, set[EntryKey]] = {}
        self.wrong: list[str] = []
        self.questions, self.stated = Questions(), Stated()
        self._members: dict[str, Member] = {}
        self._owed: dict[str, set[EntryKey]] = {}
        self.true_us = self.second = self.listens_from = self._left = 0
        self.inbox: list[tuple[str, bytes, bool]] = []
        self._slow_steps = self._taken_by_link = 0
        self._is_full = False

    @property
    def is_running(self) -> bool:
        """Whether what its process has in memory is what its store holds."""
        return True

    def holds(self, device: str) -> bool:
        """Return whether something of a device is in its store."""
        return any(of == device for _, _, _, of, *_ in self.lander.panes)

    def is_due(self, step: int) -> bool:
        """Return whether it does something in a step."""
        return step >= max(self.due_step, self.down_until)

    def hear(self, topic: str, payload: bytes, step: int, *, retained: bool = False) -> None:
        """Note a message for the next commit, if it runs and is connected."""
        if step < max(self.down_until, self.cut_until, self.away_until):
            return
        self.inbox.append((topic, payload, retained))
        self.questions.hear(topic, payload)
        if (BEATS in topic or PANES in topic) and not retained:
            self.stated.hear(payload, self.second)
        if (BEATS in topic or HELLOS in topic) and not retained:
            self._note_beat(payload)

    def _note_beat(self, payload: bytes) -> None:
        try:
            beat = decoded(payload)
        except FrameError:
            return
        if isinstance(beat, HelloFrame) and beat.about == beat.sender.device:
            self.hellos[beat.about] = self.second
        if not isinstance(beat, BeatFrame):
            return
        now_us, clock_s = self.clock.read(self.true_us), beat.clock_s
        ahead_us = None if clock_s is None else clock_s * SECOND_US - now_us
        self.ahead_us[beat.about] = [*self.ahead_us[beat.about], (self.second, ahead_us)][-KEPT:]
        named = ((beat.about, low.store) for low in beat.lows if low.sink == self.sink)
        self.named |= dict.fromkeys(named, self.second)
        version = Version.of(beat.sender, beat.number)
        self.beats[beat.about].setdefault(version, self.second)
        if self._plan.parameters:
            self.logs[beat.about].setdefault(version, set()).add(beat.control)
        if beat.done or self.sink in beat.done_for:
            self.done[beat.about].add(version)

    def takes(self, frame: Frame | None) -> bool:
        """Return whether the link of its process takes a message now; see `full_until`."""
        about = frame.about if type(frame) is AckFrame else ""
        self._taken_by_link += 1
        if not self.is_connected or (self._is_full and self._taken_by_link > FULL_TAKES):
            if type(frame) is AckFrame:
                self.unsent.setdefault(about, set()).update(answered_by(frame))
            return False
        if about in self.unsent:
            self._owed[about] = self.unsent.pop(about) | self._owed.get(about, set())
        return True

    def commit(self, step: int, now_us: int) -> Iterator[SinkMessage]:
        """Commit what is due, and only then yield what it answers."""
        if not self.is_due(step):
            return
        self.due_step = step + (self._slow_steps if step < self.slow_until else 1)
        inbox, self.inbox = self.inbox, []
        self.has_broker = step >= self.away_until
        was_connected = self.is_connected and self.has_broker
        self._is_full, self._taken_by_link = step < self.full_until, 0
        if not self.has_broker:
            self.disconnect()
        self._members, self.wrong = dict(self.lander.membership.entries), []
        self._owed.clear()
        answers = list[AckFrame]()
        for message in self.take(inbox, now_us):
            if type(message.frame) is AckFrame:
                answers.append(message.frame)
                if message.frame.not_taken:
                    self._note(message.frame)
            yield message
        self.questions.answer(answers, is_whole=was_connected and self.is_connected)
        self.wrong += _lacking(self, self._owed, answers)
        if self.is_connected and not was_connected:
            self._note_connection()

    def pass_time(self, true_us: int, start_us: int) -> None:
        """Note the time, before anything happens at it."""
        self.true_us, self.second = true_us, (true_us - start_us) // SECOND_US
        self._left = self.second if self.is_connected else self._left

    def _note_connection(self) -> None:
        """Note since when it listens: a short outage does not count, nor need it."""
        short_s = self.terms.dead_after_us // SHORT_OUTAGE // SECOND_US
        if self.second > self._left + short_s + 1:
            self.listens_from = self.second
        self._left = self.second  # it may be gone again before time passes

    @abstractmethod
    def take(self, inbox: Inbox, now_us: int) -> Iterable[SinkMessage]:
        """Take in what came, and yield what is sent of it once it is durable."""

    def _note(self, answer: AckFrame) -> None:
        """Note what an answer does not take."""
        known, member = self.not_taken[answer.about], self._members.get(answer.about)
        for reason, (incarnation, nonce, runs) in answer.not_taken:
            for first, last in runs:
                version = incarnation, nonce, first
                counts = member is not None and version <= member.version
                if reason == NotTaken.RETIRED and counts and not self._is_full:
                    self.wrong.append(f"{self.name} refuses {version} of {answer.about}: it counts")
                known.update(EntryKey(incarnation, nonce, seq) for seq in range(first, last + 1))

    @abstractmethod
    def disconnect(self) -> None:
        """Lose the connection until the next commit."""

    @abstractmethod
    def restart(self) -> None:
        """End the process; the next one runs the present program."""

    @abstractmethod
    def lose_store(self) -> None:
        """Put an empty store with another id in place of this one."""

    def keep_image(self) -> None:
        """Keep an image of its disk, to go back to; a lake is never put back."""

    def crash(self, until: int) -> int:
        """End the process; return how many messages are lost with it."""
        lost = len(self.inbox)
        self.inbox.clear()
        self.down_until = until
        self.restart()
        return lost

    def run_program(self, plan: Plan | None = None) -> None:
        """Restart with another program; without one, with its own."""
        self.refused = self.refused or plan is not None
        self.running = plan or self._plan
        self.crash(until=0)

    def slow_down(self, step: int, steps: int) -> None:
        """Let each commit take some steps, for a while."""
        self._slow_steps, self.slow_until = steps, step + 2 * steps
        self.due_step = step + steps

    def heal(self) -> None:
        """Let it run its own program, hear, and commit at once."""
        self.down_until = self.cut_until = self.slow_until = self.due_step = 0
        self.away_until = self.full_until = 0
        self.clock.heal()
        if self.running is not self._plan:
            self.run_program()


def _lacking(
    sink: VirtualSink[Any], owed: Mapping[str, set[EntryKey]], answers: Sequence[AckFrame]
) -> Iterator[str]:
    """Yield what an answer held that did not leave, and is not in those that left now.

    Args:
        sink: the sink.
        owed: device -> what was in the answers for it that did not leave.
        answers: those that left.
    """
    for device, entries in owed.items() if sink.is_connected else ():  # else the power went in it
        if device in sink.unsent:
            sink.unsent[device] |= entries  # the rest of the answer follows
            continue
        left = [answered_by(each) for each in answers if each.about == device]
        lacking = entries.difference(*left)
        if lacking:
            yield f"{sink.name} never answers {min(lacking)} of {device}"


class VirtualLander(VirtualSink[SimulatedLander]):
    """One lander with its store, which is one sink.

    Args and attributes are those of `VirtualSink`.
    """

    def __init__(self, plan: Plan, sink: str = DEFAULT_SINK, terms: WaitingTerms = TERMS) -> None:
        super().__init__(plan, sink, f"lander of {sink}", terms)
        self._processes = 0
        self._topics = Topics(plan.name)
        self.lander = self._on_new_store(1)

    def _on_new_store(self, number: int, known: Membership | None = None) -> SimulatedLander:
        store = f"{self.sink}-{number}"
        process = self._new_process()
        return SimulatedLander(store, self.running, known, self.sink, process, terms=self.terms)

    def _new_process(self) -> Replica:
        self._processes += 1
        return Replica(1, self._processes, self.name)

    def take(self, inbox: Inbox, now_us: int) -> Iterator[SinkMessage]:
        """Commit what came, and only then yield the answers."""
        hear = self.lander.hear
        answers = [
            hear(topic, payload, now_us, retained=retained) for topic, payload, retained in inbox
        ]
        if not self.is_connected and self.has_broker:
            self.is_connected = True
            self.lander.connected(now_us)
        self.lander.commit(now_us)
        frames: Iterable[Frame] = [answer for answer in answers if answer is not None]
        for each in (frames, self.lander.repeated(now_us), self.lander.asks(now_us)):
            for frame in each:
                topic, is_kept = topic_of(frame, self._topics), FRAME_KINDS[frame.kind].retained
                yield SinkMessage(topic, frame.encode(), is_kept, frame)

    def disconnect(self) -> None:
        self.is_connected = False
        self.lander.disconnected()

    def restart(self) -> None:
        self.lander = self.lander.restarted(self.running, self._new_process())
        self.disconnect()

    def lose_store(self) -> None:
        self.former.append(self.lander)
        self.not_taken.clear()
        self.lander = self._on_new_store(len(self.former) + 1, self.lander.membership)
        self.inbox.clear()
        self.disconnect()
