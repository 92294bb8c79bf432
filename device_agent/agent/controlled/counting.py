"""What readings count as, and in which panes: a column at a time, and the same for each alone.

A column is cut where the parameters change, and there at each pane. Only where a window has
functions of the user's each reading is looked at by itself.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import compress, repeat
from operator import itemgetter
from typing import Any, NamedTuple

from device_agent.agent.controlled.history import KeptColumn, tags_of
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.folds.numbers import Refused
from lasp_edge.language.declarations import Window
from lasp_edge.language.parameters import ParameterValues
from lasp_edge.language.plan import Functions
from lasp_edge.language.regimes import PanePiece, WindowRegimes
from lasp_edge.reasons import reason_of

_FAILED = object()
_event = partial(tuple.__new__, Event)


class CountedColumn(NamedTuple):
    """Readings of one key as panes take them, by time."""

    times_us: list[int]
    values: list[int]


Rows = tuple[list[int], list[int], list[int]]
"""Times of some readings, their values, and what they count as."""


class PaneCells:
    """What comes to which panes.

    Attributes:
        pieces: stream -> the piece of a window that its panes are of.
        cells: (start of a pane, stream) -> key -> what comes to it.
    """

    __slots__ = ("cells", "pieces")

    def __init__(self) -> None:
        self.pieces: dict[int, PanePiece] = {}
        self.cells: dict[tuple[int, int], dict[str, CountedColumn]] = {}

    def __iter__(self) -> Iterator[tuple[PanePiece, int, dict[str, CountedColumn]]]:
        """Yield the piece, the start and what comes by key, of each pane by time."""
        for (pane_us, stream), by_key in sorted(self.cells.items(), key=itemgetter(0)):
            yield self.pieces[stream], pane_us, by_key

    def add(self, piece: PanePiece, key: str, column: CountedColumn) -> None:
        """Note what of one key comes to the panes of a piece."""
        times_us, values = column
        span_us, stream, cells, first = piece.span_us, piece.stream, self.cells, 0
        self.pieces[stream] = piece
        while first < len(times_us):
            pane_us = times_us[first] - times_us[first] % span_us
            last = bisect_left(times_us, pane_us + span_us, first)
            by_key = cells.setdefault((pane_us, stream), {})
            known = by_key.get(key)
            if known is None:
                by_key[key] = CountedColumn(times_us[first:last], values[first:last])
            else:
                known.times_us.extend(times_us[first:last])
                known.values.extend(values[first:last])
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

    def count(
        self, regimes: WindowRegimes, columns: Iterable[KeptColumn], cells: PaneCells
    ) -> None:
        """Note to which panes readings come, and as what; where a function fails, to no pane."""
        controls = regimes.window.controls
        asks = controls.counts or regimes.window.keyed
        for tags, times_us, values in columns:
            first = 0
            while first < len(times_us):
                regime = regimes.regime_at(times_us[first])
                last = bisect_left(times_us, regime.end_us, first)
                column = CountedColumn(times_us[first:last], values[first:last])
                first = last
                if not regime.pieces:
                    continue
                by_key = {"": column}
                if asks:
                    by_key = self._asked(regimes, KeptColumn(tags, *column), regime.at)
                for piece in regime.pieces:
                    for key, counted in by_key.items():
                        cells.add(piece, key, counted)

    def _asked(
        self, regimes: WindowRegimes, column: KeptColumn, at: ParameterValues
    ) -> dict[str, CountedColumn]:
        """Return key -> the readings that count, as the user's functions say.

        The same as `WindowRegimes.counted` of each, by column.
        """
        window, ask = regimes.window, self._functions.windows.get
        value_of, where = ask((window.name, "value")), ask((window.name, "where"))
        rows = (column.times_us, column.values, column.values)
        if value_of is not None:
            answers = self._answers(window, value_of, column, at)
            quantised = list(window.resolution.quantise_column(answers))
            rows = (column.times_us, column.values, self._noted(window, answers, quantised))
            rows = _kept([type(each) is int for each in quantised], rows)
        if where is not None:
            seen = KeptColumn(column.tags, rows[0], rows[2])
            answers = self._answers(window, lambda *asked: bool(where(*asked)), seen, at)
            rows = _kept([each is True for each in answers], rows)
        key_of = self._functions.keys.get(window.name)
        if key_of is None:
            return {"": CountedColumn(rows[0], rows[2])}
        keys = self._answers(window, key_of, KeptColumn(column.tags, *rows[:2]))
        return _by_key(keys, rows[0], rows[2])

    def _events(self, window: Window, column: KeptColumn) -> Iterator[Event]:
        """Yield readings as functions see them: one at a time, or the collector would walk them."""
        above, below = window.resolution.numerator, window.resolution.denominator
        same = (self._device, tags_of(column.tags), "")
        reals = [value * above / below for value in column.values]
        return map(
            _event,
            zip(repeat(window.source.name), reals, column.times_us, *map(repeat, same)),
        )

    def _answers(
        self, window: Window, function: Callable[..., Any], column: KeptColumn, *more: Any
    ) -> list[Any]:
        """Return what a function says of each reading; `_FAILED` where it raises something.

        If it does, all are asked anew one by one: it depends on what it is given alone.
        """
        try:
            return list(map(function, self._events(window, column), *map(repeat, more)))
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
        events = self._events(window, column)
        return [self._answer(window, function, event, *more) for event in events]

    def _answer(self, window: Window, function: Callable[..., Any], *asked: Any) -> Any:
        try:
            return function(*asked)
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            self._note(f"window {window.name}: {reason_of(error)}")
            return _FAILED

    def _noted(self, window: Window, answers: list[Any], quantised: list[Any]) -> list[Any]:
        """Count those values that are no number in range, and return all."""
        if set(map(type, quantised)) != {int}:
            for answer, each in zip(answers, quantised, strict=True):
                if answer is not _FAILED and isinstance(each, Refused):
                    self._note(f"window {window.name}: {reason_of(each)}")
        return quantised


def _kept(counts: list[bool], rows: Rows) -> Rows:
    """Return those readings that count."""
    if all(counts):
        return rows
    times_us, values, counted = (list(compress(column, counts)) for column in rows)
    return times_us, values, counted


def _by_key(keys: list[Any], times_us: list[int], values: list[int]) -> dict[str, CountedColumn]:
    """Return key -> its readings, without those whose key is not known."""
    if len(set(map(id, keys))) == 1 and keys[0] is not _FAILED:
        return {keys[0]: CountedColumn(times_us, values)}
    found: dict[str, CountedColumn] = {}
    for key, time_us, value in zip(keys, times_us, values, strict=True):
        if key is not _FAILED:
            into = found.setdefault(key, CountedColumn([], []))
            into.times_us.append(time_us)
            into.values.append(value)
    return found
