"""The agent as a pure state machine: a list of parts, called in one order.

It never reads a clock, draws a random number, opens a socket or touches a disk. Its driver (the
process on a device, or a simulated fleet) does, in this order (`device_agent.agent.durable`):

1. `hold` takes readings, which wait for the next commit.
2. `handle_message`, `handle_connected`, `handle_tick` change the state.
3. `read` lets the parts read the store, once before each commit, and takes in what is held.
4. `prepare_commit` returns what all parts changed; it is committed in one transaction, and
   `committed` notes that.
5. `publications(now_us)` leave only after that; the core asserts it.

Readings, their identities, the panes and variables they changed, and the source's cursor are in
one and the same `Changes`, so no crash can separate them. What each part does, and the contract
that all of them keep, stands in `device_agent.agent.parts`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from crdts import Replica
from device_agent.agent.acting.acting import Acting
from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes, Restored
from device_agent.agent.clock import ClockReading
from device_agent.agent.fleet.absences import Absences, spoken_often
from device_agent.agent.fleet.agreement import Agreements
from device_agent.agent.fleet.beats import Beats
from device_agent.agent.fleet.commands import OperatorCommands
from device_agent.agent.fleet.exchange import Exchange
from device_agent.agent.fleet.fence import Fence
from device_agent.agent.fleet.programs import Programs
from device_agent.agent.fleet.results import Results
from device_agent.agent.fleet.values import Values
from device_agent.agent.fleet.voice import FleetVoice
from device_agent.agent.fleet.witnessing import Witnessing
from device_agent.agent.guard import Guard
from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.intake import HeldBatch, Intake
from device_agent.agent.intake.peer_reports import KnownProgress
from device_agent.agent.intake.progress import SourceProgress
from device_agent.agent.panes.cache import PaneCache
from device_agent.agent.panes.delivery import PaneDelivery
from device_agent.agent.panes.panes import Panes
from device_agent.agent.panes.sinks import LEFT_US, Sinks
from device_agent.agent.part_list import PartList
from device_agent.agent.parts import Part
from device_agent.agent.settings import Settings
from device_agent.agent.state.counters import Counters
from device_agent.agent.state.stored import Stored
from device_agent.agent.timing.timing import Timing
from device_agent.agent.timing.waiting import Waiting
from device_agent.agent.variables.derived import Derived
from device_agent.agent.variables.samples import Samples
from device_agent.agent.variables.sharing import Sharing
from device_agent.agent.variables.variables import Reactions, Variables
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.kinds import Subscriber, decode
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.topics import Topics, subscriptions, topic_of
from lasp_edge.timers import Timer

if TYPE_CHECKING:
    from device_agent.agent.rebuilding.missing import MissingPanes
    from device_agent.agent.scans.streams import Streams

NOTES_US = 10_000_000
"""Microseconds that notes, which are worth no commit of their own, wait for another one; twice as
long as readings do, where these wait longer."""


class Core:
    """One device's agent.

    Args:
        plan: what to compute.
        device: this device's name.
        nonce: 32 random bits of this process start.
        restored: what the store held.
        settings: intervals and limits.
        fleet: the fleet's name; the program's where it is left out.

    Attributes:
        agent: what all parts share.
        streams: runs the program's streams; None where it declares no stream.
        missing: makes the panes of windows that are not plain, if there are any.
        part_list: everything that the agent does, in the order in which it is done.
        connected: whether there is a connection to the broker.
        decode: makes a frame of bytes; a simulation remembers the frames that many receive.
    """

    decode = staticmethod(decode)

    def __init__(  # noqa: PLR0915 - one part each
        self,
        plan: Plan,
        device: str,
        nonce: int,
        restored: Restored,
        settings: Settings | None = None,
        fleet: str = "",
    ) -> None:
        self.counters = Counters(restored.counters)
        settings = spoken_often(settings or Settings(), plan)
        self.agent = agent = Agent(
            plan,
            Replica.checked(restored.incarnation + 1, nonce, device),
            settings,
            Topics(fleet or plan.name),
            self.counters,
            Stored(restored, plan.meanings, drop_set_aside=settings.drop_set_aside),
            restored.facts,
            Guard(self.counters),
        )
        self.derived = Derived(agent)
        self.samples = Samples(agent)
        self.variables = Variables(agent, self.samples, self.derived)
        sinks = Sinks(agent.facts.sinks, max(settings.retain_us, LEFT_US), agent.counters)
        memory = Panes(agent, sinks)
        cache = PaneCache(memory, sinks)
        sources = SourceProgress(restored.sources, settings.lateness_us)
        known = KnownProgress(agent, restored)
        self.fence = Fence(agent, restored, known, self._succeed)
        self.witnessing = Witnessing(agent, self.fence)
        self.timing = Timing(agent)
        self.waiting = Waiting(agent, self.timing, sources, self.fence, restored.waiting)
        found = (agent, restored, sources, known, memory)
        self.intake = Intake(*found, self.variables, self.waiting)
        self.streams = _streams(agent, self.intake, memory, self.variables)
        self.missing = _missing(agent, self.intake, memory, cache)
        follow = [self.missing.follow, self.samples.hear] if self.missing else []
        self.commands = OperatorCommands(agent, self.samples.set_membership, follow)
        low_us = partial(_low_us, self.intake, self.streams, self.missing)
        delivered = (memory, sinks, cache, sources)
        self.panes = PaneDelivery(agent, *delivered, low_us, self.fence.source_highs)
        self.sharing = Sharing(agent, self.variables.shared_states)
        self.exchange = Exchange(agent, self.samples.published.values(), self.sharing.reports)
        self.agreements = Agreements(agent, self.exchange, self.commands)
        waits = partial(_waits, self.missing)
        self.beats = Beats(agent, self.exchange, self.intake, self.panes, self.fence, waits)
        programs = Programs(agent, lambda: self.commands.retired)
        values = Values(agent, self.samples, self.agreements, self.derived)
        self.results = Results(agent, values, programs)
        self.voice = FleetVoice(agent, self.results.values, self.agreements)
        self.acting = Acting(agent, self.samples, self.variables, self.agreements)
        self.part_list = PartList(agent.guard, agent.counters)
        self.part_list.add(
            self.fence,  # may let all others go on as another replica; all wait for it
            self.witnessing,
            self.timing,  # knows what time it is, for all others
            self.waiting,
            self.intake,  # joins what was read, so that all others see it
            *(part for part in (self.streams, self.missing) if part is not None),
            self.variables,
            Reactions(agent, self.derived, self.variables),
            self.samples,
            self.sharing,
            self.exchange,  # entries are published before the beat that speaks of them
            self.panes,
            self.beats,
            self.results,
            self.voice,
            *_home_assistant(agent, self.voice, self.streams),
            self.agreements,
            Absences(agent, self.samples, lambda: self.connected),
            self.commands,
            programs,
            *self.acting.parts,
            agent.stored,  # has what those before it changed
            agent.counters,
        )
        self._notes = Timer(max(NOTES_US, 2 * agent.settings.commit_every_us))
        self._uncommitted, self.connected = Changes(), False

    @property
    def replica(self) -> Replica:
        """The replica that this device is."""
        return self.agent.replica

    def hold(
        self,
        batch: Batch,
        now_us: int,
        acknowledge: Callable[[], None] | None = None,
        *,
        is_pressing: bool = False,
    ) -> bool:
        """Hold readings until a commit is due; return whether it is due now.

        Args:
            batch: the readings.
            now_us: the time.
            acknowledge: is called when they are durable.
            is_pressing: the source gives nothing more before that.
        """
        held = HeldBatch(batch, now_us, acknowledge)
        return self.intake.hold(held, is_pressing=is_pressing)

    def handle_clock(self, reading: ClockReading, now_us: int) -> None:
        """Take a reading of the machine's clocks; a driver of one true clock gives none."""
        self.timing.observe(reading, now_us)

    def handle_sent(self, total_bytes: int) -> None:
        """Take how many bytes the link has sent; a driver without a link gives none."""
        self.results.sent_bytes = total_bytes

    def handle_end(self) -> None:
        """The sources are stopped: nothing more will be read by this process."""
        self.intake.sources.stopped = True

    def handle_message(self, topic: str, payload: bytes, now_us: int) -> None:
        """Take a message of a peer, of the lander, or an own one that the broker kept.

        What is no frame, or not on its topic, is counted and changes nothing else.
        """
        if not payload or self.part_list.listen(topic, payload, now_us):
            return  # a retained message was deleted, or it is another program's
        try:
            frame = self.decode(payload)
            if topic == topic_of(frame, self.agent.topics):
                self.handle_frame(frame, now_us)
            else:
                self.counters.note("frame: on another's topic")
        except FrameError as error:
            self.counters.note(f"frame: {error}")
        except BaseException as error:  # noqa: BLE001 - no message may end an agent
            self.agent.guard.failed("a message", error)

    def handle_frame(self, frame: Frame, now_us: int) -> None:
        """Give a frame to every part that takes its kind."""
        self.part_list.handle(frame, now_us)

    def handle_connected(self, now_us: int) -> None:
        """The broker may have lost anything: publish everything of this device again."""
        self.connected = True
        self._notes.restart()
        self.part_list.call("connected", now_us)

    def handle_disconnected(self) -> None:
        """Nothing can be published for now."""
        self.connected = False

    def handle_unsent(self, publication: Publication) -> None:
        """The link did not take a publication, and was given nothing after it."""
        self.part_list.call("unsent", publication)

    def handle_stop(self) -> None:
        """The process is about to end in order: the next commit takes the notes with it."""
        self._notes.restart()

    def handle_tick(self, now_us: int) -> bool:
        """Do what time alone brings: expire, fold, remember; return whether to commit then."""
        self.part_list.call("tick", now_us)
        changes = self.prepare_commit()
        if changes or self._notes.is_over(now_us):
            self._notes.begin(now_us)
            self.part_list.add_notes(changes)
            changes = self.prepare_commit()  # some notes are changes of what is stored
        # A part that raised when it was asked for its changes may have some now.
        return bool(changes or (self.part_list.owes_changes and self.prepare_commit()))

    def prepare_commit(self, *, with_notes: bool = False) -> Changes:
        """Return what must be committed before anything is published; see `committed`.

        Notes are worth no commit of their own.
        """
        self.part_list.add_changes(self._uncommitted)
        if with_notes:
            self.part_list.add_notes(self._uncommitted)
        return self._uncommitted

    def committed(self) -> None:
        """What `prepare_commit` returned is durable."""
        self._uncommitted = Changes()
        self.part_list.committed()

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Yield what is to be published now. Nothing while disconnected."""
        assert not self.prepare_commit(), "changes are committed before anything is published"
        if not self.connected:
            return
        yield from self.part_list.publications(now_us)

    def subscriptions(self) -> list[str]:
        """Return the topic filters that the agent listens to."""
        every = subscriptions(self.agent.topics, Subscriber.DEVICES)
        return [
            *every,
            *subscriptions(self.agent.topics, Subscriber.ADDRESSEE, self.replica.device),
            *self.part_list.listeners,
        ]

    @property
    def done(self) -> bool:
        """Whether nothing more will be read and everything has landed."""
        return self.beats.done and not self.fence.closed

    def report(self) -> dict[str, Any]:
        """Return the state of the agent as plain data, for people and for tests."""
        incarnation, nonce, device = self.replica
        report = {"device": device, "replica": [incarnation, nonce], "connected": self.connected}
        report |= self.part_list.report()
        return report | {"failures": self.agent.guard.reasons, "done": self.done}

    def _succeed(self, replica: Replica) -> None:
        """Let all parts go on as a later replica of this device."""
        self.agent.replica = replica
        self.part_list.call("succeed")


def _low_us(
    intake: Intake,
    streams: "Streams | None",
    missing: "MissingPanes | None",
    now_us: int,
) -> int | None:
    """Return the time before which nothing more comes: of no source, stream or pane."""
    low_us = intake.low_us(now_us)
    if streams is not None:
        low_us = streams.bounded_us(low_us, now_us)
    return low_us if missing is None else missing.bounded_us(low_us)


def _waits(missing: "MissingPanes | None") -> bool:
    """Return whether panes are still to be built."""
    return missing is not None and missing.waits


def _streams(agent: Agent, intake: Intake, memory: Panes, variables: Variables) -> "Streams | None":
    """Return the part that runs streams; without any a device does without the modules."""
    if not agent.plan.streams:
        return None
    from device_agent.agent.scans.streams import Streams  # noqa: PLC0415 - see above

    return Streams(agent, intake, memory, variables)


def _missing(
    agent: Agent, intake: Intake, memory: Panes, cache: PaneCache
) -> "MissingPanes | None":
    """Return the part of windows that are not plain, and of parameters, where there are any."""
    plan = agent.plan
    if not plan.parameters and all(window.is_plain for window in plan.windows.values()):
        return None
    from device_agent.agent.rebuilding.missing import MissingPanes  # noqa: PLC0415 - see above

    return MissingPanes(agent, intake, memory, cache)


def _home_assistant(agent: Agent, voice: FleetVoice, streams: "Streams | None") -> list[Part]:
    """Return the part for Home Assistant; without one a device does without the module."""
    if not agent.settings.home_assistant:
        return []
    from device_agent.agent.fleet.home_assistant import HomeAssistant  # noqa: PLC0415 - see above

    return [HomeAssistant(agent, voice, streams.shown if streams else tuple)]
