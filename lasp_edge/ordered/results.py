"""Results: what leaves a graph, as rows that are tentative, final or revised.

A row stands at its place. It is tentative until the frontier has passed it, then final; and revised
when it differs from what was final (`lasp_edge.protocol.status`, the rule of windows). A row that
is taken back after it was final stays, without an event. Tentative rows may change at will.

    >>> rows = ResultRows()
    >>> event = Event("used", 30, 10, "pi-1", {}, "kitchen")
    >>> place = (10, "pi-1", ("litres", "", 130), (0,))
    >>> rows.push({place: (None, event)}, frontier_us=None)
    >>> rows.rows[place].status, rows.rows[place].revision
    ('tentative', 0)
    >>> rows.advance(11)
    >>> [(row.event.value, row.status) for place, row in rows.take_changed()]
    [(30, 'final')]
    >>> rows.push({place: (event, event._replace(value=20))}, frontier_us=11)
    >>> [(row.event.value, row.status, row.revision) for place, row in rows.take_changed()]
    [(20, 'revised', 2)]
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lasp_edge.event import Event
from lasp_edge.ordered.cells import CELL_US
from lasp_edge.ordered.deltas import Content, Delta, same_event
from lasp_edge.ordered.places import Place
from lasp_edge.protocol.status import REVISED, TENTATIVE, status_after
from lasp_edge.protocol.window_rows import MOST_NAMES

if TYPE_CHECKING:
    from lasp_edge.ordered.absences import RowAbsences


class ResultRow(NamedTuple):
    """A result at a place.

    Attributes:
        event: the output there; None: it is gone.
        status: "tentative", "final" or "revised".
        revision: 0 at first, one more with each change of the row.
        gone_key: the key that a row had which is gone; else "".
        excluded: over a fleet, the devices that had not promised past its time, or that may lack
            readings of then; in a tentative row, those that it did not wait for
            (`lasp_edge.ordered.absences`). Sorted; of a stored row the first ones.
    """

    event: Event[Any] | None
    status: str
    revision: int
    gone_key: str = ""
    excluded: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key that it has, or had."""
        return self.gone_key if self.event is None else self.event.key


made_row: Callable[[Iterable[Any]], ResultRow] = partial(tuple.__new__, ResultRow)
"""Makes a row without the Python function of a NamedTuple."""


_FIRST: Final = tuple(status_after(None, passed=passed, differs=True) for passed in (False, True))
"""The status of a new row: while the frontier has not passed its place, and then."""
_PASSED: Final = status_after(TENTATIVE, passed=True, differs=False)
"""The status of a tentative row that the frontier passes."""


