"""The rows of an evaluator's results: in memory since the last cut, and before it in the store.

A row in the store is what a handler sees and people read, with its place. The newest final row and
the newest tentative one of each key are remembered for the topics. Where one of them is taken back,
the newest that still counts is looked for in the store.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from lasp_edge.evaluation.history import StreamHistory, shown_row
from lasp_edge.evaluation.packed_rows import ChangedRows
from lasp_edge.evaluation.placed_rows import PlacedRow, later_row, latest_rows
from lasp_edge.event import Event
from lasp_edge.language.declarations import StreamResult
from lasp_edge.language.row_limits import quick_rounding
from lasp_edge.language.streaming import StreamRow, rounded, unchanged
from lasp_edge.ordered.cells import CELL_US
from lasp_edge.ordered.deltas import Delta, minus
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.outputs import NO_TAGS, made_event
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.results import ResultRow, ResultRows
from lasp_edge.protocol.status import TENTATIVE

if TYPE_CHECKING:
    from lasp_edge.ordered.absences import RowAbsences

MOST_KEYS = 1_000
"""Keys of a result of which the newest rows are remembered: who has more shows the last ones."""

LOOK_US = 60_000_000
"""Microseconds of rows that are read first where the newest one of a key is looked for."""


class Newest(NamedTuple):
    """The newest final and the newest tentative row of a key; None where it has no such row."""

    result: StreamResult
    final: PlacedRow | None = None
    tentative: PlacedRow | None = None

    @property
    def mark(self) -> tuple[Any, ...]:
        """What differs where the rows do."""
        return tuple(None if row is None else (row[0], row[1].revision) for row in self[1:])

    @property
    def is_empty(self) -> bool:
        """Whether there is no row."""
        return self.final is None and self.tentative is None

    @property
    def end_us(self) -> int:
        """The time after the last of both rows; there is one."""
        return 1 + max(row[0][0] for row in self[1:] if row is not None)

    @property
    def final_us(self) -> int:
        """The time of the final row; before all times without any."""
        return BEFORE_ALL_US if self.final is None else self.final[0][0]

    @property
    def shown_final(self) -> StreamRow | None:
        """The final row as handlers and people see it."""
        return None if self.final is None else shown_row(self.result, *self.final)

    def plain(self) -> dict[str, Any]:
        """Return them for JSON, by name."""
        rows = {"final": self.final, "tentative": self.tentative}
        return {name: shown_row(self.result, *row).plain() for name, row in rows.items() if row}

    def as_json(self) -> bytes:
        """Return them as a retained topic holds them: nothing where there is no row."""
        return b"" if self.is_empty else json.dumps(self.plain(), sort_keys=True).encode()


class ResultBook:
    """The rows of one result.

    Args:
        result: what it is.
        history: what the store holds of it.
        rounds: values are those that a row shows: what differs by less than a step is the same.
        remembers: whether the newest rows of each key are wanted.

    Attributes:
        newest: key -> its newest rows.
        unfit: how many values did not have the parts of the result.
        why: what was wrong with the last of them.
        written: how many rows were new or have changed.
    """

    def __init__(
        self,
        result: StreamResult,
        history: StreamHistory,
        *,
        rounds: bool = False,
        remembers: bool = True,
    ) -> None:
        self.result, self._history = result, history
        self._rounds, self._remembers = rounds, remembers
        self._quick = quick_rounding(result) if rounds else partial(unchanged, result)
        self._live = ResultRows()
        self.newest: dict[str, Newest] = {}
        self.unfit, self.why, self.written = 0, "", 0
        self._overdue: dict[int, int] = {}
        self._first_us: dict[str, int] = {}
        self._is_whole = False

    def begin(self, since_us: int) -> None:
        """Take the rows since the last cut from the store.

        What a process before this one showed of a key may be gone, and older rows or none stand.
        """
        self._is_whole, back, none = since_us == BEFORE_ALL_US, set[str](), Newest(self.result)
        for _, rows in self._history.rows(self.result.name, since_us, FOR_EVER_US):
            self._live.restore(rows)
            if self._remembers:
                self._remember(rows.items())
                back |= {row.key for row in rows.values() if row.event is None}
        lost = [key for key in back if self.newest.get(key, none).final is None]
        if self._is_whole:  # what has no row here has none at all
            self._first_us |= {key: FOR_EVER_US for key in lost if key not in self._first_us}
        self._replace(dict.fromkeys(lost), since_us)

    @property
    def due_us(self) -> int | None:
        """The time of the first tentative row; None without any."""
        return self._live.due_us

    def take(
        self,
        delta: Delta,
        since_us: int,
        before_us: int,
        frontier_us: int | None,
        absences: "RowAbsences | None" = None,
    ) -> Iterator[PlacedRow]:
        """Take how the stream has changed; return the rows that are final, or revised, by that.

        They are in no order, and are looked for only where somebody wants them.

        Args:
            delta: the change.
            since_us: the last cut, now.
            before_us: the last cut before the change was made.
            frontier_us: nothing older is expected.
            absences: who is missing in rows; None: rows name whom they named.
        """
        past, here = dict[Place, Any](), delta
        if min(delta, default=(before_us,))[0] < before_us:
            past = {place: change for place, change in delta.items() if place[0] < before_us}
            here = {place: change for place, change in delta.items() if place not in past}
        cells = {place[0] // CELL_US * CELL_US for place in past}
        cells |= self._overdue_cells(before_us, frontier_us)
        changed = self._past(past, cells, frontier_us, absences) if cells else []
        unknown = set[str]()
        if absences is not None:
            unknown = self._rename(before_us, frontier_us, absences)
        changed += self._changed(self._live, here, frontier_us, absences)
        self.written += len(changed)
        if since_us > before_us:
            self._live.cut(since_us)
        if self._remembers:
            back = [
                (place, old.key)
                for place, (old, new) in delta.items()
                if old and (new is None or new.key != old.key)
            ]
            shown = {key: self.newest.get(key) for _, key in back}
            for place, key in back:
                self._forget({place}, key)
            unknown |= self._remember(changed)
            known = (each for each in unknown if each in self.newest)
            shown |= {each: None for each in known if self.newest[each].final_us < since_us}
            self._replace(shown, since_us)
        return (
            (place, row)
            for place, row in changed
            if row is not None and row.event is not None and row.status != TENTATIVE
        )

    def _replace(self, shown: Mapping[str, Newest | None], since_us: int) -> None:
        """Remember the newest rows that still count of keys of which rows were taken back.

        That is for keys alone whose newest row is lost. The store is read backwards, until a final
        row of each is found; and not where it is known to have no row of a key.

        Args:
            shown: key -> the rows that were remembered before; None without any.
            since_us: the last cut.
        """
        none, name = Newest(self.result), self.result.name
        lost = {k: w for k, w in shown.items() if _is_lost(w, self.newest.get(k, none))}
        if not lost:
            return
        self.newest |= {key: self.newest.get(key, none) for key in lost}
        least_us = end_us = max(FOR_EVER_US if w is None else w.end_us for w in lost.values())
        if end_us == FOR_EVER_US:
            least_us = max(0, since_us)
        span_us = LOOK_US
        while lost:
            first_us = min(self._first_us.get(key, 0) for key in lost)
            least_us = max(first_us, least_us - span_us) // CELL_US * CELL_US
            for _, rows in self._history.rows(name, least_us, end_us):
                self._remember(each for each in rows.items() if each[1].key in lost)
            lost = {k: w for k, w in lost.items() if self.newest[k].final_us < least_us}
            if least_us <= first_us:
                break
            end_us, span_us = least_us, 4 * span_us
        for key in lost:
            if self.newest[key].is_empty:
                self._first_us[key] = FOR_EVER_US

    def _past(
        self, delta: Delta, cells: set[int], frontier_us: int | None, absences: "RowAbsences | None"
    ) -> ChangedRows:
        """Change rows that are in the store alone, in some cells."""
        rows = ResultRows()
        for cell_us in sorted(cells):
            for _, stored in self._history.rows(self.result.name, cell_us, cell_us + CELL_US):
                rows.restore(stored)
        changed = self._changed(rows, delta, frontier_us, absences)
        self._overdue |= rows.first_tentative()
        return changed

    def _rename(self, before_us: int, frontier_us: int | None, absences: "RowAbsences") -> set[str]:
        """Change rows in the store alone that are to name others, as devices have spoken.

        Returns what `_remember` does.

        Their values stay, so nobody but who shows them looks at them: they are not all in memory.
        """
        spans_us, unknown = absences.again_before(before_us), set[str]()
        for stored in self._history.naming(self.result.name, spans_us, every=absences.is_more):
            rows = ResultRows()
            rows.restore(stored)
            changed = self._changed(rows, {}, frontier_us, absences)
            self.written += len(changed)
            if self._remembers:
                unknown |= self._remember(changed)
        return unknown

    def _changed(
        self,
        rows: ResultRows,
        delta: Delta,
        frontier_us: int | None,
        absences: "RowAbsences | None",
    ) -> ChangedRows:
        """Change rows, under a frontier; store and return those that differ."""
        rows.push(delta, frontier_us)
        if frontier_us is not None:
            rows.advance(frontier_us)
        if absences is not None:
            rows.name(absences, frontier_us)
        changed = rows.take_changed()
        self._history.put_rows(self.result.name, changed, rows.rows)
        return changed

    def _overdue_cells(self, before_us: int, frontier_us: int | None) -> set[int]:
        """Return the cells that are in the store alone and have rows which are final by now.

        They are overdue no longer, as are those whose rows are in memory.
        """
        self._overdue = {at: due for at, due in self._overdue.items() if at < before_us}
        final_us = BEFORE_ALL_US if frontier_us is None else frontier_us
        found = {cell_us for cell_us, due_us in self._overdue.items() if due_us < final_us}
        for cell_us in found:
            del self._overdue[cell_us]
        return found

    def changed(self, outputs: Delta, since_us: int, end_us: int = FOR_EVER_US) -> Delta:
        """Return how the rows in the store differ from rebuilt outputs, from a time to another.

        Some may be tentative that a program without this result had to leave so: they are looked at
        once more when the change is taken.
        """
        first_us, before = since_us // CELL_US * CELL_US, dict[Place, Event[Any]]()
        for cell_us, stored in self._history.rows(self.result.name, first_us, end_us):
            for place, row in stored.items():
                event = None if row.event is None else self._fit(row.event)
                if event is not None and since_us <= place[0] < end_us:
                    before[place] = event
                if row.status == TENTATIVE:
                    due_us = self._overdue.get(cell_us, FOR_EVER_US)
                    self._overdue[cell_us] = min(place[0], due_us)
        after = {
            place: new
            for place, (_, new) in self.fitting(outputs).items()
            if new is not None and since_us <= place[0] < end_us
        }
        return minus(after, before)

    def fitting(self, delta: Delta) -> Delta:
        """Return a change without the values that do not have the parts of the result.

        A value that is replaced is left as it is: it only tells that there was one.
        """
        fit, quick, name, found = self._fit, self._quick, self.result.name, Delta()
        for place, (old, new) in delta.items():
            event = None
            if new is not None:
                _, value, time_us, device, _, key = new
                try:
                    event = made_event((name, quick(value), time_us, device, NO_TAGS, key))
                except (TypeError, ValueError):
                    event = fit(new, is_new=True)
            found[place] = (fit(old) if event is None and old is not None else old, event)
        return found

    def _fit(self, event: Event[Any], *, is_new: bool = False) -> Event[Any] | None:
        result, (_, value, time_us, device, _, key) = self.result, event
        try:
            if self._rounds:
                value = rounded(result, value)
            else:
                unchanged(result, value)
        except ValueError as error:
            if is_new:
                self.unfit, self.why = self.unfit + 1, str(error)
            return None
        return made_event((result.name, value, time_us, device, NO_TAGS, key))

    def shown(self, place: Place, row: ResultRow) -> StreamRow:
        """Return a row as handlers and people see it."""
        return shown_row(self.result, place, row)

    def _remember(self, changed: Iterable[tuple[Place, ResultRow | None]]) -> set[str]:
        """Take rows that are new, have changed or are gone, in any order, each place once.

        Returns the keys of which no final row was remembered: the store may have a newer one, as a
        process that begins takes the rows since the last cut alone.
        """
        (latest, gone), unknown = latest_rows(changed), set[str]()
        self._forget(gone)
        none = Newest(self.result)
        for key, (found_final, found_tentative, first_us) in latest.items():
            known = self.newest.get(key, none)
            if found_final and known.final is None:
                unknown.add(key)
            self._note(key, first_us)
            final = later_row(known.final, found_final)
            tentative = later_row(known.tentative, found_tentative)
            if found_final and tentative and tentative[0] <= found_final[0]:
                tentative = None
            self.newest[key] = Newest(self.result, final, tentative)
            if len(self.newest) > MOST_KEYS:
                self._let_go(next(iter(self.newest)))
        return unknown

    def _note(self, key: str, first_us: int) -> None:
        """Note that a key has no row before a time, if that is known of its other rows."""
        if self._is_whole or key in self._first_us:
            self._first_us[key] = min(first_us, self._first_us.get(key, FOR_EVER_US))

    def _let_go(self, key: str) -> None:
        """Remember a key no longer; of one that comes now it is not known whether it is new."""
        del self.newest[key]
        self._first_us.pop(key, None)
        self._is_whole = False

    def _forget(self, gone: set[Place], of_key: str | None = None) -> None:
        """Let go the rows at some places, of all keys or of one: another row may stand there."""
        keys = self.newest if of_key is None else self.newest.keys() & {of_key}
        for key in keys if gone else ():
            known = self.newest[key]
            if any(row is not None and row[0] in gone for row in known[1:]):
                left = [None if row is None or row[0] in gone else row for row in known[1:]]
                self.newest[key] = Newest(self.result, *left)


def _is_lost(was: Newest | None, now: Newest) -> bool:
    """Return whether an older row than those that are known now may be the newest of a key.

    Args:
        was: the rows that were known before some were taken back; None without any.
        now: those that are known without them.
    """
    if was is None:
        return True
    last = later_row(now.final, now.tentative)
    lost_final = was.final is not None and later_row(was.final, now.final) is not now.final
    return lost_final or (was.tentative is not None and later_row(was.tentative, last) is not last)
