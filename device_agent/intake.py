"""What enters: each reading is accepted, repeated, too late or refused, and counted.

A batch is taken in arrival order. A reading is quantised once; one with an own time is looked up
among the known identities; then the program's keys, folds and handlers see it. Only a reading that
passed all of that changes anything, so a function of the user's that fails refuses its reading and
nothing else. What a batch brings to a pane or a variable is collected and joined in one go.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from device_agent.batch import Batch
from device_agent.changes import BlockId, Changes, ReadingRow, SourceRow
from device_agent.counters import Counters
from device_agent.identities import BLOCK_US, Identities, pack
from device_agent.panes import Panes
from device_agent.settings import Settings
from device_agent.variables import Asked, Variables
from lasp_edge.declarations import Change, Event, EventType, Window
from lasp_edge.fold import Partial
from lasp_edge.folds import fold_of
from lasp_edge.numbers import Refused
from lasp_edge.program import Program

KEY_BYTES = 255
KEPT_TAGS = 1_000
FIRST_US = -(2**57)
"""Readings are not older than this, some 4,500 years before the epoch: no frame can say it."""
_NO_TIME = -(2**62)
_NO_CHANGES: list[Change] = []


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


class _Into(NamedTuple):
    """A window that readings go into; `trusted` if its fold is built in and cannot fail."""

    window: Window
    span_us: int
    trusted: bool


class _Way(NamedTuple):
    """What the readings of one event go through."""

    event: EventType
    into: tuple[_Into, ...]
    seen: bool  # by a key or handler, which want an Event


class _Shelf:
    """The identities of one block while a batch is taken."""

    __slots__ = ("block", "identities", "touched")

    def __init__(self, block: BlockId, identities: set[int]) -> None:
        self.block = block
        self.identities = identities
        self.touched = False


class _Filling:
    """What a batch brings to one pane entry.

    A built-in fold cannot fail, and lifts all samples together at the end. A fold of the user's own
    may fail or leave its columns' range, as any fold may in an entry that is half full: then each
    sample is lifted when it comes, so that it can be refused.
    """

    __slots__ = ("_held", "_partial", "_window", "sure", "times_us", "values")

    def __init__(self, window: Window, held: Partial, *, trusted: bool) -> None:
        doubled = [value if value is None else 2 * value for value in held]
        self.sure = trusted and window.fold.within_limits(doubled)
        self.values: list[int] = []
        self.times_us: list[int] = []
        self._window = window
        self._held = held
        self._partial = window.fold.zero

    def with_sample(self, quantised: int, time_us: int) -> Partial:
        """Return what the batch brings with one more sample.

        Raises:
            ValueError: the entry would leave the range of its columns.
        """
        fold = self._window.fold
        lifted = fold.lift(quantised, time_us)
        if fold.within_limits(lifted):
            partial = fold.combine(self._partial, lifted)
            if fold.within_limits(fold.combine(self._held, partial)):
                return partial
        raise ValueError(f"window {self._window.name!r}: the partial is out of range")

    def add(self, quantised: int, time_us: int) -> None:
        """Add a sample that was found fit."""
        self.values.append(quantised)
        self.times_us.append(time_us)
        if not self.sure:
            self._partial = self.with_sample(quantised, time_us)

    def partial(self) -> Partial:
        """Return what the batch brings."""
        if self.sure:
            return self._window.fold.lift_column(self.values, self.times_us)
        return self._partial


class _Taking:
    """What one batch has brought so far."""

    __slots__ = ("asked", "changes", "counted", "fillings", "now_us", "shelves", "source")

    def __init__(self, source: str, now_us: int, changes: Changes) -> None:
        self.source = source
        self.now_us = now_us
        self.changes = changes
        self.asked = Asked()
        self.counted: Counter[str] = Counter()
        self.fillings: dict[tuple[int, str, int], _Filling] = {}  # by stream, key, pane start
        self.shelves: dict[tuple[str, int, int], _Shelf] = {}  # by event, id of tags, block

    def refuse(self, reason: str, by: int = 1) -> None:
        """Count refused readings."""
        self.counted["refused"] += by
        self.counted[f"refused: {reason}"] += by


class _Reading(NamedTuple):
    """One quantised reading; `own_us` is None where the agent stamps it."""

    name: str
    own_us: int | None
    tags: Mapping[str, str]
    quantised: int
    value: Any


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
        self.floor_us: int = facts.get("floor_us", FIRST_US)
        self.high_us: int | None = facts.get("high_us")
        self.promised_us: int = facts.get("promised_us", _NO_TIME)
        self._ways = {name: self._way(event) for name, event in program.events.items()}
        self._texts: dict[tuple[tuple[str, str], ...], str] = {}

    def _way(self, event: EventType) -> _Way:
        into = [
            _Into(window, window.span_us, fold_of(window.fold.description()) is not None)
            for window in self._program.windows.values()
            if window.source.name == event.name
        ]
        keyed = any(each.window.key is not None for each in into)
        return _Way(event, tuple(into), keyed or self._program.has_handlers(event.name))

    def wanted(self, batch: Batch, now_us: int) -> Wanted:
        """Return what the store must give before the batch is taken."""
        first_us, last_us = self.floor_us, now_us + self._settings.max_skew_us
        stamp_us = max(now_us, self._stamp_us + 1)
        where: dict[tuple[str, str, int], None] = {}
        for name, own_us, tags in zip(batch.names, batch.times_us, batch.tags, strict=True):
            if own_us is None:
                where[name, "", stamp_us // BLOCK_US] = None
                stamp_us += 1
            elif first_us <= own_us <= last_us:
                where[name, self._text(tags) if tags else "", own_us // BLOCK_US] = None
        found = [BlockId(*place) for place in where if place[0] in self._ways]
        evicted = self._panes.evicted_us // BLOCK_US
        panes = {
            range_us: None for b in found if b.block <= evicted for range_us in self._panes_of(b)
        }
        return Wanted([b for b in found if self._identities.wanted(b)], list(panes))

    def _panes_of(self, block: BlockId) -> list[PaneRange]:
        """Return where the panes start whose readings lie in a block."""
        least_us, end_us = block.block * BLOCK_US, (block.block + 1) * BLOCK_US
        return [
            PaneRange(window.stream, least_us // span_us * span_us, end_us)
            for window, span_us, _ in self._ways[block.event].into
        ]

    def take(self, batch: Batch, source: SourceRow, now_us: int, changes: Changes) -> SourceRow:
        """Take a batch in.

        Returns:
            The source as it stands after it.
        """
        taking = _Taking(batch.source, now_us, changes)
        for reason, count in batch.refused.items():
            taking.refuse(reason, count)
        high_us, stamped = source.high_us, source.stamped
        columns = (batch.names, batch.times_us, batch.tags, self._quantised(batch), batch.values)
        for reading in map(_Reading._make, zip(*columns, strict=True)):
            if type(reading.quantised) is not int:
                taking.refuse(str(reading.quantised))
                continue
            time_us = self._take_one(taking, reading)
            if time_us is None:
                continue
            if reading.own_us is None:
                stamped = True
            elif high_us is None or time_us > high_us:
                high_us = time_us
        self._finish(taking)
        return SourceRow(batch.cursor, high_us, stamped, batch.done)

    def _quantised(self, batch: Batch) -> Sequence[int | Refused]:
        """Return a quantised value or a refusal for each reading."""
        ways = self._ways
        if len(set(batch.names)) == 1 and batch.names[0] in ways:
            return ways[batch.names[0]].event.resolution.quantise_column(batch.values)
        column: list[int | Refused] = []
        unknown = Refused("unknown event")
        for name, value in zip(batch.names, batch.values, strict=True):
            way = ways.get(name)
            column += way.event.resolution.quantise_column([value]) if way else [unknown]
        return column

    def _take_one(self, taking: _Taking, reading: _Reading) -> int | None:
        """Take one reading in; return its time, or None where it was not accepted."""
        own_us = reading.own_us
        stamp_us = max(taking.now_us, self._stamp_us + 1)
        time_us = stamp_us if own_us is None else own_us
        if time_us < self.floor_us:
            taking.counted["too_late"] += 1
            return None
        if own_us is None:
            if not self._use(taking, reading, time_us):
                return None
        elif own_us > taking.now_us + self._settings.max_skew_us:
            taking.counted["in_the_future"] += 1
            return None
        else:
            shelf = self._shelf(taking, reading.name, reading.tags, own_us)
            identity = pack(own_us % BLOCK_US, reading.quantised)
            if identity in shelf.identities:
                taking.counted["repeated"] += 1
                return None
            if not self._use(taking, reading, time_us):
                return None
            shelf.identities.add(identity)
            shelf.touched = True
        self._accept(taking, reading, time_us, stamp_us)
        return time_us

    def _shelf(self, taking: _Taking, name: str, tags: Mapping[str, str], own_us: int) -> _Shelf:
        """Return the identities of the block that a reading lies in."""
        where = (name, id(tags), own_us // BLOCK_US)
        shelf = taking.shelves.get(where)
        if shelf is None:
            block = BlockId(name, self._text(tags), where[2])
            shelf = taking.shelves[where] = _Shelf(block, self._identities.block(block))
        return shelf

    def _use(self, taking: _Taking, reading: _Reading, time_us: int) -> bool:
        """Let panes and variables have a reading; on an error none of them has it."""
        way, quantised = self._ways[reading.name], reading.quantised
        key: Callable[[Window, Event], str] = _no_key
        changes = _NO_CHANGES
        event: Any = None
        try:
            if way.seen:
                real = way.event.resolution.real(quantised)
                tags = MappingProxyType(reading.tags)
                event = Event(reading.name, real, time_us, self._device, tags)
                key, changes = _key, self._program.run_handlers(event)
            fillings = [
                self._filling(taking, each, key(each.window, event), time_us) for each in way.into
            ]
            for filling in fillings:
                if not filling.sure:
                    filling.with_sample(quantised, time_us)
            if changes:
                self._variables.apply(changes, taking.asked)
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything
            taking.refuse(f"program: {_said(error)}")
            return False
        for filling in fillings:
            filling.add(quantised, time_us)
        return True

    def _filling(self, taking: _Taking, into: _Into, key: str, time_us: int) -> _Filling:
        window, span_us, trusted = into
        where = (window.stream, key, time_us - time_us % span_us)
        filling = taking.fillings.get(where)
        if filling is None:
            held = self._panes.partial(self._panes.own(*where))
            filling = taking.fillings[where] = _Filling(window, held, trusted=trusted)
        return filling

    def _accept(self, taking: _Taking, reading: _Reading, time_us: int, stamp_us: int) -> None:
        taking.counted["accepted"] += 1
        if time_us < self.promised_us:
            taking.counted["late"] += 1
        self._stamp_us = stamp_us
        if self.high_us is None or time_us > self.high_us:
            self.high_us = time_us
            self.floor_us = max(self.floor_us, time_us - self._settings.retain_us)
        if self._settings.keep_readings:
            name, _, tags, quantised, value = reading
            text = self._text(tags)
            row = ReadingRow(stamp_us, name, time_us, value, quantised, text, taking.source)
            taking.changes.readings.append(row)

    def _finish(self, taking: _Taking) -> None:
        """Join what the batch brought into panes and variables, and note what changed."""
        changes = taking.changes
        for where, filling in taking.fillings.items():
            if filling.values:
                pane = self._panes.own(*where)
                self._panes.fold_in(pane, filling.partial(), taking.now_us, changes)
        self._variables.record(taking.asked, self._stamp_us, changes)
        for shelf in taking.shelves.values():
            if shelf.touched:
                self._identities.touched(shelf.block)
        changes.identities.update(self._identities.take_changed())
        for name, count in taking.counted.items():
            self._counters.add(name, changes, count)
        if taking.counted["accepted"] and self.high_us is not None:
            self._panes.advance(self.high_us)
            facts = {"stamp_us": self._stamp_us, "high_us": self.high_us, "floor_us": self.floor_us}
            changes.facts.update(facts)

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


def _no_key(_window: Window, _event: Event) -> str:
    return ""


def _key(window: Window, event: Event) -> str:
    if window.key is None:
        return ""
    key: Any = window.key(event)
    if not isinstance(key, str) or len(key.encode()) > KEY_BYTES:
        raise ValueError(f"the key of window {window.name!r} must be text of at most {KEY_BYTES} B")
    if any(character < " " for character in key):
        raise ValueError(f"the key of window {window.name!r} must not hold control characters")
    return str(key)


def _said(error: Exception) -> str:
    """Return what an error says; one that cannot even say that is known by its type."""
    kind = type(error).__name__
    try:
        return f"{kind}: {error}"
    except Exception:  # noqa: BLE001 - its own text may raise anything
        return kind
