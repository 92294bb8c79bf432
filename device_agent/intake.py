"""What enters: each reading is accepted, repeated, too late or refused, and counted.

A batch is taken in arrival order. A reading is quantised once; one with an own time is looked up
among the known identities; then the program's handlers and keys see it. Only a reading that passed
all of that changes anything, so a handler or key that fails refuses its reading and nothing else.
The samples of each pane are collected by column and folded in together.
"""

import json
from collections.abc import Mapping
from typing import Any

from crdts import Lattice
from device_agent.batch import Batch
from device_agent.changes import BlockId, Changes, ReadingRow, SourceRow
from device_agent.identities import BLOCK_US, Identities, pack
from device_agent.panes import Panes, Samples
from device_agent.settings import Settings
from device_agent.variables import Variables
from lasp_edge.numbers import Refused
from lasp_edge.program import Event, EventType, Program, Window

KEY_BYTES = 255
KEPT_TAGS = 1_000
_NO_TIME = -(2**62)


class Counters:
    """Totals by name, written through to the changes."""

    def __init__(self, totals: Mapping[str, int]) -> None:
        self.totals = dict(totals)

    def add(self, name: str, changes: Changes, by: int = 1) -> None:
        """Count."""
        total = self.totals[name] = self.totals.get(name, 0) + by
        changes.counters[name] = total


def tags_text(tags: Mapping[str, str]) -> str:
    """Return tags as canonical text; no tags are empty text."""
    if not tags:
        return ""
    return json.dumps(dict(sorted(tags.items())), separators=(",", ":"))


