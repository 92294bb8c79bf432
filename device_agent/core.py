"""The agent as a pure state machine: inputs come with `now_us`, outputs are taken from it.

It never reads a clock, draws a random number, opens a socket or touches a disk. Its driver (the
process on a device, or a simulated fleet) does, in this order (`device_agent.durable`):

1. `wanted(batch)` names what the store must give back first; `recall` takes it.
2. `handle_batch`, `handle_frame`, `handle_connected`, `handle_tick` ... change the state.
3. `changes` is committed, in one transaction, and `committed` says so.
4. `publications(now_us)` leave only after that; the core asserts it.

Readings, their identities, the panes and variables they changed, and the source's cursor are in
one and the same `Changes`, so no crash can separate them.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

from crdts import Replica
from crdts.replica import INCARNATIONS
from device_agent.clock import is_time
from device_agent.fleet.beats import IDLE_BEATS, Beats
from device_agent.fleet.members import Members
from device_agent.fleet.peers import too_far_ahead
from device_agent.fleet.pending_updates import PendingUpdates
from device_agent.fleet.results import Results
from device_agent.fleet.variables import Variables
from device_agent.intake.batch import Batch
from device_agent.intake.intake import Intake, Wanted
from device_agent.parts import Publication
from device_agent.settings import Settings
from device_agent.state.changes import BlockId, Changes, PaneId, PaneRow, Restored
from device_agent.state.counters import Counters
from device_agent.state.delivery import PaneDelivery
from device_agent.state.facts import Settled
from device_agent.state.panes import NEVER_US, Panes
from lasp_edge.language.plan import Plan
from lasp_edge.language.updates import Update
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import (
    AckFrame,
    AskFrame,
    BeatFrame,
    MemberFrame,
    PresenceFrame,
    VariableFrame,
)
from lasp_edge.protocol.kinds import Subscriber, subscriptions
from lasp_edge.protocol.sizes import MAX_FRAME_BYTES
from lasp_edge.protocol.topics import Topics

MOST_MEETINGS = 8
"""A life begins anew at most so often: two living clones would go on for ever."""
SILENT_BEATS = 3 * IDLE_BEATS
"""A device that is silent for so many beats is counted as not connected."""
NOTES_US = 10_000_000
"""What alone is worth no commit waits for another one at most so long."""


class Core:
    """One device's agent.

    Args:
        program: what to compute.
        device: this device's name.
        nonce: 32 random bits of this process start.
        restored: what the store held.
        settings: intervals and limits.
        fleet: the fleet's name; the program's where it is left out.
    """

    def __init__(
        self,
        program: Plan,
        device: str,
        nonce: int,
        restored: Restored,
        settings: Settings | None = None,
        fleet: str = "",
    ) -> None:
        self.replica = Replica.checked(restored.incarnation + 1, nonce, device)
        self.topics = Topics(fleet or program.name)
        self.settings = settings or Settings()
        self.counters = Counters(restored.counters)
        self._changes = Changes()
        self._changes.replica = self.replica
        self._program = program
        panes = Panes(self.replica, program.windows.values())
        self._changes.facts.streams = panes.streams
        self.variables = Variables(program, self.replica, restored, self._changes)
        self.members = Members(
            restored.facts.membership, Random(nonce + 1), self.variables.set_membership
        )
        self.intake = Intake(
            program,
            device,
            self.settings,
            restored,
            panes=panes,
            variables=self.variables,
            counters=self.counters,
        )
        self.panes = PaneDelivery(
            panes,
            self.replica,
            self.topics,
            Random(nonce),
            restored.facts.lake,
            lambda: self.finished_reading,
        )
        self.connected = False
        self._met: list[int] = []
        self._beats = Beats()
        self._next_us = dict.fromkeys(("variables", "beat", "results", "notes"), 0)
        self._asks: list[tuple[str, str]] = []
        self._frames_sent = Counter[type[Frame]]()
        self._results = Results(program, self.variables)
        self._settled = dict(restored.facts.settled or {})

    @property
    def changes(self) -> Changes:
        """What must be committed before anything is published; `committed` says it is."""
        for part in (self.intake, self.panes):
            self._changes.add(part.take_changes())
        return self._changes

    def wanted(self, batch: Batch, now_us: int) -> Wanted:
        """Return what must be recalled before the batch is handled."""
        return self.intake.wanted(batch, now_us)

    def recall(
        self, blocks: dict[BlockId, bytes | None], panes: list[tuple[PaneId, PaneRow]]
    ) -> None:
        """Take back blocks of identities, and pane entries of this life."""
        for block, identities in blocks.items():
            self.intake.recall(block, identities)
        self.panes.memory.restore(panes)

    def cursor(self, source: str) -> str | None:
        """Return where a source resumes, and count it among the sources of this life."""
        return self.intake.sources.cursor(source)

    def handle_batch(self, batch: Batch, now_us: int) -> None:
        """Take readings in."""
        self.intake.handle_batch(batch, now_us)

    def handle_end(self) -> None:
        """The sources are stopped: nothing more will be read in this life."""
        self.intake.sources.stopped = True

    def handle_stop(self) -> None:
        """The process is about to end in order: the next commit takes the notes with it."""
        self._next_us["notes"] = 0

    def handle_connected(self, now_us: int) -> None:
        """The broker may have lost anything: publish own entries and dirty panes again."""
        self.connected = True
        self.panes.connected(now_us)
        self.variables.resend()
        self.members.connected(now_us)
        self.variables.peers.nobody_is_there()
        self._say_again()
        self._next_us = dict.fromkeys(self._next_us, now_us)

    def handle_disconnected(self) -> None:
        """Nothing can be published for now."""
        self.connected = False

    def handle_unsent(self, publication: Publication) -> None:
        """The link did not take something, and was given nothing after it."""
        if publication.pane_frame:
            self.panes.unsent(publication)
        else:
            self.variables.resend()
            self._say_again()

    def handle_frame(self, frame: Frame, now_us: int) -> None:
        """Take a frame of a peer, of the lander, or an own one that the broker kept."""
        if isinstance(frame, VariableFrame):
            self._handle_variable(frame)
        elif isinstance(frame, BeatFrame):
            self._handle_beat(frame, now_us)
        elif isinstance(frame, PresenceFrame):
            self._handle_presence(frame, now_us)
        elif isinstance(frame, AckFrame):
            self._handle_ack(frame, now_us)
        elif isinstance(frame, AskFrame):
            self.variables.ask(frame.variable)
        elif isinstance(frame, MemberFrame):
            self._handle_member(frame, now_us)

    def refuse_frame(self, reason: str) -> None:
        """Count a frame that could not be used."""
        self.counters.note(f"frame: {reason}")

    def handle_tick(self, now_us: int) -> None:
        """Do what time alone brings: expire, fold, remember."""
        self.intake.tick(now_us)
        self._run_reached(now_us)
        self.variables.expire(now_us, self.changes)
        self.variables.refold()
        self.variables.peers.expire(now_us, SILENT_BEATS * self.settings.beat_us)
        for reason in (*self.variables.left_aside, *self.variables.derived.take_failures()):
            self.counters.note(reason)
        self.variables.left_aside.clear()
        if self._due("notes", now_us, NOTES_US) or self.changes:
            self._write_notes()

    def _run_reached(self, now_us: int) -> None:
        """Run the handlers whose thresholds were reached; one that fails changes nothing."""
        for variable, handler, value in self.variables.derived.take_reached():
            update, asked = Update(self._program), PendingUpdates()
            try:
                handler(value, update)
                self.variables.apply(update.changes, asked)
            except Exception as error:  # noqa: BLE001 - a user's function may raise anything
                self.counters.note(f"on_threshold of {variable}: {error!r}")
            else:
                self.variables.record(asked, now_us, self.changes)

    def committed(self) -> None:
        """What `changes` held is durable. Memory lets go what the store can give back."""
        self._changes = Changes()
        self.intake.committed()
        self.panes.committed()

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Yield what is to be published now. Nothing while disconnected."""
        assert not self.changes, "changes are committed before anything is published"
        if not self.connected:
            return
        beat_due = self._due("beat", now_us, self.settings.beat_us)
        if self._due("variables", now_us, self.settings.interval_us) or beat_due:
            yield from self._variable_publications()  # before the beat that speaks of them
        yield from self.panes.publications(now_us)
        if beat_due:
            yield from self._beat_publications(now_us)
        if self.settings.results_us and self._due("results", now_us, self.settings.results_us):
            yield from self._result_publications()
        asks, self._asks = self._asks, []
        for device, variable in dict.fromkeys(asks):
            ask = AskFrame(self.replica, self._next_number(AskFrame), device, variable)
            yield Publication(self.topics.inbox(device), ask.encode(), retain=False)
        for device, member in self.members.due(now_us):
            number = self._next_number(MemberFrame)
            command = MemberFrame.of(self.replica, number, device, member)
            yield Publication(self.topics.member(device), command.encode(), retain=True)

    def last_will(self) -> Publication:
        """Return what the broker says when the connection breaks."""
        return self._presence(online=False)

    def goodbye(self) -> Publication:
        """Return what is said last when the agent stops in order."""
        return self._presence(online=False)

    def subscriptions(self) -> list[str]:
        """Return the topic filters that the agent listens to."""
        me = self.replica.device
        every = subscriptions(self.topics, Subscriber.DEVICES)
        return [*every, *subscriptions(self.topics, Subscriber.ADDRESSEE, me)]

    def due_us(self) -> int:
        """Return when `handle_tick` and `publications` should be called next, at the latest."""
        return self._next_us["variables"]

    @property
    def finished_reading(self) -> bool:
        """Whether nothing more will be read: every source is finished, or they were stopped."""
        return self.intake.sources.finished

    @property
    def done(self) -> bool:
        """Whether nothing more will be read and everything has landed."""
        return self.finished_reading and self.panes.cache.all_landed

    def low_watermark_us(self, now_us: int) -> int | None:
        """Return the time before which nothing more will come, None while that is unknown.

        It is at most the start of the oldest pane that has not landed, here or in the store, so it
        goes back where a late reading came or another lake must be filled.
        """
        low_us, oldest_us = self.intake.low_us(now_us), self.panes.cache.oldest_dirty_us()
        if low_us is None or oldest_us == NEVER_US:
            return None
        return low_us if oldest_us is None else min(low_us, oldest_us)

    def _handle_variable(self, frame: VariableFrame) -> None:
        outcome = self.variables.receive(frame, self.changes)
        if outcome == "newer" and self._meet_own(frame.sender):
            outcome = self.variables.receive(frame, self.changes)
        if outcome not in {"news", "known", "own", "newer"}:
            self.refuse_frame(f"variable: {outcome}")

    def _handle_member(self, frame: MemberFrame, now_us: int) -> None:
        outcome = self.members.receive(frame, now_us, self.changes)
        if outcome not in {"news", "known"}:
            self.refuse_frame(f"member: {outcome}")

    def _handle_presence(self, frame: PresenceFrame, now_us: int) -> None:
        if frame.sender.device != self.replica.device:
            self.variables.peers.presence(frame, now_us)
        elif frame.sender > self.replica:
            self._meet_own(frame.sender)
        elif not frame.online:  # the will of a connection that was thought alive, told too late
            self._beats.say_again()

    def _handle_beat(self, frame: BeatFrame, now_us: int) -> None:
        device = frame.sender.device
        if device != self.replica.device:
            self._asks += [(device, name) for name in self.variables.heard(frame, now_us)]
            return
        # A beat of an earlier life may come late; no later life can be there, and no other equal.
        later = frame.sender.incarnation >= self.replica.incarnation
        if later and frame.sender.nonce != self.replica.nonce:
            self.counters.note("clone_alarms")

    def _meet_own(self, other: Replica) -> bool:
        """Become later than a later life of this device; return whether that was done.

        The store was lost or is an old image, and the broker kept what a later life said. Who comes
        back later still after that is alive: the device was cloned.
        """
        if other.nonce in self._met:
            self.counters.note("clone_alarms")
        if not self._is_plausible(other.incarnation):
            self.refuse_frame("own incarnation too far ahead")
            return False
        if len(self._met) >= MOST_MEETINGS:
            return False
        self._met.append(other.nonce)
        self.replica = Replica(other.incarnation + 1, self.replica.nonce, other.device)
        self.changes.replica = self.replica
        self.panes.become(self.replica)
        self.variables.become(self.replica)
        self.variables.refold()
        self._beats.become()
        self._results.say_again()
        return True

    def _is_plausible(self, incarnation: int) -> bool:
        if incarnation + 1 >= INCARNATIONS:
            return False
        # The store was not new, or the lander has taken what this life sent, after any broker that
        # kept the word of another one has said it.
        knows_itself = self.replica.incarnation > 1 or self.panes.lake is not None
        return not (knows_itself and too_far_ahead(incarnation, self.replica.incarnation))

    def _handle_ack(self, frame: AckFrame, now_us: int) -> None:
        if frame.about == self.replica.device and frame.addressee > self.replica:
            self._meet_own(frame.addressee)
        self.panes.acknowledged(frame, now_us)

    def _due(self, what: str, now_us: int, every_us: int) -> bool:
        due = is_time(now_us, self._next_us[what], every_us)
        if due:
            self._next_us[what] = now_us + every_us
        return due

    def _say_again(self) -> None:
        """Say presence, beat and results again, whether they changed or not."""
        self._beats.say_again()
        self._results.say_again()

    def _variable_publications(self) -> Iterator[Publication]:
        me = self.replica.device
        for frame in self.variables.take_unsent():
            payload = frame.encode()
            if len(payload) > MAX_FRAME_BYTES:
                self.counters.note(f"variable {frame.variable}: too large to be published")
                continue
            topic = self.topics.variable(me, frame.variable, frame.shard)
            yield Publication(topic, payload, retain=True)

    def _beat_publications(self, now_us: int) -> Iterator[Publication]:
        low_us = self.low_watermark_us(now_us)
        if low_us is not None:
            progress = self.intake.progress
            progress.promised_us = max(progress.promised_us, low_us)
        reports, seq = self.variables.reports(), self.panes.memory.seq
        number = self._beats.next_number
        beat = BeatFrame(self.replica, number, low_us, self.done, reports, seq)
        if self._beats.first:
            yield self._presence(online=True)
        if self._beats.is_due(beat):
            topic = self.topics.beat(self.replica.device)
            yield Publication(topic, beat.encode(), retain=False)

    def _presence(self, *, online: bool) -> Publication:
        frame = PresenceFrame(self.replica, self._next_number(PresenceFrame), online)
        topic = self.topics.presence(self.replica.device)
        return Publication(topic, frame.encode(), retain=True)

    def _next_number(self, kind: type[Frame]) -> int:
        """Return the number of this process's next frame of a kind."""
        self._frames_sent[kind] += 1
        return self._frames_sent[kind]

    def _result_publications(self) -> Iterator[Publication]:
        for name, key, text in self._results.news():
            topic = self.topics.result(name, self.replica.device, key)
            yield Publication(topic, text, retain=True)

    def _write_notes(self) -> None:
        """Put into the next commit what is worth none of its own."""
        self.counters.write(self.changes)
        settled = dict(self._settled)
        for name, agreement in self.variables.agreements().items():
            if agreement.settled:
                settled[name] = Settled(agreement.inputs, agreement.devices)
        if settled != self._settled:
            self._settled = self.changes.facts.settled = settled
        notes = self.intake.take_notes()
        if notes is not None:
            self.changes.add(notes)

    def results(self) -> dict[str, dict[str, Any]]:
        """Return every fold's value as plain data: parts, columns, inputs, agreement."""
        return self._results.plain()

    def report(self) -> dict[str, Any]:
        """Return the state of the agent as plain data, for people and for tests."""
        names = ("accepted", "repeated", "late", "too_late", "in_the_future", "refused")
        counted = {name: self.counters.totals.get(name, 0) for name in names}
        return {
            "device": self.replica.device,
            "replica": [self.replica.incarnation, self.replica.nonce],
            **counted,
            **self.panes.report(),
            "connected": self.connected,
            "done": self.done,
            "retired": list(self.members.membership.retired),
            "values": self.results(),
        }
