"""Whole columns of readings, accepted without a Python function or an object a reading.

This is the path of events whose readings no function of the user's must see. Each step is one
operation over a column: values are quantised, times are compared with floor and clock, identities
are looked up, columns are cut at the panes' boundaries and lifted, and samples are collected.
Refused values and times out of range are removed first; a block of identities that may hold a
repeat is looked through by itself. A batch in which the order of readings matters is left to
`one_by_one`, the definition: both change exactly the same, and a test compares them.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, compress, repeat
from operator import not_
from typing import Any, NamedTuple

from device_agent.agent.agent import Agent
from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.identities import STAMPED, Identities, ascends
from device_agent.agent.intake.pending import PendingBatch, has_room
from device_agent.agent.intake.progress import IntakeProgress
from device_agent.agent.intake.routes import Route
from device_agent.agent.panes.panes import Panes, own_column
from device_agent.agent.parts import StoreReader
from device_agent.agent.stored_rows import BLOCK_US, PaneId, ReadingRow, Retraction, block_id
from lasp_edge.folds.numbers import Refused
from lasp_edge.language.declarations import Window

Tags = Mapping[str, str]


class EventColumns:
    """The readings of one event, in the order in which they came; `read` is as they were read.

    Attributes:
        texts: id of tags -> their text; one of them if all are equal.
        clocks_us: what time it was when each came; empty: all came at once.
        order: their places by time; None if that is how they came.
        by_time: times and values in the order of the times.
        strict: no two have one time.
    """

    __slots__ = (
        *("by_time", "clocks_us", "order", "read", "route", "strict", "tags", "texts"),
        *("times_us", "values"),
    )

    def __init__(
        self,
        route: Route,
        texts: Mapping[int, str],
        times_us: Sequence[int],
        values: Sequence[int],
        tags: Sequence[Tags],
        read: Sequence[Any],
        clocks_us: Sequence[int],
    ) -> None:
        self.route, self.texts, self.clocks_us = route, texts, clocks_us
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

    def without(self, places: set[int]) -> "EventColumns":
        """Return the columns without the readings at these places."""
        kept = [place not in places for place in range(len(self))]
        columns = _kept(kept, self.times_us, self.values, self.tags, self.read, self.clocks_us)
        return EventColumns(self.route, self.texts, *columns)


class PaneSlices(NamedTuple):
    """The panes of one window that readings touch, and where in their order each pane begins."""

    window: Window
    panes: list[PaneId]
    bounds: list[int]


class ByColumn:
    """Accepts whole columns.

    Args:
        agent: what all parts share.
        routes: where the readings of each event go.
        progress: how far the readings have come.
        identities: which readings are known.
        panes: what readings are checked against and folded into.
    """

    def __init__(
        self,
        agent: Agent,
        routes: Mapping[str, Route],
        progress: IntakeProgress,
        identities: Identities,
        panes: Panes,
    ) -> None:
        self._agent = agent
        self._settings, self._routes, self._progress = agent.settings, routes, progress
        self._identities, self._panes, self._text_of = identities, panes, identities.text_of

    def accept(
        self, batch: Batch, pending: PendingBatch, store: StoreReader
    ) -> tuple[int | None, bool] | None:
        """Accept what is acceptable of a batch, or change nothing if it must go one by one.

        Args:
            batch: one or more readings.
            pending: no sample of a pane is in it; entries are changed at once.
            store: gives what memory has let go.

        Returns:
            As `OneByOne.accept`; None where nothing was changed.
        """
        stamped, counted = batch.is_stamped, Counter[str]()
        if not stamped and (batch.places or not batch.has_own_times):
            return None
        columns = self._columns(batch, pending.clock_us, counted, stamped=stamped)
        if columns is None or not self._order_is_irrelevant(columns):
            return None
        sliced = [(column, self._slices(column)) for column in columns]
        if not all(self._have_room(column, slices, store) for column, slices in sliced):
            return None
        pending.counted.update(counted)
        accepted: list[tuple[EventColumns, list[PaneSlices]]] = []
        for column, slices in sliced:
            repeated = self._put(column, store, stamped=stamped)
            if repeated:
                pending.has_come_twice |= self._has_come(column, repeated, store)
            pending.counted["repeated"] += len(repeated)
            left = column.without(repeated) if repeated else column
            if len(left):
                self._collect(left, batch.source, pending)
                accepted.append((left, self._slices(left) if repeated else slices))
        self._stamp([column for column, _ in accepted], pending.clock_us)
        self._fold(accepted, pending.since_us)
        highs_us = [column.by_time[0][-1] for column, _ in accepted]
        high_us = None if stamped else max(highs_us, default=None)
        return high_us, stamped and bool(highs_us)

    def _columns(
        self, batch: Batch, clock_us: int, counted: Counter[str], *, stamped: bool
    ) -> list[EventColumns] | None:
        """Return the readings that may be accepted, by event; None if they must go one by one."""
        names, whole = batch.names, (batch.times_us, batch.values, batch.tags, batch.clocks_us)
        alone = names.count(names[0]) == len(names)
        routes = [self._routes.get(n) for n in ([names[0]] if alone else dict.fromkeys(names))]
        known = [route for route in routes if route is not None and route.by_column]
        if len(known) < len(routes) or not (alone or self._are_apart(known, stamped=stamped)):
            return None
        columns = []
        for route in known:
            name = route.event.name
            part = whole if alone else _kept([other == name for other in names], *whole)
            times_us, values, tags, read, clocks_us = self._quantised(route, part, counted)
            if counted and Retraction in set(map(type, part[1])):
                return None
            if stamped:
                first_us, count = batch.dated_us, len(values)
                if first_us is None:
                    times_us = self._progress.stamps_us(clock_us, count, clocks_us)
                else:
                    times_us = range(first_us, first_us + count)
            texts = {id(one): self._text_of(one) for one in _distinct(tags)}
            column = EventColumns(route, texts, times_us, values, tags, read, clocks_us)
            columns.append(column if stamped else self._in_time(column, clock_us, counted))
        return [column for column in columns if len(column)]

    def _are_apart(self, routes: list[Route], *, stamped: bool) -> bool:
        """Return whether the order of two events' readings to each other changes nothing."""
        collecting = [variable.name for route in routes for variable in route.collecting]
        alone = len(set(collecting)) == len(collecting)
        return alone and not stamped and not self._settings.keep_readings

    def _quantised(
        self, route: Route, part: Sequence[Sequence[Any]], counted: Counter[str]
    ) -> Sequence[Sequence[Any]]:
        """Return times, quantised values, tags, values as read and clocks, without the refused."""
        times_us, read, tags, clocks_us = part
        scale = route.event.scale
        values: Sequence[int | Refused] | None = scale.quantise_certain(read)
        if values is None:
            values = scale.quantise_column(read)
            fit = [type(value) is int for value in values]
            for reason in compress(values, map(not_, fit)):
                counted["refused"] += 1
                counted[f"refused: {route.event.name}: {reason}"] += 1
            return _kept(fit, times_us, values, tags, read, clocks_us)
        return times_us, values, tags, read, clocks_us

    def _in_time(self, column: EventColumns, clock_us: int, counted: Counter[str]) -> EventColumns:
        """Return the columns without what is too late or in the future."""
        floor_us, last_us = self._progress.floor_us, clock_us + self._settings.max_skew_us
        by_time = column.by_time[0]
        if not by_time or (floor_us <= by_time[0] and by_time[-1] <= last_us):
            return column
        late = {at for at, time_us in enumerate(column.times_us) if time_us < floor_us}
        lasts_us = [at_us + self._settings.max_skew_us for at_us in column.clocks_us]
        each = enumerate(zip(column.times_us, lasts_us or repeat(last_us), strict=False))
        ahead = {at for at, (time_us, last_us) in each if time_us > last_us} - late
        counted["too_late"] += len(late)
        counted["in_the_future"] += len(ahead)
        return column.without(late | ahead)

    def _order_is_irrelevant(self, columns: list[EventColumns]) -> bool:
        """Return whether no reading falls below the floor, in whatever order they are accepted."""
        if not columns:
            return True
        low_us = min(column.by_time[0][0] for column in columns)
        if low_us < self._progress.floor_us:  # stamped by a clock that was set back
            return False
        if len(columns) == 1 and columns[0].order is None:
            return True  # each is behind those before it, and never ahead of itself
        high_us = max(column.by_time[0][-1] for column in columns)
        return low_us >= high_us - self._settings.retain_us

    def _slices(self, column: EventColumns) -> list[PaneSlices]:
        """Return the panes that readings touch, by window."""
        times_us, _ = column.by_time
        slices = []
        for target in column.route.targets:
            starts_us, bounds = _boundaries(times_us, target.span_us)
            panes = own_column(self._agent.replica, target.stream, starts_us)
            slices.append(PaneSlices(target.window, panes, bounds))
        return slices

    def _have_room(
        self, column: EventColumns, slices: list[PaneSlices], store: StoreReader
    ) -> bool:
        """Return whether no pane can leave the range of its fold's columns."""
        for window, panes, _ in slices:
            fold, held = window.fold, self._panes.held_column(panes, store)
            fits = has_room(fold)
            if not fits(fold.zero) or not all(map(fits, held)):
                # Not for any batch; but perhaps for this one, whose values are known.
                peak = max(map(abs, column.values))
                fits = fold.room_for(len(column), peak)
                if not fits(fold.zero) or not all(map(fits, held)):
                    return False
        return True

    def _stamp(self, accepted: list[EventColumns], clock_us: int) -> None:
        """Note when the last of these readings was accepted."""
        clocks_us = sorted(chain.from_iterable(column.clocks_us for column in accepted))
        count = sum(map(len, accepted))
        if count:
            self._progress.stamp_us = self._progress.stamps_us(clock_us, count, clocks_us)[-1]

    def _put(self, column: EventColumns, store: StoreReader, *, stamped: bool) -> set[int]:
        """Add the identities of readings; return the places of those that are repeats."""
        if stamped and not column.route.kept:
            return set()
        apart = STAMPED if stamped else ""
        times_us, values = column.by_time
        tags, texts, order = column.tags, column.texts, column.order
        if len(texts) == 1:
            (text,) = texts.values()
            known = self._put_stream(column, apart + text, times_us, values, store)
        else:
            streams: dict[str, list[int]] = {}
            for at, place in enumerate(order or range(len(tags))):
                streams.setdefault(texts[id(tags[place])], []).append(at)
            known = []
            for text, places in streams.items():
                part = _at(places, times_us), _at(places, values)
                known += _at(self._put_stream(column, apart + text, *part, store), places)
        if stamped:
            return set()  # nobody gave them their time
        return set(known if order is None else _at(known, order))

    def _has_come(self, column: EventColumns, repeated: set[int], store: StoreReader) -> bool:
        """Return whether the first of some repeats has come before to this process."""
        at = min(repeated)
        time_us, name = column.times_us[at], column.route.event.name
        texts = column.texts  # one alone where all tags are equal, whichever object they are
        text = texts[id(column.tags[at])] if len(texts) > 1 else next(iter(texts.values()))
        block = self._identities.at(name, text, time_us, store)
        return block.has_come(time_us, column.values[at])

    def _put_stream(
        self,
        column: EventColumns,
        text: str,
        times_us: Sequence[int],
        values: Sequence[int],
        store: StoreReader,
    ) -> list[int]:
        """Add identities of one stream, by time; return the places of those that were known."""
        known: list[int] = []
        name = column.route.event.name
        start, end = 0, len(times_us)
        while start < end:
            number = times_us[start] // BLOCK_US
            stop = bisect_left(times_us, (number + 1) * BLOCK_US, start)
            block = self._identities.block(block_id((name, text, number)), store)
            part = times_us[start:stop], values[start:stop]
            is_new = times_us[start] > block.last_us
            if is_new and (column.strict or len(set(zip(*part, strict=True))) == stop - start):
                block.put_later(*part, strict=column.strict)
                self._identities.touched(block)
            else:
                add = block.add
                again = [at for at in range(start, stop) if not add(times_us[at], values[at])]
                known += again
                if len(again) < stop - start:
                    self._identities.touched(block)
            start = stop
        return known

    def _fold(self, accepted: list[tuple[EventColumns, list[PaneSlices]]], since_us: int) -> None:
        """Lift the readings of each pane, and fold them in: by stream, then by time."""
        each = [(slices, column) for column, several in accepted for slices in several]
        for (window, panes, bounds), column in sorted(each, key=lambda one: one[0].window.stream):
            times_us, values = column.by_time
            lift, stops = window.fold.lift_column, [*bounds[1:], len(column)]
            partials = [
                lift(values[start:stop], times_us[start:stop])
                for start, stop in zip(bounds, stops, strict=True)
            ]
            self._panes.change_column(panes, partials, since_us)

    def _pass_on(self, column: EventColumns, pending: PendingBatch) -> None:
        """Pass accepted readings on to what is made from them once a commit."""
        name, device = column.route.event.name, self._agent.replica.device
        if len(column.texts) == 1:  # of one object, or of equal ones
            (text,) = column.texts.values()
            found = pending.column((name, device, text, False))
            found.times_us.extend(column.by_time[0])
            found.values.extend(column.by_time[1])
            return
        readings = zip(column.times_us, column.values, column.tags, strict=True)
        for time_us, value, tags in readings:
            pending.column((name, device, column.texts[id(tags)], False)).add(time_us, value)

    def _collect(self, column: EventColumns, source: str, pending: PendingBatch) -> None:
        """Collect accepted readings, and note how far they came."""
        progress, name = self._progress, column.route.event.name
        times_us, _ = column.by_time
        if column.route.passed_on:
            self._pass_on(column, pending)
        for variable in column.route.collecting:
            pending.updates.extend(variable.name, "", column.values, column.times_us)
        progress.reach(times_us[-1])
        pending.accepted += len(column)
        if times_us[0] < self._panes.unlanded.watched_us:
            self._panes.unlanded.add(times_us[0], progress.promised_us)
            pending.counted["late"] += bisect_left(times_us, progress.promised_us)
        if self._settings.keep_readings:
            stamps_us = progress.stamps_us(pending.clock_us, len(column), column.clocks_us)
            rows = (stamps_us, column.times_us, column.read, column.values, column.tags)
            pending.readings += [
                ReadingRow(stamp_us, name, time_us, value, quantised, self._text_of(tags), source)
                for stamp_us, time_us, value, quantised, tags in zip(*rows, strict=True)
            ]


def _at(places: Sequence[int], column: Sequence[int]) -> list[int]:
    """Return the elements at these places."""
    return [column[place] for place in places]


def _distinct(tags: Sequence[Tags]) -> Sequence[Tags]:
    """Return the tags, or one of them if all are equal."""
    return tags[:1] if tags and tags.count(tags[0]) == len(tags) else tags


def _kept(kept: Sequence[bool], *columns: Sequence[Any]) -> list[list[Any]]:
    """Return the columns with only the elements whose `kept` is true."""
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
