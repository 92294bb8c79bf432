"""What enters: each reading is accepted, repeated, too late or refused, and counted.

A batch is taken in arrival order. A reading is quantised once; one with an own time is looked up
among the known identities; then the program's keys, folds and handlers see it. Only a reading that
passed all of that changes anything, so a function of the user's that fails refuses its reading and
nothing else. What readings bring to panes and variables is collected, and joined once a commit.

There are two ways in. One reading after the other is the definition, and the way of readings that
a function of the user's must see. All others go by whole columns (`device_agent.intake.columns`).
"""

import json
from collections.abc import Iterable, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from device_agent.fleet.variables import Variables
from device_agent.intake.batch import Batch
from device_agent.intake.columns import Came, Columns
from device_agent.intake.identities import BLOCK_US, Identities, block_numbers
from device_agent.intake.taken import Filling, Into, Marks, Taken, Way
from device_agent.settings import Settings
from device_agent.state.changes import BlockId, Changes, ReadingRow, SourceRow
from device_agent.state.counters import Counters
from device_agent.state.facts import Facts
from device_agent.state.panes import Panes
from lasp_edge.folds.numbers import Refused
from lasp_edge.language.declarations import Change, Event, key_of
from lasp_edge.language.program import Program

KEPT_TAGS = 1_000
FIRST_US = -(2**57)
"""Readings are not older than this, some 4,500 years before the epoch: no frame can say it."""
COLUMN_LEAST = 8
"""Fewer readings than this are sooner taken in one by one."""


def tags_text(tags: Mapping[str, str]) -> str:
    """Return tags as canonical text; no tags are empty text."""
    if not tags:
        return ""
    return json.dumps(dict(sorted(tags.items())), separators=(",", ":"))


class PaneRange(NamedTuple):
    """Panes of a stream with least_us <= start < end_us."""

    stream: int
    least_us: int
    end_us: int


class Wanted(NamedTuple):
    """What a batch needs of the store: blocks of identities, and pane entries of this life."""

    blocks: list[BlockId]
    panes: list[PaneRange]


NOTHING = Wanted([], [])