class Intake:
    """The way in.

    Args:
        program: the program.
        device: whose readings they are.
        settings: limits of lateness, retention and skew.
        parts: the identities, panes, variables and counters that readings change.
        facts: stored single values: `floor_us`, `stamp_us`, `high_us`, `promised_us`.

    Attributes:
        floor_us: readings below it are refused; it only rises.
        high_us: greatest accepted reading time; None before the first.
        promised_us: the greatest low watermark that was given out.
    """

    def __init__(
        self,
        program: Program,
        device: str,
        settings: Settings,
        parts: tuple[Identities, Panes, Variables, Counters],
        facts: Mapping[str, Any],
    ) -> None:
        self._program = program
        self._device = device
        self._settings = settings
        self._identities, self._panes, self._variables, self._counters = parts
        self._stamp_us: int = facts.get("stamp_us", _NO_TIME)
        self.floor_us: int = facts.get("floor_us", _NO_TIME)
        self.high_us: int | None = facts.get("high_us")
        self.promised_us: int = facts.get("promised_us", _NO_TIME)
        self._windows: dict[str, list[Window]] = {name: [] for name in program.events}
        for window in program.windows.values():
            self._windows[window.source.name].append(window)
        self._texts: dict[tuple[tuple[str, str], ...], str] = {}

    def wanted(self, batch: Batch) -> list[BlockId]:
        """Return the blocks of time that the store must give before the batch is taken."""
        found: dict[BlockId, None] = {}
        for name, time_us, tags in zip(batch.names, batch.times_us, batch.tags, strict=True):
            if time_us is not None:
                found[BlockId(name, self._text(tags), time_us // BLOCK_US)] = None
        evicted = self._panes.evicted_us // BLOCK_US
        return [b for b in found if b.block <= evicted or self._identities.wanted(b)]

    def pane_starts(self, block: BlockId) -> list[tuple[int, int, int]]:
        """Return (stream, least, end) of the pane starts whose readings lie in a block."""
        least, end = block.block * BLOCK_US, (block.block + 1) * BLOCK_US
        return [
            (window.stream, least // window.span_us * window.span_us, end)
            for window in self._windows.get(block.event, ())
        ]

    def take(self, batch: Batch, source: SourceRow, now_us: int, changes: Changes) -> SourceRow:
        """Take a batch in.

        Returns:
            The source as it stands after it.
        """
        for reason, count in batch.refused.items():
            self._refuse(reason, changes, count)
        pending = _Pending(batch, now_us, changes)
        high_us, stamped = source.high_us, source.stamped
        for index, quantised in enumerate(self._quantised(batch)):
            if type(quantised) is not int:
                self._refuse(str(quantised), changes)
                continue
            own_us = batch.times_us[index]
            time_us = self._take_one(pending, index, quantised, own_us)
            if time_us is None:
                continue
            if own_us is None:
                stamped = True
            elif high_us is None or time_us > high_us:
                high_us = time_us
        self._finish(pending)
        return SourceRow(batch.cursor, high_us, stamped, batch.done)

    def _quantised(self, batch: Batch) -> list[Any]:
        """Return a quantised value or a refusal for each reading."""
        events = self._program.events
        if len(set(batch.names)) == 1 and batch.names[0] in events:
            return list(events[batch.names[0]].resolution.quantise_column(batch.values))
        column: list[Any] = []
        unknown = Refused("unknown event")
        for name, value in zip(batch.names, batch.values, strict=True):
            event = events.get(name)
            column += event.resolution.quantise_column([value]) if event else [unknown]
        return column

    def _take_one(
        self, pending: "_Pending", index: int, quantised: int, own_us: int | None
    ) -> int | None:
        """Take one reading in; return its time, or None where it was not accepted."""
        batch, changes = pending.batch, pending.changes
        event, tags = self._program.events[batch.names[index]], batch.tags[index]
        stamp_us = max(pending.now_us, self._stamp_us + 1)
        identities: set[int] = set()
        identity = 0
        if own_us is not None:
            outcome = self._misplaced(own_us, pending.now_us)
            if outcome:
                self._counters.add(outcome, changes)
                return None
            block = BlockId(event.name, self._text(tags), own_us // BLOCK_US)
            identities, identity = self._identities.block(block), pack(own_us % BLOCK_US, quantised)
            if identity in identities:
                self._counters.add("repeated", changes)
                return None
            pending.blocks.add(block)
        time_us = stamp_us if own_us is None else own_us
        if not self._use(pending, event, (quantised, time_us, stamp_us), tags):
            return None
        identities.add(identity)
        self._accepted(pending, time_us, stamp_us)
        if self._settings.keep_readings:
            value = batch.values[index]
            row = ReadingRow(stamp_us, event.name, time_us, value, quantised, tags, batch.source)
            changes.readings.append(row)
        return time_us

    def _misplaced(self, own_us: int, now_us: int) -> str:
        """Return why a reading's own time rules it out, or nothing."""
        if own_us < self.floor_us:
            return "too_late"
        return "in_the_future" if own_us > now_us + self._settings.max_skew_us else ""

    def _use(
        self,
        pending: "_Pending",
        event: EventType,
        sample: tuple[int, int, int],
        tags: Mapping[str, str],
    ) -> bool:
        """Run handlers and keys and apply what they gave; on an error apply nothing."""
        quantised, time_us, stamp_us = sample
        windows = self._windows[event.name]
        keys = [""] * len(windows)
        if self._program.has_handlers(event.name) or any(w.key is not None for w in windows):
            seen = Event(event.name, event.resolution.real(quantised), time_us, self._device, tags)
            try:
                keys = [_key(window, seen) for window in windows]
                deltas = self._variables.apply(self._program.run_handlers(seen), stamp_us)
            except Exception as error:  # noqa: BLE001 - a user's function may raise anything
                self._refuse(f"program: {type(error).__name__}: {error}"[:200], pending.changes)
                return False
            pending.join(deltas)
        for window, key in zip(windows, keys, strict=True):
            pane = (window.stream, key, time_us // window.span_us * window.span_us)
            values, times = pending.samples.setdefault(pane, ([], []))
            values.append(quantised)
            times.append(time_us)
        return True

    def _accepted(self, pending: "_Pending", time_us: int, stamp_us: int) -> None:
        pending.accepted += 1
        pending.late += time_us < self.promised_us
        self._stamp_us = stamp_us
        if self.high_us is None or time_us > self.high_us:
            self.high_us = time_us

    def _finish(self, pending: "_Pending") -> None:
        """Fold the batch's samples into their panes and note what changed."""
        changes = pending.changes
        for (stream, key, pane_us), samples in pending.samples.items():
            pane = self._panes.own(stream, key, pane_us)
            if not self._panes.fold_in(pane, samples, pending.now_us, changes):
                self._refuse("partial out of range", changes, len(samples[0]))
        self._variables.record(pending.deltas, changes)
        for block in pending.blocks:
            self._identities.touched(block)
        changes.identities.update(self._identities.take_changed())
        for name, count in (("accepted", pending.accepted), ("late", pending.late)):
            if count:
                self._counters.add(name, changes, count)
        if pending.accepted and self.high_us is not None:
            self.floor_us = max(self.floor_us, self.high_us - self._settings.retain_us)
            self._panes.advance(self.high_us)
            facts = {"stamp_us": self._stamp_us, "high_us": self.high_us, "floor_us": self.floor_us}
            changes.facts.update(facts)

    def _refuse(self, reason: str, changes: Changes, count: int = 1) -> None:
        storable = reason.encode("utf-8", "backslashreplace").decode()
        self._counters.add("refused", changes, count)
        self._counters.add(f"refused: {storable}", changes, count)

    def _text(self, tags: Mapping[str, str]) -> str:
        if not tags:
            return ""
        items = tuple(tags.items())
        text = self._texts.get(items)
        if text is None:
            if len(self._texts) >= KEPT_TAGS:
                self._texts.clear()
            text = self._texts[items] = tags_text(tags)
        return text


class _Pending:
    """What one batch has brought so far."""

    __slots__ = ("accepted", "batch", "blocks", "changes", "deltas", "late", "now_us", "samples")

    def __init__(self, batch: Batch, now_us: int, changes: Changes) -> None:
        self.batch = batch
        self.now_us = now_us
        self.changes = changes
        self.samples: dict[tuple[int, str, int], Samples] = {}  # by stream, key, pane start
        self.deltas: dict[str, Lattice] = {}
        self.blocks: set[BlockId] = set()
        self.accepted = 0
        self.late = 0

    def join(self, deltas: list[tuple[str, Lattice]]) -> None:
        """Join deltas of variables into those of the batch."""
        for name, delta in deltas:
            if name in self.deltas:
                self.deltas[name] |= delta
            else:
                self.deltas[name] = delta


def _key(window: Window, event: Event) -> str:
    if window.key is None:
        return ""
    key = window.key(event)
    if not isinstance(key, str) or len(key.encode()) > KEY_BYTES:
        raise ValueError(f"the key of window {window.name!r} must be text of at most {KEY_BYTES} B")
    return key
