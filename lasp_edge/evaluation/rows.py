"""The rows of an evaluator's results: in memory since the last cut, and before it in the store.

A row in the store is what a handler sees and people read, with its place. The newest final row and
the newest tentative one of each key are remembered for the topics. Where one of them is taken back,
the newest that still counts is looked for in the store.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from lasp_edge.evaluation.history import Read, StreamHistory
from lasp_edge.evaluation.packed_rows import rows_in
from lasp_edge.event import Event
from lasp_edge.language.declarations import StreamResult
from lasp_edge.language.streaming import StreamRow, parts_of, shown_parts
from lasp_edge.ordered.cells import CELL_US
from lasp_edge.ordered.deltas import Delta, minus
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.results import ResultRow, ResultRows
from lasp_edge.protocol.status import TENTATIVE

MOST_KEYS = 1_000
"""Keys of a result of which the newest rows are remembered: who has more shows the last ones."""

LAST_US = 86_400_000_000
"""Microseconds before the newest reading of which people are shown rows, if there are any."""


class Newest(NamedTuple):
    """The newest final and the newest tentative row of a key; None where it has no such row."""

    final: StreamRow | None = None
    tentative: StreamRow | None = None

    @property
    def mark(self) -> tuple[Any, ...]:
        """What differs where the rows do."""
        return tuple(None if row is None else (row.place, row.revision) for row in self)

    def plain(self) -> dict[str, Any]:
        """Return them for JSON, by name."""
        return {name: row.plain() for name, row in self._asdict().items() if row is not None}

    def as_json(self) -> bytes:
        """Return them as a retained topic holds them: nothing where there is no row."""
        return json.dumps(self.plain(), sort_keys=True).encode() if any(self) else b""


class ResultBook:
    """The rows of one result.

    Args:
        result: what it is.
        history: what the store holds of it.

    Attributes:
        newest: key -> its newest rows.
        unfit: how many values did not have the parts of the result.
        why: what was wrong with the last of them.
        written: how many rows were new or have changed.
    """

    def __init__(self, result: StreamResult, history: StreamHistory) -> None:
        self.result, self._history = result, history
        self._live = ResultRows()
        self.newest: dict[str, Newest] = {}
        self.unfit, self.why, self.written = 0, "", 0
        self._overdue: set[int] = set()

    def begin(self, since_us: int) -> None:
        """Take the rows since the last cut from the store."""
        for _, stored in self._history.rows(self.result.name, since_us, FOR_EVER_US):
            rows = rows_in(self.result, stored)
            self._live.restore(rows)
            for place, row in sorted(rows.items()):
                self._remember(place, row)

    @property
    def due_us(self) -> int | None:
        """The time of the first tentative row; None without any."""
        return self._live.due_us

    def take(
        self, delta: Delta, since_us: int, before_us: int, frontier_us: int | None
    ) -> list[StreamRow]:
        """Take how the stream has changed; return the rows that are final, or revised, by that.

        Args:
            delta: the change.
            since_us: the last cut, now.
            before_us: the last cut before the change was made.
            frontier_us: nothing older is expected.
        """
        past = {place: change for place, change in delta.items() if place[0] < before_us}
        cells = {place[0] // CELL_US * CELL_US for place in past}
        cells |= {cell_us for cell_us in self._overdue if cell_us < before_us}
        self._overdue.clear()
        changed = self._past(past, cells, frontier_us) if cells else []
        self._live.push({p: c for p, c in delta.items() if p not in past}, frontier_us)
        if frontier_us is not None:
            self._live.advance(frontier_us)
        live = self._live.take_changed()
        self.written += len(changed) + len(live)
        self._history.put_rows(self.result.name, live, self._live.rows)
        if since_us > before_us:
            self._live.cut(since_us)
        final = []
        for place, row in [*changed, *live]:
            self._remember(place, row)
            if row is not None and row.event is not None and row.status != TENTATIVE:
                final.append(self.shown(place, row))
        self._replace({old.key for old, new in delta.values() if old is not None and new is None})
        return final

    def _replace(self, keys: set[str]) -> None:
        """Remember the newest rows that still count of keys of which rows were taken back."""
        lost = {key for key in keys if self.newest.get(key, Newest()).final is None}
        if not lost:
            return
        self.newest |= {key: Newest() for key in lost}
        for _, stored in self._history.rows(self.result.name, 0, FOR_EVER_US):
            for place, row in sorted(rows_in(self.result, stored).items(), key=_place):
                if row.event is not None and row.event.key in lost:
                    self._remember(place, row)

    def _past(
        self, delta: Delta, cells: set[int], frontier_us: int | None
    ) -> list[tuple[Place, ResultRow | None]]:
        """Change rows that are in the store alone, in some cells."""
        rows = ResultRows()
        for cell_us in sorted(cells):
            for _, stored in self._history.rows(self.result.name, cell_us, cell_us + CELL_US):
                rows.restore(rows_in(self.result, stored))
        rows.push(delta, frontier_us)
        if frontier_us is not None:
            rows.advance(frontier_us)
        changed = rows.take_changed()
        self._history.put_rows(self.result.name, changed, rows.rows)
        return changed

    def changed(self, outputs: Delta, since_us: int) -> Delta:
        """Return how the rows in the store differ from rebuilt outputs, from a time on.

        Some may be tentative that a program without this result had to leave so: they are looked at
        once more when the change is taken.
        """
        first_us, before = since_us // CELL_US * CELL_US, dict[Place, Event]()
        for cell_us, stored in self._history.rows(self.result.name, first_us, FOR_EVER_US):
            for place, row in rows_in(self.result, stored).items():
                if row.event is not None and place[0] >= since_us:
                    before[place] = row.event
                if row.status == TENTATIVE:
                    self._overdue.add(cell_us)
        after = {
            place: new
            for place, (_, new) in self.fitting(outputs).items()
            if new is not None and place[0] >= since_us
        }
        return minus(after, before)

    def fitting(self, delta: Delta) -> Delta:
        """Return a change without the values that do not have the parts of the result."""
        return {
            place: (self._fit(old), self._fit(new, is_new=True))
            for place, (old, new) in delta.items()
        }

    def _fit(self, event: Event | None, *, is_new: bool = False) -> Event | None:
        if event is None:
            return None
        try:
            parts_of(self.result, event.value)
        except ValueError as error:
            if is_new:
                self.unfit, self.why = self.unfit + 1, str(error)
            return None
        return event._replace(name=self.result.name, tags=_NO_TAGS)

    def shown(self, place: Place, row: ResultRow) -> StreamRow:
        """Return a row as handlers and people see it."""
        return shown_row(self.result, place, row)

    def _forget(self, place: Place) -> None:
        for key, known in self.newest.items():
            kept = [None if each is not None and each.place == place else each for each in known]
            self.newest[key] = Newest(*kept)

    def _remember(self, place: Place, row: ResultRow | None) -> None:
        if row is None or row.event is None:
            self._forget(place)
            return
        shown, key = self.shown(place, row), row.event.key
        known = self.newest.get(key, Newest())
        if row.status == TENTATIVE:
            if known.tentative is None or known.tentative.place <= place:
                known = known._replace(tentative=shown)
        else:
            if known.tentative is not None and known.tentative.place <= place:
                known = known._replace(tentative=None)
            if known.final is None or known.final.place <= place:
                known = known._replace(final=shown)
        self.newest[key] = known
        if len(self.newest) > MOST_KEYS:
            del self.newest[next(iter(self.newest))]


def _place(found: tuple[Place, ResultRow]) -> Place:
    return found[0]


def shown_row(result: StreamResult, place: Place, row: ResultRow) -> StreamRow:
    """Return a row of a result as handlers and people see it."""
    event = row.event
    parts = {} if event is None else shown_parts(result, parts_of(result, event.value))
    key = "" if event is None else event.key
    return StreamRow(result.name, key, place[0], parts, row.status, row.revision, place)


_NO_TAGS: Mapping[str, Any] = {}


def stored_rows(read: Read, result: StreamResult, high_us: int, count: int) -> list[StreamRow]:
    """Return the last rows of a result.

    Args:
        read: reads the store.
        result: of the program.
        high_us: how far the readings have come.
        count: how many, at most.
    """
    cells = read(result.stream, high_us - LAST_US, FOR_EVER_US)
    cells = cells or read(result.stream, 0, FOR_EVER_US)
    rows = [found for _, cell in cells for found in rows_in(result, cell.content).items()]
    return [shown_row(result, place, row) for place, row in sorted(rows, key=_place)[-count:]]
