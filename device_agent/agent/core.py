"""The agent as a pure state machine: a list of parts, called in one order.

It never reads a clock, draws a random number, opens a socket or touches a disk. Its driver (the
process on a device, or a simulated fleet) goes through `Durable`, in this order:

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
from typing import Any

from crdts import Replica
from device_agent.agent.agent import Agent
from device_agent.agent.agent_parts import AgentParts
from device_agent.agent.changes import Changes, Restored
from device_agent.agent.clock import ClockReading
from device_agent.agent.fleet.absences import spoken_often
from device_agent.agent.intake.batch import Batch, HeldBatch
from device_agent.agent.notices import Notices
from device_agent.agent.part_list import PartList
from device_agent.agent.parts import AgentStore
from device_agent.agent.settings import Settings
from device_agent.agent.state.counters import Counters, Guard
from device_agent.agent.state.stored import Stored
from lasp_edge.language.plan import Plan, is_apart
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber, decode
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.topics import Topics, subscriptions, topic_of
from lasp_edge.timers import Timer

NOTES_US = 10_000_000
"""Microseconds that notes, which are worth no commit of their own, wait for another one; twice as
long as readings do, where these wait longer."""


class Core(AgentParts):
    """One device's agent.

    Args:
        plan: what to compute.
        device: this device's name.
        nonce: 32 random bits of this process start.
        restored: what the store held.
        settings: intervals and limits.
        fleet: the fleet's name; the program's where it is left out.

    Attributes:
        part_list: everything that the agent does, in the order in which it is done.
        connected: whether there is a connection to the broker.
        decode: makes a frame of bytes; a simulation remembers the frames that many receive.
    """

    decode = staticmethod(decode)

    def __init__(
        self,
        plan: Plan,
        device: str,
        nonce: int,
        restored: Restored,
        settings: Settings | None = None,
        fleet: str = "",
    ) -> None:
        self.counters = Counters(restored.counters, restored.facts.refused_before)
        settings = spoken_often(settings or Settings(), plan)
        agent = Agent(
            plan,
            Replica.checked(restored.incarnation + 1, nonce, device),
            settings,
            Topics(fleet or plan.name),
            self.counters,
            Stored(restored, plan.meanings, drop_set_aside=settings.drop_set_aside),
            restored.facts,
            Guard(self.counters),
            notices=Notices(restored.facts.notices or ()),
        )
        self.connected = False
        super().__init__(agent, restored, self.become, lambda: self.connected)
        self.part_list = PartList(agent.guard, agent.counters)
        self.part_list.add(*self.in_order())
        self._notes = Timer(max(NOTES_US, 2 * agent.settings.commit_every_us))
        self._uncommitted = Changes()

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
        if batch.done:
            self.part_list.wake()
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
        self.intake.end()
        self.part_list.wake()

    def handle_message(self, topic: str, payload: bytes, now_us: int) -> None:
        """Take a message of a peer, of the lander, or an own one that the broker kept.

        What is no frame, or not on its topic, is counted and changes nothing else.
        """
        if not payload or self.part_list.listen(topic, payload, now_us):
            return  # a retained message was deleted, or it is another program's
        try:
            frame = self.decode(payload)
            if topic == topic_of(frame, self.agent.topics):
                self.part_list.handle(frame, now_us)
            else:
                self.counters.note("frame: on another's topic")
        except FrameError as error:
            self.counters.note(f"frame: {error}")
        except BaseException as error:  # noqa: BLE001 - no message may end an agent
            self.agent.guard.failed("a message", error)

    def handle_connected(self, now_us: int) -> None:
        """The broker may have lost anything: publish everything of this device again."""
        self.connected = True
        self._notes.restart()
        self.part_list.wake()
        self.part_list.call("connected", now_us)

    def handle_disconnected(self) -> None:
        """Nothing can be published for now."""
        self.connected = False

    def handle_unsent(self, publication: Publication) -> None:
        """The link did not take a publication, and was given nothing after it."""
        self.part_list.wake()
        self.part_list.call("unsent", publication)

    def handle_stop(self) -> None:
        """The process is about to end in order: the next commit takes the notes with it."""
        self._notes.restart()

    def handle_tick(self, now_us: int) -> bool:
        """Do what time alone brings: expire, fold, remember; return whether to commit then."""
        self.agent.now_us = now_us
        self.part_list.tick(now_us)
        changes = self.prepare_commit()
        is_changed = bool(changes)  # it is asked for once: most ticks change nothing
        if is_changed or self._notes.is_over(now_us):
            self._notes.begin(now_us)
            self.part_list.add_notes(changes)
            is_changed = bool(self.prepare_commit())  # some notes are changes of what is stored
        # A part that raised when it was asked for its changes may have some now.
        return is_changed or (self.part_list.owes_changes and bool(self.prepare_commit()))

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
        topics, device = self.agent.topics, self.replica.device
        every = subscriptions(topics, Subscriber.DEVICES)
        if is_apart(self.agent.plan):  # one of its own name may be a clone's
            kind = FRAME_KINDS[BeatFrame.kind].topic
            every[every.index(topics.every(kind))] = topics.of(kind, device)
        return [
            *every,
            *subscriptions(topics, Subscriber.ADDRESSEE, device),
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

    def become(self, replica: Replica) -> None:
        """Let all parts go on as a later replica of this device."""
        self.agent.replica = replica
        self.part_list.wake()
        self.part_list.call("succeed")


class Durable:
    """A core whose every change is in its store before anything leaves.

    Args:
        core: the state machine, made from what `store` held.
        store: where its changes go.

    Attributes:
        is_stuck: the last commit failed. Its changes are kept, and are tried again before anything
            else is taken in or leaves: until then the store knows less than memory.
    """

    def __init__(self, core: Core, store: AgentStore) -> None:
        self.core = core
        self.store = store
        self.is_stuck = False
        self._write()

    def read(
        self,
        batch: Batch,
        now_us: int,
        acknowledge: Callable[[], None] | None = None,
        *,
        is_pressing: bool = False,
    ) -> None:
        """Take readings in, at once or with the next commit that is due; see `Core.hold`."""
        if self.core.hold(batch, now_us, acknowledge, is_pressing=is_pressing):
            self.commit(now_us)

    def hear(self, topic: str, payload: bytes, now_us: int) -> None:
        """Take a message in."""
        self.core.handle_message(topic, payload, now_us)

    def tick(self, now_us: int) -> Iterator[Publication]:
        """Do what is due, commit, and yield what may be published now."""
        core = self.core
        if self.is_stuck:
            self._write()
        is_read = core.part_list.is_due(now_us)
        if is_read:
            core.part_list.read(self.store, now_us)
        is_changed = core.handle_tick(now_us)
        if is_changed and not is_read:
            core.part_list.read(self.store, now_us)  # what waits costs little more
        if is_changed or is_read:
            self._write()
        core.part_list.recall(self.store, now_us)
        yield from core.publications(now_us)

    def commit(self, now_us: int) -> None:
        """Make all durable that was read, and whatever else changed; tell the sources."""
        if self.is_stuck:
            self._write()
        self.core.part_list.read(self.store, now_us)
        self._write()

    def _write(self) -> None:
        """Make the core's changes durable; where that fails, nothing is ever published of them."""
        changes = self.core.prepare_commit()
        if changes:
            self.is_stuck = True
            self.store.commit(changes)
            self.is_stuck = False
        self.core.committed()
