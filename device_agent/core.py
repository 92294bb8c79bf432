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

from collections.abc import Iterator
from random import Random
from typing import Any

from crdts import Replica
from crdts.replica import INCARNATIONS
from device_agent.clock import is_time
from device_agent.fleet.asked import Asked
from device_agent.fleet.beats import IDLE_BEATS, Beats
from device_agent.fleet.members import Members
from device_agent.fleet.peers import too_far_ahead
from device_agent.fleet.results import Results
from device_agent.fleet.variables import Variables
from device_agent.intake.batch import Batch
from device_agent.intake.identities import Identities
from device_agent.intake.intake import Intake, Wanted
from device_agent.parts import Publication
from device_agent.settings import Settings
from device_agent.state.changes import BlockId, Changes, PaneId, PaneRow, Restored, SourceRow
from device_agent.state.counters import Counters
from device_agent.state.facts import Settled
from device_agent.state.panes import NEVER_US, Panes
from lasp_edge.language.program import Program, Update
from lasp_edge.protocol.frames import (
    MAX_FRAME_BYTES,
    AckFrame,
    AskFrame,
    BeatFrame,
    Frame,
    MemberFrame,
    PresenceFrame,
    VariableFrame,
)
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

    def __init__(  # noqa: PLR0915 - one line a field
        self,
        program: Program,
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
        self._identities = Identities(restored.last_blocks)
        self.panes = Panes(self.replica, program.windows.values(), Random(nonce))
        self._changes.facts.streams = tuple(self.panes.streams)
        self.variables = Variables(program, self.replica, restored, self._changes)
        self.members = Members(
            restored.facts.membership, Random(nonce + 1), self.variables.set_membership
        )
        parts = (self._identities, self.panes, self.variables, self.counters)
        self.intake = Intake(program, device, self.settings, parts, restored.facts)
        self._sources = dict(restored.sources)
        self._live_sources: set[str] = set()
        self._stopping = False
        self._lake: str | None = restored.facts.lake
        self._met: list[int] = []
        self.connected = False
        self._beats = Beats()
        self._next_us = dict.fromkeys(("variables", "beat", "results", "notes"), 0)
        self._asks: list[tuple[str, str]] = []
        self._results = Results(program, self.variables)
        self._settled = dict(restored.facts.settled or {})
        self._promised_us = restored.facts.promised_us

    @property
    def changes(self) -> Changes:
        """What must be committed before anything is published; `committed` says it is."""
        self.intake.join(self._changes)
        return self._changes

    def wanted(self, batch: Batch, now_us: int) -> Wanted:
        """Return what must be recalled before the batch is handled."""
        return self.intake.wanted(batch, now_us)

    def recall(
        self, blocks: dict[BlockId, bytes | None], panes: list[tuple[PaneId, PaneRow]]
    ) -> None:
        """Take back blocks of identities, and pane entries of this life."""
        for block, identities in blocks.items():
            self._identities.recall(block, identities)
        self.panes.restore(panes)

    def cursor(self, source: str) -> str | None:
        """Return where a source resumes, and count it among the sources of this life."""
        self._live_sources.add(source)
        row = self._sources.get(source, SourceRow())
        self._sources[source] = row._replace(done=False)  # its file may have grown
        return row.cursor

    def handle_batch(self, batch: Batch, now_us: int) -> None:
        """Take readings in."""
        before = self._sources.get(batch.source) or SourceRow()
        after = self.intake.take(batch, before, now_us, self._changes)
        self._sources[batch.source] = after
        if after != before:
            self._changes.sources[batch.source] = after

    def handle_end(self) -> None:
        """The sources are stopped: nothing more will be read in this life."""
        self._stopping = True

    def handle_stop(self) -> None:
        """The process is about to end in order: the next commit takes the notes with it."""
        self._next_us["notes"] = 0

    def handle_connected(self, now_us: int) -> None:
        """The broker may have lost anything: publish own entries and dirty panes again."""
        self.connected = True
        self.panes.lost()
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
            self.panes.unsent(publication.pane_frame)
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
            self._handle_ack(frame)
        elif isinstance(frame, AskFrame):
            self.variables.ask(frame.variable)
        elif isinstance(frame, MemberFrame):
            self._handle_member(frame, now_us)

    def refuse_frame(self, reason: str) -> None:
        """Count a frame that could not be used."""
        self.counters.note(f"frame: {reason}")

    def handle_tick(self, now_us: int) -> None:
        """Do what time alone brings: expire, fold, remember."""
        self.intake.join(self._changes)
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
        for (variable, _, handler), value in self.variables.derived.take_reached():
            update, asked = Update(self._program), Asked()
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
        self._identities.forget()
        self.panes.forget()

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Yield what is to be published now. Nothing while disconnected."""
        assert not self.changes, "changes are committed before anything is published"
        if not self.connected:
            return
        beat_due = self._due("beat", now_us, self.settings.beat_us)
        if self._due("variables", now_us, self.settings.interval_us) or beat_due:
            yield from self._variable_publications()  # before the beat that speaks of them
        topic = self.topics.pane(self.replica.device)
        for frame in self.panes.frames(now_us, everything=self.finished_reading):
            yield Publication(topic, frame.encode(), retain=False, pane_frame=frame.number)
        if beat_due:
            yield from self._beat_publications(now_us)
        if self.settings.results_us and self._due("results", now_us, self.settings.results_us):
            yield from self._result_publications()
        asks, self._asks = self._asks, []
        for device, variable in dict.fromkeys(asks):
            ask = AskFrame(self.replica, 0, variable)
            yield Publication(self.topics.inbox(device), ask.encode(), retain=False)
        for word in self.members.due(now_us):
            topic = self.topics.member(word.replica.device)
            yield Publication(topic, word.encode(), retain=True)

    def last_will(self) -> Publication:
        """Return what the broker says when the connection breaks."""
        return self._presence(online=False)

    def goodbye(self) -> Publication:
        """Return what is said last when the agent stops in order."""
        return self._presence(online=False)

    def subscriptions(self) -> list[str]:
        """Return the topic filters that the agent listens to."""
        me = self.replica.device
        every = [self.topics.every(kind) for kind in ("var", "beat", "presence", "member")]
        return [*every, self.topics.acknowledgement(me), self.topics.inbox(me)]

    def due_us(self) -> int:
        """Return when `handle_tick` and `publications` should be called next, at the latest."""
        return self._next_us["variables"]

    @property
    def finished_reading(self) -> bool:
        """Whether nothing more will be read: every source is finished, or they were stopped."""
        rows = [self._sources[name] for name in self._live_sources]
        return self._stopping or (bool(rows) and all(row.done for row in rows))

    @property
    def done(self) -> bool:
        """Whether nothing more will be read and everything has landed."""
        return self.finished_reading and self.panes.settled

    def low_watermark_us(self, now_us: int) -> int | None:
        """Return the time before which nothing more will come, None while that is unknown.

        It is at most the start of the oldest pane that has not landed, here or in the store, so it
        goes back where a late reading came or another lake must be filled.
        """
        lows = [self._source_low_us(self._sources[name], now_us) for name in self._live_sources]
        known_us = [low_us for low_us in lows if low_us is not None]
        if not known_us or len(known_us) < len(lows):
            return None
        oldest_us = self.panes.oldest_dirty_us()
        if oldest_us == NEVER_US:
            return None
        return min(known_us) if oldest_us is None else min(*known_us, oldest_us)

    def _source_low_us(self, row: SourceRow, now_us: int) -> int | None:
        if row.done or self._stopping:
            return self._end_us()
        seen = [] if row.high_us is None else [row.high_us]
        seen += [now_us] if row.stamped else []
        return min(seen) - self.settings.lateness_us if seen else None

    def _end_us(self) -> int | None:
        """Return what a finished source promises: the end of the last window; nobody says ever.

        Who has read nothing promises nothing: an empty recording is not of today.
        """
        high_us = self.intake.high_us
        if high_us is None:
            return None
        windows = self._program.windows.values()
        return max((window.end_of_last(high_us) for window in windows), default=high_us)

    def _handle_variable(self, frame: VariableFrame) -> None:
        outcome = self.variables.receive(frame, self.changes)
        if outcome == "newer" and self._meet_own(frame.replica):
            outcome = self.variables.receive(frame, self.changes)
        if outcome not in {"news", "known", "own", "newer"}:
            self.refuse_frame(f"variable: {outcome}")

    def _handle_member(self, frame: MemberFrame, now_us: int) -> None:
        outcome = self.members.receive(frame, now_us, self.changes)
        if outcome not in {"news", "known"}:
            self.refuse_frame(f"member: {outcome}")

    def _handle_presence(self, frame: PresenceFrame, now_us: int) -> None:
        if frame.replica.device != self.replica.device:
            self.variables.peers.presence(frame, now_us)
        elif frame.replica > self.replica:
            self._meet_own(frame.replica)
        elif not frame.online:  # the will of a connection that was thought alive, told too late
            self._beats.say_again()

    def _handle_beat(self, frame: BeatFrame, now_us: int) -> None:
        device = frame.replica.device
        if device != self.replica.device:
            self._asks += [(device, name) for name in self.variables.heard(frame, now_us)]
            return
        # A beat of an earlier life may come late; no later life can be there, and no other equal.
        later = frame.replica.incarnation >= self.replica.incarnation
        if later and frame.replica.nonce != self.replica.nonce:
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
        knows_itself = self.replica.incarnation > 1 or self._lake is not None
        return not (knows_itself and too_far_ahead(incarnation, self.replica.incarnation))

    def _handle_ack(self, frame: AckFrame) -> None:
        if frame.replica.device != self.replica.device:
            return
        if frame.replica > self.replica:
            self._meet_own(frame.replica)
        if frame.lake != self._lake:
            if self._lake is not None:
                self.panes.all_dirty(self.changes)
            self._lake = self.changes.facts.lake = frame.lake
        if frame.replica.nonce == self.replica.nonce:
            self.panes.acknowledged(frame.numbers, self.changes)

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
            self.intake.promised_us = max(self.intake.promised_us, low_us)
        reports, seq = self.variables.reports(), self.panes.seq
        beat = BeatFrame(self.replica, 0, low_us, self.done, reports, seq)
        if self._beats.first:
            yield self._presence(online=True)
        numbered = self._beats.numbered(beat)
        if numbered is not None:
            topic = self.topics.beat(self.replica.device)
            yield Publication(topic, numbered.encode(), retain=False)

    def _presence(self, *, online: bool) -> Publication:
        frame = PresenceFrame(self.replica, 0, online)
        topic = self.topics.presence(self.replica.device)
        return Publication(topic, frame.encode(), retain=True)

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
        if self.intake.promised_us != self._promised_us:
            self._promised_us = self.changes.facts.promised_us = self.intake.promised_us

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
            "dirty": self.panes.dirty,
            "connected": self.connected,
            "done": self.done,
            "retired": list(self.members.membership.retired),
            "values": self.results(),
        }
