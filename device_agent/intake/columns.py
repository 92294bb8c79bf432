"""Whole columns of readings, taken in without a Python function or an object a reading.

What goes by columns: readings of events that no function of the user's sees one by one. Each step
is one operation over a column: it is quantised, compared with floor and clock, looked up among the
known identities, cut at the panes' boundaries and lifted, and collected. What is unusual in a batch
is taken out first (refused values, times out of range) or looked at by itself (a block of
identities that may hold a repeat). What is unusual as a whole is left to the one-by-one path, which
is the definition: both change exactly the same, and a test compares them.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from operator import not_
from typing import Any, NamedTuple

from device_agent.intake.batch import Batch, ascends
from device_agent.intake.identities import BLOCK_US, Identities
from device_agent.intake.taken import Marks, Taken, Way, room_in
from device_agent.settings import Settings
from device_agent.state.changes import BlockId, Changes, PaneId, ReadingRow
from device_agent.state.panes import Panes
from lasp_edge.folds.numbers import Refused
from lasp_edge.language.declarations import Window

Tags = Mapping[str, str]


Came = tuple[int | None, bool]
"""The greatest own time that was accepted, and whether readings were stamped."""


class Column:
    """The readings of one event, in the order in which they came; `read` is as they were read.

    Attributes:
        order: their places by time; None if that is how they came.
        by_time: times and values in the order of the times.
        strict: no two have one time.
    """

    __slots__ = ("by_time", "order", "read", "strict", "tags", "times_us", "values", "way")

    def __init__(
        self,
        way: Way,
        times_us: Sequence[int],
        values: Sequence[int],
        tags: Sequence[Tags],
        read: Sequence[Any],
    ) -> None:
        self.way = way
        self.times_us, self.values, self.tags, self.read = times_us, values, tags, read
        self.order: list[int] | None = None
        self.by_time = times_us, values
        self.strict = ascends(times_us)
        if not self.strict:
            order = self.order = sorted(range(len(times_us)), key=times_us.__getitem__)
            self.by_time = _at(order, times_us), _at(order, values)
            self.strict = ascends(self.by_time[0])

    def __len__(self) -> int:
        return len(self.times_us)

    def without(self, places: set[int]) -> "Column":
        """Return the column without the readings at these places."""
        kept = [place not in places for place in range(len(self))]
        return Column(self.way, *_kept(kept, self.times_us, self.values, self.tags, self.read))


class Cut(NamedTuple):
    """The panes of one window that a column touches, and where in its order each begins."""

    window: Window
    panes: list[PaneId]
    bounds: list[int]


class Columns:
    """The way in for whole columns.

    Args:
        ways: what the readings of each event go through.
        marks: how far the readings have come.
        parts: the identities and panes that they change.
        text_of: gives tags as canonical text.
        settings: how far ahead a reading may be, and whether readings are kept.
    """

    def __init__(
        self,
        ways: Mapping[str, Way],
        marks: Marks,
        parts: tuple[Identities, Panes],
        text_of: Callable[[Tags], str],
        settings: Settings,
    ) -> None:
        self._ways = ways
        self._marks = marks
        self._identities, self._panes = parts
        self._text_of = text_of
        self._settings = settings

    def take(self, batch: Batch, taken: Taken, changes: Changes) -> Came | None:
        """Take a batch in; or change nothing and return None if it does not go by columns.

        Args:
            batch: one or more readings.
            taken: where what they bring to variables and counters goes; no pane waits in it.
            changes: where the panes go.

        Raises:
            ValueError: the columns are not equally long.
        """
        if len({len(batch), len(batch.times_us), len(batch.values), len(batch.tags)}) > 1:
            raise ValueError("batch: names, times, values and tags of one length are needed")
        stamped, counted = batch.is_stamped, Counter[str]()
        if not stamped and not batch.has_own_times:
            return None
        columns = self._columns(batch, taken.now_us, counted, stamped=stamped)
        if columns is None or not self._is_calm(columns):
            return None
        cut = [(column, self._cuts(column)) for column in columns]
        if not all(self._have_room(column, cuts) for column, cuts in cut):
            return None
        taken.counted.update(counted)
        accepted: list[tuple[Column, list[Cut]]] = []
        for column, cuts in cut:
            repeated = set() if stamped else self._put(column)
            taken.counted["repeated"] += len(repeated)
            left = column.without(repeated) if repeated else column
            if len(left):
                self._accept(left, batch.source, taken, changes)
                accepted.append((left, self._cuts(left) if repeated else cuts))
        self._fold(accepted, taken.now_us, changes)
        highs_us = [column.by_time[0][-1] for column, _ in accepted]
        return None if stamped else max(highs_us, default=None), stamped and bool(highs_us)

    def _columns(
        self, batch: Batch, now_us: int, counted: Counter[str], *, stamped: bool
    ) -> list[Column] | None:
        """Return what may be accepted, by event; None if it does not go by columns."""
        names, whole = batch.names, (batch.times_us, batch.values, batch.tags)
        alone = names.count(names[0]) == len(names)
        ways = [self._ways.get(name) for name in ([names[0]] if alone else dict.fromkeys(names))]
        known = [way for way in ways if way is not None and way.columnar]
        if len(known) < len(ways) or not (alone or self._are_apart(known, stamped=stamped)):
            return None
        columns = []
        for way in known:
            name = way.event.name
            part = whole if alone else _kept([other == name for other in names], *whole)
            times_us, values, tags, read = self._quantised(way, part, counted)
            if stamped:
                first_us = self._marks.next_stamp_us(now_us)
                times_us = range(first_us, first_us + len(values))
            column = Column(way, times_us, values, tags, read)
            columns.append(column if stamped else self._in_time(column, now_us, counted))
        return [column for column in columns if len(column)]

    def _are_apart(self, ways: list[Way], *, stamped: bool) -> bool:
        """Return whether it is all the same in which order events are taken in."""
        collecting = [variable.name for way in ways for variable in way.collecting]
        alone = len(set(collecting)) == len(collecting)
        return alone and not stamped and not self._settings.keep_readings

    def _quantised(
        self, way: Way, part: Sequence[Sequence[Any]], counted: Counter[str]
    ) -> Sequence[Sequence[Any]]:
        """Return times, quantised values, tags and values as read, without the refused."""
        times_us, read, tags = part
        values: Sequence[int | Refused] | None = way.event.resolution.quantise_surely(read)
        if values is None:
            values = way.event.resolution.quantise_column(read)
            fit = [type(value) is int for value in values]
            for reason in compress(values, map(not_, fit)):
                counted["refused"] += 1
                counted[f"refused: {reason}"] += 1
            times_us, values, tags, read = _kept(fit, times_us, values, tags, read)
        return times_us, values, tags, read

    def _in_time(self, column: Column, now_us: int, counted: Counter[str]) -> Column:
        """Return the column without what is too late or in the future."""
        floor_us, last_us = self._marks.floor_us, now_us + self._settings.max_skew_us
        by_time = column.by_time[0]
        if not by_time or (floor_us <= by_time[0] and by_time[-1] <= last_us):
            return column
        late = {at for at, time_us in enumerate(column.times_us) if time_us < floor_us}
        ahead = {at for at, time_us in enumerate(column.times_us) if time_us > last_us}
        counted["too_late"] += len(late)
        counted["in_the_future"] += len(ahead)
        return column.without(late | ahead)

    def _is_calm(self, columns: list[Column]) -> bool:
        """Return whether the floor reaches no reading, in whatever order they are taken in."""
        if not columns:
            return True
        low_us = min(column.by_time[0][0] for column in columns)
        if low_us < self._marks.floor_us:  # stamped by a clock that was set back
            return False
        if len(columns) == 1 and columns[0].order is None:
            return True  # each is behind those before it, and never ahead of itself
        high_us = max(column.by_time[0][-1] for column in columns)
        return low_us >= high_us - self._settings.retain_us

    def _cuts(self, column: Column) -> list[Cut]:
        """Return the panes that a column touches, by window."""
        times_us, _ = column.by_time
        cuts = []
        for window, span_us, _ in column.way.into:
            starts_us, bounds = _boundaries(times_us, span_us)
            cuts.append(Cut(window, self._panes.own_column(window.stream, starts_us), bounds))
        return cuts

    def _have_room(self, column: Column, cuts: list[Cut]) -> bool:
        """Return whether no pane can leave the range of its fold's columns."""
        for window, panes, _ in cuts:
            fold, held = window.fold, self._panes.begun(panes)
            has_room = room_in(fold)
            if not has_room(fold.zero) or not all(map(has_room, held)):
                # Not for any column; but perhaps for this one, whose values are known.
                peak = max(map(abs, column.values))
                has_room = fold.room_for(len(column), peak)
                if not has_room(fold.zero) or not all(map(has_room, held)):
                    return False
        return True

    def _put(self, column: Column) -> set[int]:
        """Take in the identities of a column; return the places of those that are known."""
        times_us, values = column.by_time
        tags, order = column.tags, column.order
        if tags.count(tags[0]) == len(tags):
            known = self._put_stream(column, self._text_of(tags[0]), times_us, values)
        else:
            texts = {id(one): self._text_of(one) for one in tags}
            streams: dict[str, list[int]] = {}
            for at, place in enumerate(order or range(len(tags))):
                streams.setdefault(texts[id(tags[place])], []).append(at)
            known = [
                places[at]
                for text, places in streams.items()
                for at in self._put_stream(column, text, _at(places, times_us), _at(places, values))
            ]
        return set(known if order is None else _at(known, order))

    def _put_stream(
        self, column: Column, text: str, times_us: Sequence[int], values: Sequence[int]
    ) -> list[int]:
        """Take in identities of one stream, by time; return the places of those that are known."""
        known: list[int] = []
        start, end = 0, len(times_us)
        while start < end:
            number = times_us[start] // BLOCK_US
            stop = bisect_left(times_us, (number + 1) * BLOCK_US, start)
            block = self._identities.block(BlockId(column.way.event.name, text, number))
            before = len(block)
            if column.strict and times_us[start] > block.last_us:
                block.put_later(times_us[start:stop], values[start:stop])
            else:
                known += [
                    at for at in range(start, stop) if not block.add(times_us[at], values[at])
                ]
            if len(block) > before:
                self._identities.touched(block)
            start = stop
        return known

    def _fold(
        self, accepted: list[tuple[Column, list[Cut]]], now_us: int, changes: Changes
    ) -> None:
        """Lift what lies in each pane, and fold it in: by stream, then by time."""
        each = [(cut, column) for column, cuts in accepted for cut in cuts]
        for (window, panes, bounds), column in sorted(each, key=lambda one: one[0].window.stream):
            times_us, values = column.by_time
            lift, stops = window.fold.lift_column, [*bounds[1:], len(column)]
            partials = [
                lift(values[start:stop], times_us[start:stop])
                for start, stop in zip(bounds, stops, strict=True)
            ]
            self._panes.fold_in_column(panes, partials, now_us, changes)

    def _accept(self, column: Column, source: str, taken: Taken, changes: Changes) -> None:
        """Collect a column, and note how far it came."""
        marks, name = self._marks, column.way.event.name
        times_us, _ = column.by_time
        for variable in column.way.collecting:
            taken.asked.extend(variable.name, "", column.values, column.times_us)
        first_us = marks.next_stamp_us(taken.now_us)
        marks.stamp_us = first_us + len(column) - 1
        marks.reach(times_us[-1])
        taken.accepted += len(column)
        if times_us[0] < marks.promised_us:
            taken.counted["late"] += bisect_left(times_us, marks.promised_us)
        if self._settings.keep_readings:
            rows = zip(column.times_us, column.read, column.values, column.tags, strict=True)
            changes.readings += [
                ReadingRow(stamp_us, name, time_us, value, quantised, self._text_of(tags), source)
                for stamp_us, (time_us, value, quantised, tags) in enumerate(rows, first_us)
            ]


def _at(places: Sequence[int], column: Sequence[int]) -> list[int]:
    """Return what stands at these places."""
    return [column[place] for place in places]


def _kept(kept: Sequence[bool], *columns: Sequence[Any]) -> list[list[Any]]:
    """Return the columns without what is not kept."""
    return [list(compress(column, kept)) for column in columns]


def _boundaries(times_us: Sequence[int], span_us: int) -> tuple[list[int], list[int]]:
    """Return where panes start, and at which of the sorted times each begins."""
    starts_us, bounds = [], []
    at, end = 0, len(times_us)
    while at < end:
        time_us = times_us[at]
        start_us = time_us - time_us % span_us
        starts_us.append(start_us)
        bounds.append(at)
        at = bisect_left(times_us, start_us + span_us, at)
    return starts_us, bounds
