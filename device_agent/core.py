"""The agent as a pure state machine: inputs come with `now_us`, outputs are taken from it.

It never reads a clock, draws a random number, opens a socket or touches a disk. Its driver (the
process on a device, or a simulated fleet) does, in this order (`device_agent.durable`):

1. `wanted(batch)` names what the store must give back first; `recall` takes it.
2. `handle_batch`, `handle_frame`, `handle_connected`, `handle_tick` ... change the state.
3. `take_changes()` is committed, in one transaction.
4. `publications(now_us)` leave only after that; the core asserts it.

Readings, their identities, the panes and variables they changed, and the source's cursor are in
one and the same `Changes`, so no crash can separate them.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from crdts import Replica
from device_agent.batch import Batch
from device_agent.changes import BlockId, Changes, PaneId, PaneRow, Restored, SourceRow
from device_agent.identities import Identities
from device_agent.intake import Counters, Intake
from device_agent.panes import Panes
from device_agent.settings import Settings
from device_agent.variables import Result, Variables
from lasp_edge.messages import (
    MAX_FRAME_BYTES,
    AckFrame,
    AskFrame,
    BeatFrame,
    Frame,
    PresenceFrame,
    VariableFrame,
)
from lasp_edge.program import Program
from lasp_edge.topics import Topics

LONGEST_JUMP = 1 << 10
"""An own incarnation further ahead than this cannot be ours: it is left aside and counted."""

IDLE_BEATS = 5


class Publication(NamedTuple):
    """Something to publish."""

    topic: str
    payload: bytes
    retain: bool


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
        self._program = program
        self._changes = Changes()
        self._changes.replica = self.replica
        jitter = Random(nonce)
        self._identities = Identities()
        self.panes = Panes(self.replica, program.windows.values(), jitter)
        self.variables = Variables(program, self.replica, restored, self._changes)
        parts = (self._identities, self.panes, self.variables, self.counters)
        self.intake = Intake(program, device, self.settings, parts, restored.facts)
        for event, tags, block in restored.facts.get("highs", ()):
            self._identities.set_high(event, tags, block)
        self._sources = dict(restored.sources)
        self._live_sources: set[str] = set()
        self._lake: str | None = restored.facts.get("lake")
        self._reincarnated = False
        self.connected = False
        self._beats = 0
        self._idle = 0
        self._last_beat: BeatFrame | None = None
        self._next_us = dict.fromkeys(("variables", "beat", "results"), 0)
        self._asks: list[tuple[str, str]] = []
        self._result_texts: dict[str, str] = {}
        self._settled: dict[str, dict[str, Any]] = dict(restored.facts.get("settled", {}))
        self._stopping = False

    def wanted(self, batch: Batch) -> list[BlockId]:
        """Return the blocks of time that must be recalled before the batch is handled."""
        return self.intake.wanted(batch)

    def recall(
        self, block: BlockId, identities: bytes | None, panes: list[tuple[PaneId, PaneRow]]
    ) -> None:
        """Take back a block's identities and this replica's panes in it."""
        self._identities.recall(block, identities)
        self.panes.restore(panes, 0)

    def cursor(self, source: str) -> str | None:
        """Return where a source resumes, and count it among the sources of this life."""
        self._live_sources.add(source)
        return self._sources.setdefault(source, SourceRow()).cursor

    def handle_batch(self, batch: Batch, now_us: int) -> None:
        """Take readings in."""
        before = self._sources.get(batch.source, SourceRow())
        after = self.intake.take(batch, before, now_us, self._changes)
        self._sources[batch.source] = after
        if after != before:
            self._changes.sources[batch.source] = after

    def handle_end(self) -> None:
        """The sources are stopped: nothing more will be read in this life."""
        self._stopping = True

    def handle_connected(self, now_us: int) -> None:
        """The broker may have lost anything: publish own entries and dirty panes again."""
        self.connected = True
        self.panes.lost()
        self.variables.resend()
        self._result_texts.clear()
        self._next_us = dict.fromkeys(self._next_us, now_us)
        self._last_beat = None

    def handle_disconnected(self) -> None:
        """Nothing can be published for now."""
        self.connected = False

    def handle_unsent(self) -> None:
        """The link did not take something: send own entries and dirty panes again."""
        self.panes.lost()
        self.variables.resend()

    def handle_frame(self, frame: Frame, now_us: int) -> None:
        """Take a frame of a peer, of the lander, or an own one that the broker kept."""
        if isinstance(frame, VariableFrame):
            self._handle_variable(frame)
        elif isinstance(frame, BeatFrame):
            self._handle_beat(frame)
        elif isinstance(frame, PresenceFrame):
            if frame.replica.device != self.replica.device:
                self.variables.presence(frame.replica.device, online=frame.online)
        elif isinstance(frame, AckFrame):
            self._handle_ack(frame, now_us)
        elif isinstance(frame, AskFrame):
            self.variables.ask(frame.variable)

    def refuse_frame(self, reason: str) -> None:
        """Count a frame that could not be used."""
        self.counters.add(f"frame: {reason}"[:100], self._changes)

    def handle_tick(self, now_us: int) -> None:
        """Do what time alone brings: expire, fold, forget."""
        self.variables.expire(now_us, self._changes)
        self.variables.refold()
        self.panes.forget()
        self._note_settled()

    def take_changes(self) -> Changes:
        """Return what must be committed before `publications` is called."""
        taken, self._changes = self._changes, Changes()
        return taken

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Yield what is to be published now. Nothing while disconnected."""
        assert not self._changes, "changes are committed before anything is published"
        if not self.connected:
            return
        me = self.replica.device
        if self._due("variables", now_us, self.settings.interval_us):
            yield from self._variable_publications()
        for frame in self.panes.frames(now_us, everything=self.finished_reading):
            yield Publication(self.topics.pane(me), frame.encode(), retain=False)
        if self._due("beat", now_us, self.settings.beat_us):
            yield from self._beat_publications()
        if self.settings.results_us and self._due("results", now_us, self.settings.results_us):
            yield from self._result_publications()
        for device, variable in self._asks:
            ask = AskFrame(self.replica, 0, variable)
            yield Publication(self.topics.inbox(device), ask.encode(), retain=False)
        self._asks.clear()

    def last_will(self) -> Publication:
        """Return what the broker says when the connection breaks."""
        return self._presence(online=False)

    def goodbye(self) -> Publication:
        """Return what is said last when the agent stops in order."""
        return self._presence(online=False)

    def subscriptions(self) -> list[str]:
        """Return the topic filters that the agent listens to."""
        me = self.replica.device
        every = [self.topics.every(kind) for kind in ("var", "beat", "presence")]
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
        """Return the time before which nothing more will come, None while that is unknown."""
        lows = [self._source_low_us(name, now_us) for name in sorted(self._live_sources)]
        if not lows or None in lows:
            return None
        low_us = min(low for low in lows if low is not None)
        oldest_us = self.panes.oldest_dirty_us()
        if oldest_us is None and self.panes.more_stored:
            return None
        return low_us if oldest_us is None else min(low_us, oldest_us)

    def _source_low_us(self, name: str, now_us: int) -> int | None:
        row = self._sources[name]
        if row.done or self._stopping:
            high_us = self.intake.high_us if self.intake.high_us is not None else row.high_us
            if high_us is None:
                return now_us if row.stamped else None
            windows = self._program.windows.values()
            return max((window.end_of_last(high_us) for window in windows), default=high_us)
        if row.stamped or row.high_us is None:
            return now_us - self.settings.lateness_us if row.stamped else None
        return row.high_us - self.settings.lateness_us

    def _handle_variable(self, frame: VariableFrame) -> None:
        outcome = self.variables.receive(frame)
        if outcome == "newer":
            self._meet_own(frame.replica)
        elif outcome not in {"news", "known", "own"}:
            self.refuse_frame(f"variable: {outcome}")

    def _meet_own(self, other: Replica) -> None:
        """A later life of this device is known: the store was lost, or the device was cloned."""
        jump = other.incarnation - self.replica.incarnation
        if jump > LONGEST_JUMP:
            self.refuse_frame("variable: own incarnation too far ahead")
        elif self._reincarnated:
            self.counters.add("clone_alarms", self._changes)
        else:
            self._reincarnated = True
            self.replica = Replica(other.incarnation + 1, self.replica.nonce, other.device)
            self._changes.replica = self.replica
            self.panes.become(self.replica)
            self.variables.become(self.replica, self._changes)
            self.variables.refold()
            self._beats = 0

    def _handle_beat(self, frame: BeatFrame) -> None:
        device = frame.replica.device
        if device == self.replica.device:
            later = frame.replica.incarnation >= self.replica.incarnation
            if later and frame.replica.nonce != self.replica.nonce:
                self.counters.add("clone_alarms", self._changes)
            return
        self._asks += [(device, variable) for variable in self.variables.heard(frame)]

    def _handle_ack(self, frame: AckFrame, now_us: int) -> None:
        if frame.replica.device != self.replica.device:
            return
        if frame.lake != self._lake:
            if self._lake is not None:
                self.panes.all_dirty(now_us)
                self._changes.all_dirty = True
            self._lake = self._changes.facts["lake"] = frame.lake
        if frame.replica.nonce == self.replica.nonce:
            self.panes.acknowledged(frame.numbers, self._changes)

    def _due(self, what: str, now_us: int, every_us: int) -> bool:
        if now_us < self._next_us[what]:
            return False
        self._next_us[what] = now_us + every_us
        return True

    def _variable_publications(self) -> Iterator[Publication]:
        me = self.replica.device
        for frame in self.variables.take_unsent():
            payload = frame.encode()
            if len(payload) <= MAX_FRAME_BYTES:
                yield Publication(self.topics.variable(me, frame.variable), payload, retain=True)

    def _beat_publications(self) -> Iterator[Publication]:
        now_us = self._next_us["beat"] - self.settings.beat_us
        low_us = self.low_watermark_us(now_us)
        if low_us is not None:
            low_us = self.intake.promised_us = max(self.intake.promised_us, low_us)
        beat = BeatFrame(self.replica, 0, low_us, self.done, self.variables.reports())
        if self._last_beat is None:
            yield self._presence(online=True)
        if beat == self._last_beat:
            self._idle += 1
            if self._idle < IDLE_BEATS:
                return
        self._idle, self._last_beat = 0, beat
        self._beats += 1
        numbered = replace(beat, number=self._beats)
        yield Publication(self.topics.beat(self.replica.device), numbered.encode(), retain=False)

    def _presence(self, *, online: bool) -> Publication:
        frame = PresenceFrame(self.replica, 0, online)
        topic = self.topics.presence(self.replica.device)
        return Publication(topic, frame.encode(), retain=True)

    def _result_publications(self) -> Iterator[Publication]:
        for name, plain in self.results().items():
            text = json.dumps(plain, sort_keys=True)
            if self._result_texts.get(name) != text:
                self._result_texts[name] = text
                topic = self.topics.result(name, self.replica.device)
                yield Publication(topic, text.encode(), retain=True)

    def _note_settled(self) -> None:
        """Remember, in the next commit, the last inputs on which the whole fleet agreed."""
        for name, result in self.variables.fleet().items():
            if result.settled:
                self._settled[name] = {"inputs": result.inputs, "devices": result.devices}
        if self._changes and self._settled:
            self._changes.facts["settled"] = dict(self._settled)

    def results(self) -> dict[str, dict[str, Any]]:
        """Return every fold's value as plain data: parts, integers, inputs, agreement."""
        found = {}
        folds = self._program.local_folds
        for name, result in self.variables.local().items():
            found[name] = _plain(folds[name], result)
        dynamic = self._program.dynamic_folds
        for name, result in self.variables.fleet().items():
            found[name] = _plain(dynamic[name], result) | {
                "inputs": result.inputs,
                "devices": result.devices,
                "settled": result.settled,
                "except": list(result.offline),
            }
        return found

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
            "values": self.results(),
        }


def _plain(fold: Any, result: Result) -> dict[str, Any]:
    columns = dict(zip(fold.fold.columns_named, result.partial, strict=True))
    return {"parts": fold.fold.lower(result.partial, fold.resolution), **columns}
