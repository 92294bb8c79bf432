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

import heapq
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple

from lasp_edge.event import Event
from lasp_edge.ordered.deltas import Content, Delta, same_event
from lasp_edge.ordered.places import Place
from lasp_edge.protocol.status import TENTATIVE, status_after


class ResultRow(NamedTuple):
    """A result at a place.

    Attributes:
        event: the output there; None: it is gone.
        status: "tentative", "final" or "revised".
        revision: 0 at first, one more with each change of the row.
    """

    event: Event[Any] | None
    status: str
    revision: int


made_row: Callable[[Iterable[Any]], ResultRow] = partial(tuple.__new__, ResultRow)
"""Makes a row without the Python function of a NamedTuple."""


_FIRST: Final = tuple(status_after(None, passed=passed, differs=True) for passed in (False, True))
"""The status of a new row: while the frontier has not passed its place, and then."""


class ResultRows:
    """The results of one stream.

    Attributes:
        rows: by place.
    """

    def __init__(self) -> None:
        self.rows: dict[Place, ResultRow] = {}
        self._tentative: list[Place] = []
        self._changed: dict[Place, ResultRow | None] = {}

    def push(self, delta: Delta, frontier_us: int | None) -> None:
        """Take how the stream has changed, under a frontier."""
        rows, changed = self.rows, self._changed
        until_us = -(2**62) if frontier_us is None else frontier_us
        for place, (_, new) in delta.items():
            before, passed = rows.get(place), place[0] < until_us
            if before is None:
                if new is None:
                    continue
                row = made_row((new, _FIRST[passed], 0))
                if not passed:
                    heapq.heappush(self._tentative, place)
            elif same_event(before.event, new):
                continue
            else:
                status = status_after(before.status, passed=passed, differs=True)
                row = made_row((new, status, before.revision + 1))
            rows[place] = changed[place] = row

    def advance(self, frontier_us: int) -> None:
        """Take note that the frontier has come here: what lies before it is final."""
        tentative = self._tentative
        while tentative and tentative[0][0] < frontier_us:
            place = heapq.heappop(tentative)
            row = self.rows.get(place)
            if row is None or row.status != TENTATIVE:
                continue
            if row.event is None:  # it was there for a while, and never final
                del self.rows[place]
                self._changed[place] = None
            else:
                after = status_after(row.status, passed=True, differs=False)
                self._put(place, made_row((row.event, after, row.revision + 1)))

    def _put(self, place: Place, row: ResultRow) -> None:
        self.rows[place] = self._changed[place] = row

    def take_changed(self) -> list[tuple[Place, ResultRow | None]]:
        """Return the rows that changed since the last time, in order; None: it is gone."""
        taken, self._changed = self._changed, {}
        return sorted(taken.items(), key=itemgetter(0))

    def cut(self, time_us: int) -> None:
        """Let go the rows before a time."""
        self.rows = {place: row for place, row in self.rows.items() if place[0] >= time_us}

    def restore(self, rows: Mapping[Place, ResultRow]) -> None:
        """Take rows as they were."""
        self.rows |= rows
        for place, row in rows.items():
            if row.status == TENTATIVE:
                heapq.heappush(self._tentative, place)

    @property
    def due_us(self) -> int | None:
        """The time of the first tentative row; None without any."""
        return self._tentative[0][0] if self._tentative else None

    @property
    def content(self) -> Content:
        """The present outputs."""
        return {place: row.event for place, row in self.rows.items() if row.event is not None}
