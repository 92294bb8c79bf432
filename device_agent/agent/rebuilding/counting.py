"""What readings count as, and in which panes: by column, and the same for each reading alone.

A column is cut where the parameters change, and there at each pane. Only where a window has
functions of the user's each reading is looked at by itself. Readings come as they are read, or
again from what the device still has of them: the identities of its events, of all tags.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import compress, repeat
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from device_agent.agent.intake.identities import (
    TAKEN_BACK,
    Block,
    Identities,
    Identity,
    ascends,
    tags_of_blocks,
)
from device_agent.agent.parts import StoreReader
from device_agent.agent.sources.tags import KnownTags
from device_agent.agent.state.counters import FAILED
from device_agent.agent.stored_rows import BLOCK_US
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event, StreamItem, tags_of_stream
from lasp_edge.folds.numbers import Refused
from lasp_edge.language.declarations import Window
from lasp_edge.language.parameters import ParameterValues
from lasp_edge.language.plan import Functions
from lasp_edge.language.regimes import PanePiece, WindowRegimes
from lasp_edge.reasons import reason_of

_FAILED = object()
_event = partial(tuple.__new__, Event)


class ReadingColumn(NamedTuple):
    """Readings of one event, by time; values are in steps."""

    times_us: list[int]
    values: list[int]

    @classmethod
    def of(cls, readings: Iterable[Identity]) -> Self:
        """Return readings, which come in any order, as a column."""
        ordered = sorted(readings)
        return cls(list(map(itemgetter(0), ordered)), list(map(itemgetter(1), ordered)))

    def between(self, first_us: int, end_us: int) -> Self:
        """Return those with first_us <= time < end_us."""
        inside = slice(bisect_left(self.times_us, first_us), bisect_left(self.times_us, end_us))
        return type(self)(self.times_us[inside], self.values[inside])

    def without(self, readings: set[Identity]) -> Self:
        """Return all but these readings."""
        left = [each for each in zip(*self, strict=True) if each not in readings]
        return type(self)([time_us for time_us, _ in left], [value for _, value in left])

    def extend(self, other: "ReadingColumn") -> None:
        """Add readings behind these."""
        self.times_us.extend(other.times_us)
        self.values.extend(other.values)


ByTags = Mapping[str, ReadingColumn]
"""Readings of an event by tags, which are canonical text."""


def columns_of(items: Iterable[StreamItem], event: str) -> ByTags:
    """Return those of some readings that are of an event."""
    by_tags: dict[str, list[Identity]] = {}
    for item in items:
        if item.event == event and isinstance(item.value, int):
            by_tags.setdefault(tags_of_stream(item.tags), []).append((item.time_us, item.value))
    return {tags: ReadingColumn.of(several) for tags, several in sorted(by_tags.items())}


def columns_known(
    identities: Identities, event: str, first_us: int, end_us: int, store: StoreReader
) -> ByTags:
    """Return the readings of an event in a stretch of time that the device still has.

    The identities in memory may be newer than the store's.
    """
    first, last = first_us // BLOCK_US, (end_us - 1) // BLOCK_US
    blocks = {
        name: Block(name, packed) for name, packed in store.identity_blocks(event, first, last)
    }
    blocks |= identities.between(event, first, last)
    by_tags: dict[str, ReadingColumn] = {}
    gone = {name: block for name, block in blocks.items() if name.tags.startswith(TAKEN_BACK)}
    for name in sorted(blocks.keys() - gone.keys()):
        column = by_tags.setdefault(tags_of_blocks(name.tags), ReadingColumn([], []))
        column.extend(ReadingColumn(blocks[name].times_us, blocks[name].values))
    for name in sorted(gone):
        tags = tags_of_blocks(name.tags.removeprefix(TAKEN_BACK))
        if tags in by_tags:
            by_tags[tags] = by_tags[tags].without(gone[name].identities)
    for tags, column in by_tags.items():
        if not ascends(column.times_us):
            by_tags[tags] = ReadingColumn.of(zip(*column, strict=True))
    return {tags: each.between(first_us, end_us) for tags, each in sorted(by_tags.items())}


class PaneReadings:
    """What comes to which panes.

    Attributes:
        pieces: stream -> the piece of a window that its panes are of.
        cells: (start of a pane, stream) -> key -> what comes to it.
    """

    __slots__ = ("cells", "pieces")

    def __init__(self) -> None:
        self.pieces: dict[int, PanePiece] = {}
        self.cells: dict[tuple[int, int], dict[str, ReadingColumn]] = {}

    def __iter__(self) -> Iterator[tuple[PanePiece, int, dict[str, ReadingColumn]]]:
        """Yield the piece, the start and what comes by key, of each pane by time."""
        for (pane_us, stream), by_key in sorted(self.cells.items(), key=itemgetter(0)):
            yield self.pieces[stream], pane_us, by_key

    def add(self, piece: PanePiece, key: str, column: ReadingColumn) -> None:
        """Note what of one key comes to the panes of a piece."""
        times_us, values = column
        span_us, stream, cells, first = piece.span_us, piece.stream, self.cells, 0
        self.pieces[stream] = piece
        while first < len(times_us):
            pane_us = times_us[first] - times_us[first] % span_us
            last = bisect_left(times_us, pane_us + span_us, first)
            by_key = cells.setdefault((pane_us, stream), {})
            part = ReadingColumn(times_us[first:last], values[first:last])
            if key in by_key:
                by_key[key].extend(part)
            else:
                by_key[key] = part
            first = last


class ReadingCounter:
    """Asks the user's functions what readings count as on a device.

    Args:
        functions: of the plan.
        device: its name.
        note: counts an outcome by name: here, that a function raised something.
    """

    def __init__(self, functions: Functions, device: str, note: Callable[[str], None]) -> None:
        self._functions, self._device, self._note = functions, device, note

    def count(self, regimes: WindowRegimes, by_tags: ByTags, cells: PaneReadings) -> None:
        """Note to which panes readings come, and as what; where a function fails, to no pane."""
        asks = regimes.window.controls.counts or regimes.window.keyed
        for tags, (times_us, values) in by_tags.items():
            first = 0
            while first < len(times_us):
                regime = regimes.regime_at(times_us[first])
                last = bisect_left(times_us, regime.end_us, first)
                column = ReadingColumn(times_us[first:last], values[first:last])
                first = last
                if not regime.pieces:
                    continue
                by_key = {"": column}
                if asks:
                    by_key = self._asked(regimes.window, tags, column, regime.at)
                for piece in regime.pieces:
                    for key, counted in by_key.items():
                        cells.add(piece, key, counted)

    def _asked(
        self, window: Window, tags: str, column: ReadingColumn, at: ParameterValues
    ) -> dict[str, ReadingColumn]:
        """Return key -> the readings that count, as the user's functions say.

        The same as `WindowRegimes.counted` of each, by column.
        """
        ask = self._functions.windows.get
        value_of, where = ask((window.name, "value")), ask((window.name, "where"))
        times_us, values = column
        counted = values
        if value_of is not None:
            answers = self._answers(window, value_of, tags, column, at)
            quantised = list(window.resolution.quantise_column(answers))
            self._note_refused(window, answers, quantised)
            fit = [type(each) is int for each in quantised]
            times_us, values, counted = _kept(fit, times_us, values, quantised)
        if where is not None:
            seen = ReadingColumn(times_us, counted)
            answers = self._answers(window, where, tags, seen, at)
            fit = [each is True for each in answers]
            times_us, values, counted = _kept(fit, times_us, values, counted)
        key_of = self._functions.keys.get(window.name)
        if key_of is None:
            return {"": ReadingColumn(times_us, counted)}
        keys = self._answers(window, key_of, tags, ReadingColumn(times_us, values))
        return _by_key(keys, times_us, counted)

    def _answers(
        self,
        window: Window,
        function: Callable[..., Any],
        tags: str,
        column: ReadingColumn,
        *more: Any,
    ) -> list[Any]:
        """Return a function's answer for each reading; `_FAILED` where it raises something.

        If it does, all are asked again one by one: it depends on what it is given alone.
        """
        try:
            return list(map(function, self._events(window, tags, column), *map(repeat, more)))
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
        events = self._events(window, tags, column)
        return [self._answer(window, function, event, *more) for event in events]

    def _events(self, window: Window, tags: str, column: ReadingColumn) -> Iterator[Event]:
        """Yield readings as functions see them: one at a time, or the collector would walk them."""
        above, below = window.resolution.numerator, window.resolution.denominator
        reals = [value * above / below for value in column.values]
        same = map(repeat, (self._device, tags_in(tags), ""))
        return map(_event, zip(repeat(window.source.name), reals, column.times_us, *same))

    def _answer(self, window: Window, function: Callable[..., Any], *asked: Any) -> Any:
        try:
            return function(*asked)
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            self._note(f"{FAILED}window {window.name}: {reason_of(error)}")
            return _FAILED

    def _note_refused(self, window: Window, answers: list[Any], quantised: list[Any]) -> None:
        """Count those values that are no number in range."""
        if set(map(type, quantised)) != {int}:
            for answer, each in zip(answers, quantised, strict=True):
                if answer is not _FAILED and isinstance(each, Refused):
                    self._note(f"{FAILED}window {window.name}: {reason_of(each)}")


def _kept(fit: list[bool], *columns: list[Any]) -> Iterable[list[Any]]:
    """Return those readings that count."""
    return columns if all(fit) else [list(compress(column, fit)) for column in columns]


def _by_key(keys: list[Any], times_us: list[int], values: list[int]) -> dict[str, ReadingColumn]:
    """Return key -> its readings, without those whose key is not known."""
    if len(set(map(id, keys))) == 1 and keys[0] is not _FAILED:
        return {keys[0]: ReadingColumn(times_us, values)}
    found: dict[str, ReadingColumn] = {}
    for key, time_us, value in zip(keys, times_us, values, strict=True):
        if key is not _FAILED:
            into = found.setdefault(key, ReadingColumn([], []))
            into.times_us.append(time_us)
            into.values.append(value)
    return found


@lru_cache(maxsize=1_000)
def tags_in(text: str) -> Mapping[str, str]:
    """Return the tags that gave a canonical text."""
    return MappingProxyType(KnownTags(json.loads(text) if text else {}, {}))