class ResultRows:
    """The results of one stream.

    Attributes:
        rows: by place.
    """

    def __init__(self) -> None:
        self.rows: dict[Place, ResultRow] = {}
        self._tentative: dict[int, list[Place]] = {}
        self._due_us: int | None = None
        self._changed: dict[Place, ResultRow | None] = {}
        self._naming: set[Place] = set()

    def push(self, delta: Delta, frontier_us: int | None) -> None:
        """Take how the stream has changed, under a frontier."""
        rows, changed, tentative = self.rows, self._changed, list[Place]()
        until_us = -(2**62) if frontier_us is None else frontier_us
        before: ResultRow | None
        for place, (_, new) in delta.items():
            passed = place[0] < until_us
            if new is None:
                before = rows.get(place)
                if before is None:
                    continue
            else:
                row = made_row((new, _FIRST[passed], 0, "", ()))
                before = rows.setdefault(place, row)
                if before is row:
                    changed[place] = row
                    if not passed:
                        tentative.append(place)
                    continue
            if not same_event(before.event, new):
                status = status_after(before.status, passed=passed, differs=True)
                gone_key = before.key if new is None else ""
                row = made_row((new, status, before.revision + 1, gone_key, before.excluded))
                rows[place] = changed[place] = row
        self._expect(tentative)

    def _expect(self, places: list[Place]) -> None:
        """Remember the places of rows that the frontier will pass."""
        tentative = self._tentative
        for place in places:
            cell_us = place[0] - place[0] % CELL_US
            in_cell = tentative.get(cell_us)
            if in_cell is None:
                tentative[cell_us] = [place]
            else:
                in_cell.append(place)
        if places:
            first_us = min([place[0] for place in places])
            self._due_us = first_us if self._due_us is None else min(first_us, self._due_us)

    def advance(self, frontier_us: int) -> None:
        """Take note that the frontier has come here: what lies before it is final."""
        if self._due_us is None or self._due_us >= frontier_us:
            return
        rows, changed = self.rows, self._changed
        for place in self._taken_before(frontier_us):
            row = rows.get(place)
            if row is None or row[1] != TENTATIVE:
                continue
            if row[0] is None:  # it was there for a while, and never final
                del rows[place]
                changed[place] = None
            else:
                rows[place] = changed[place] = made_row((row[0], _PASSED, row[2] + 1, "", row[4]))

    def _taken_before(self, frontier_us: int) -> list[Place]:
        """Return the places before the frontier where a row was tentative, and forget them."""
        tentative, found, left = self._tentative, list[Place](), list[Place]()
        for cell_us in [each for each in tentative if each < frontier_us]:
            places = tentative.pop(cell_us)
            if cell_us + CELL_US <= frontier_us:
                found += places
                continue
            found += [place for place in places if place[0] < frontier_us]
            left += [place for place in places if place[0] >= frontier_us]
        first = tentative.get(min(tentative, default=0), ())
        self._due_us = min([place[0] for place in first], default=None)
        self._expect(left)
        return found

    def name(self, absences: "RowAbsences", frontier_us: int | None) -> None:
        """Let rows that have changed name who is missing, and final ones those who are since now.

        Args:
            absences: who is missing.
            frontier_us: rows before this time are final.
        """
        rows, changed, naming = self.rows, self._changed, self._naming
        if absences.any_again and (naming or absences.is_more):
            self._rename(absences)
        wanted = changed.keys() if absences.any_before(frontier_us) else changed.keys() & naming
        for place in list(wanted):
            found = changed[place]
            excluded = () if found is None else absences.names(place, found.status)
            (naming.add if excluded else naming.discard)(place)
            if found is not None and (excluded or found.excluded):
                rows[place] = changed[place] = found._replace(excluded=excluded)

    def _rename(self, absences: "RowAbsences") -> None:
        """Let rows change that are final, and that are to name others."""
        rows, changed = self.rows, self._changed
        for place in (rows.keys() if absences.is_more else self._naming) - changed.keys():
            row = rows[place]
            if not absences.is_again(place[0]) or row.status == TENTATIVE:
                continue
            if absences.renames(place, row.status, row.excluded[:MOST_NAMES]):
                changed[place] = row._replace(status=REVISED, revision=row.revision + 1)

    def take_changed(self) -> list[tuple[Place, ResultRow | None]]:
        """Return the rows that changed since the last time, in no order; None: it is gone."""
        taken, self._changed = self._changed, {}
        return list(taken.items())

    def cut(self, time_us: int) -> None:
        """Let go the rows before a time."""
        self.rows = {place: row for place, row in self.rows.items() if place[0] >= time_us}
        self._naming = {place for place in self._naming if place[0] >= time_us}

    def restore(self, rows: Mapping[Place, ResultRow]) -> None:
        """Take rows as they were."""
        self.rows |= rows
        self._naming.update([place for place, row in rows.items() if row.excluded])
        self._expect([place for place, row in rows.items() if row.status == TENTATIVE])

    def first_tentative(self) -> dict[int, int]:
        """Return cell -> the time of the first tentative row in it, of cells that have one."""
        return {
            cell_us: min(place[0] for place in places)
            for cell_us, places in self._tentative.items()
        }

    @property
    def due_us(self) -> int | None:
        """The time of the first tentative row; None without any."""
        return self._due_us

    @property
    def content(self) -> Content:
        """The present outputs."""
        return {place: row.event for place, row in self.rows.items() if row.event is not None}