class Intake:
    """The way in.

    Args:
        program: the program.
        device: whose readings they are.
        settings: limits of lateness, retention and skew.
        parts: the identities, panes, variables and counters that readings change.
        facts: what was restored.

    Attributes:
        marks: how far the readings have come.
        column_least: batches of fewer readings are taken in one by one.
    """

    def __init__(
        self,
        program: Program,
        device: str,
        settings: Settings,
        parts: tuple[Identities, Panes, Variables, Counters],
        facts: Facts,
    ) -> None:
        self._program = program
        self._device = device
        self._settings = settings
        self._identities, self._panes, self._variables, self._counters = parts
        floor_us = FIRST_US if facts.floor_us is None else facts.floor_us
        self.marks = Marks(settings.retain_us, floor_us)
        if facts.stamp_us is not None:
            self.marks.stamp_us = facts.stamp_us
        if facts.promised_us is not None:
            self.marks.promised_us = facts.promised_us
        self.marks.high_us = facts.high_us
        self._ways = {name: Way(program, event) for name, event in program.events.items()}
        self._texts: dict[tuple[tuple[str, str], ...], str] = {}
        self._columns = Columns(self._ways, self.marks, parts[:2], self._text, settings)
        self._max_skew_us = settings.max_skew_us
        self.column_least = COLUMN_LEAST
        self._taken = Taken()

    @property
    def floor_us(self) -> int:
        """Readings below it are refused; it only rises."""
        return self.marks.floor_us

    @property
    def high_us(self) -> int | None:
        """Greatest accepted reading time; None before the first."""
        return self.marks.high_us

    @property
    def promised_us(self) -> int:
        """The greatest low watermark that was given out."""
        return self.marks.promised_us

    @promised_us.setter
    def promised_us(self, low_us: int) -> None:
        self.marks.promised_us = low_us

    def wanted(self, batch: Batch, now_us: int) -> Wanted:
        """Return what the store must give before the batch is taken."""
        evicted = self._panes.evicted_us // BLOCK_US
        if len(batch.times_us) == 1 and self._is_near(batch, evicted):
            return NOTHING
        blocks: list[BlockId] = []
        panes: dict[PaneRange, None] = {}
        for event, tags, number in self._places(batch, now_us):
            if number > evicted and self._identities.is_at(event, tags, number):
                continue  # most often, readings lie where the last one did
            block = BlockId(event, tags, number)
            if self._identities.wanted(block):
                blocks.append(block)
            if number <= evicted:
                panes.update(dict.fromkeys(self._panes_of(block)))
        return Wanted(blocks, list(panes)) if blocks or panes else NOTHING

    def _is_near(self, batch: Batch, evicted: int) -> bool:
        """Return whether a single reading lies in the block that the last one of its stream did."""
        time_us = batch.times_us[0]
        if time_us is None:
            return False
        number, text = time_us // BLOCK_US, self._text(batch.tags[0])
        return number > evicted and self._identities.is_at(batch.names[0], text, number)

    def _places(self, batch: Batch, now_us: int) -> Iterable[tuple[str, str, int]]:
        """Return event, tags and block of the readings of a batch, in the order they come in."""
        first_us, last_us = self.marks.floor_us, now_us + self._max_skew_us
        if batch.is_uniform and batch.has_own_times:
            name, text = batch.names[0], self._text(batch.tags[0])
            first, last = first_us // BLOCK_US, last_us // BLOCK_US
            known = name in self._ways
            numbers = block_numbers(cast("list[int]", batch.times_us))
            return [(name, text, n) for n in numbers if known and first <= n <= last]
        stamp_us = self.marks.next_stamp_us(now_us)
        where: dict[tuple[str, str, int], None] = {}
        for name, time_us, tags in zip(batch.names, batch.times_us, batch.tags, strict=True):
            if time_us is None:
                where[name, "", stamp_us // BLOCK_US] = None
                stamp_us += 1
            elif first_us <= time_us <= last_us:
                where[name, self._text(tags), time_us // BLOCK_US] = None
        return [place for place in where if place[0] in self._ways]

    def _panes_of(self, block: BlockId) -> list[PaneRange]:
        """Return where the panes start whose readings lie in a block."""
        least_us, end_us = block.block * BLOCK_US, (block.block + 1) * BLOCK_US
        return [
            PaneRange(window.stream, least_us // span_us * span_us, end_us)
            for window, span_us, _ in self._ways[block.event].into
        ]

    def take(self, batch: Batch, source: SourceRow, now_us: int, changes: Changes) -> SourceRow:
        """Take a batch in; what it brings is in `changes` after the next `join`.

        Returns:
            The source as it stands after it.
        """
        taken, by_column = self._taken, len(batch.names) >= self.column_least
        if taken.fillings and by_column:
            self.join(changes)
            taken = self._taken
        taken.now_us = now_us
        for reason, count in batch.refused.items():
            taken.refuse(reason, count)
        came = None
        if by_column:
            came = self._columns.take(batch, taken, changes)
        high_us, stamped = came or self._one_by_one(batch, taken, changes)
        if source.high_us is not None:
            high_us = source.high_us if high_us is None else max(high_us, source.high_us)
        return SourceRow(batch.cursor, high_us, stamped or source.stamped, batch.done)

    def join(self, changes: Changes) -> None:
        """Join what was taken into panes and variables, and note what changed."""
        taken = self._taken
        if not (taken.accepted or taken.counted):
            return
        if taken.accepted:
            taken.counted["accepted"] = taken.accepted
        self._taken = Taken()
        for where, filling in sorted(taken.fillings.items(), key=itemgetter(0)):
            if filling.values:
                pane = self._panes.own(*where)
                self._panes.fold_in(pane, filling.partial(), taken.now_us, changes)
        self._variables.record(taken.asked, self.marks.stamp_us, changes)
        changes.identities.update(self._identities.take_changed())
        for name, count in (+taken.counted).items():
            self._counters.add(name, changes, count)
        marks = self.marks
        if taken.accepted and marks.high_us is not None:
            self._panes.advance(marks.high_us)
            changes.facts.stamp_us = marks.stamp_us
            changes.facts.high_us = marks.high_us
            changes.facts.floor_us = marks.floor_us

    def _one_by_one(self, batch: Batch, taken: Taken, changes: Changes) -> Came:
        """Take one reading in after the other: the definition of what `Columns` does."""
        high_us, stamped = None, False
        columns = (batch.names, batch.times_us, batch.tags, batch.values)
        for name, own_us, tags, value in zip(*columns, strict=True):
            try:
                quantised = self._ways[name].quantise(value)
            except (KeyError, Refused) as error:
                taken.refuse("unknown event" if isinstance(error, KeyError) else str(error))
                continue
            time_us = self._take_one(taken, name, own_us, tags, quantised)
            if time_us is None:
                continue
            if own_us is None:
                stamped = True
            elif high_us is None or own_us > high_us:
                high_us = own_us
            if self._settings.keep_readings:
                at_us, text = self.marks.stamp_us, self._text(tags)
                row = ReadingRow(at_us, name, time_us, value, quantised, text, batch.source)
                changes.readings.append(row)
        return high_us, stamped

    def _take_one(  # noqa: C901 - the path that every single reading takes
        self, taken: Taken, name: str, own_us: int | None, tags: Mapping[str, str], quantised: int
    ) -> int | None:
        """Take one reading in; return its time, or None where it was not accepted."""
        marks, block = self.marks, None
        stamp_us = max(taken.now_us, marks.stamp_us + 1)
        time_us = stamp_us if own_us is None else own_us
        if time_us < marks.floor_us:
            taken.counted["too_late"] += 1
            return None
        if own_us is not None:
            if own_us > taken.now_us + self._max_skew_us:
                taken.counted["in_the_future"] += 1
                return None
            block = self._identities.at(name, self._text(tags) if tags else "", own_us)
            if own_us <= block.last_us and block.holds(own_us, quantised):
                taken.counted["repeated"] += 1
                return None
        if not self._use(taken, self._ways[name], tags, quantised, time_us):
            return None
        if block is not None:
            block.put(time_us, quantised)
            if not block.changed:
                self._identities.touched(block)
        taken.accepted += 1
        if time_us < marks.promised_us:
            taken.counted["late"] += 1
        marks.stamp_us = stamp_us
        if marks.high_us is None or time_us > marks.high_us:
            marks.reach(time_us)
        return time_us

    def _use(
        self, taken: Taken, way: Way, tags: Mapping[str, str], quantised: int, time_us: int
    ) -> bool:
        """Let panes and variables have a reading; on an error none of them has it."""
        event: Any = None
        try:
            if way.seen:
                real = way.event.resolution.real(quantised)
                shown = MappingProxyType(tags)
                event = Event(way.event.name, real, time_us, self._device, shown)
            fillings = [self._filling(taken, way, into, event, time_us) for into in way.into]
            for filling in fillings:
                if not filling.sure:
                    filling.with_sample(quantised, time_us)
            if way.seen or way.careful:
                changes = self._changes_of(way, event, quantised, time_us)
                self._variables.apply(changes, taken.asked)
            else:
                for variable in way.collecting:
                    taken.asked.extend(variable.name, "", (quantised,), (time_us,))
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything
            taken.refuse(f"program: {_said(error)}")
            return False
        for filling in fillings:
            filling.add(quantised, time_us)
        return True

    def _changes_of(self, way: Way, event: Any, quantised: int, time_us: int) -> list[Change]:
        """Return what collects a reading, and what its handlers ask for."""
        changes = []
        for variable in way.collecting:
            key = key_of(variable.key, event, f"variable {variable.name!r}")
            changes.append(Change(variable.name, "add", (quantised, time_us), key))
        return changes + self._program.run_handlers(event) if way.seen else changes

    def _filling(self, taken: Taken, way: Way, into: Into, event: Any, time_us: int) -> Filling:
        window, span_us, stream = into
        key = ""
        if window.key is not None:
            key = key_of(window.key, event, f"window {window.name!r}")
        where = (stream, key, time_us - time_us % span_us)
        filling = taken.fillings.get(where)
        if filling is None:
            held = self._panes.held_in(self._panes.own(*where))
            filling = Filling(window, held, trusted=stream in way.trusted)
            taken.fillings[where] = filling
        return filling

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


def _said(error: Exception) -> str:
    """Return what an error says; one that cannot even say that is known by its type."""
    kind = type(error).__name__
    try:
        return f"{kind}: {error}"
    except Exception:  # noqa: BLE001 - its own text may raise anything
        return kind
