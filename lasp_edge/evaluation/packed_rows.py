"""Rows of results, packed, as a store holds them.

Rows that are packed later replace those of the same places, so a store may hold the rows of a cell
in several parts, and only what has changed is written. Of the devices that are missing in a row the
first ones are stored, and where none is, nothing.

    >>> place, result = (5, "", ("x", 1), ()), StreamResult("made", (("value", "1"),), 0)
    >>> row = ResultRow(Event("made", 3, 5, "", NO_TAGS, ""), "final", 1)
    >>> first, then = packed_rows([(place, row)]), packed_rows([(place, None)])
    >>> rows_in(result, first) == {place: row}, rows_in(result, first, then)
    (True, {})
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgpack

from lasp_edge.event import Event
from lasp_edge.language.declarations import StreamResult
from lasp_edge.ordered.outputs import NO_TAGS, made_event
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import encoded
from lasp_edge.ordered.results import ResultRow, made_row
from lasp_edge.protocol.window_rows import MOST_NAMES

Rows = Mapping[Place, ResultRow]
ChangedRows = list[tuple[Place, ResultRow | None]]
"""Rows in their order; None: there is no row any more."""

_GONE = (None, "", 0)
"""In place of event, status and revision: there is no row any more."""


def place_of(found: tuple[Place, ResultRow | None]) -> Place:
    """Return the place of a row: by it they are sorted."""
    return found[0]


def packed_rows(rows: Iterable[tuple[Place, ResultRow | None]]) -> bytes:
    """Return the bytes of rows; `rows_in` gives them again."""
    columns: list[tuple[Any, ...]] = []
    for place, row in rows:
        if row is None:
            columns.append((place, *_GONE))
            continue
        event, status, revision, gone_key, excluded = row
        what = gone_key if event is None else (event[1], event[3], event[5])
        names = (excluded[:MOST_NAMES],) if excluded else ()
        columns.append((place, what, status, revision, *names))
    return encoded(columns)


def rows_in(result: StreamResult, *stored: bytes) -> dict[Place, ResultRow]:
    """Return the rows that were packed, each as it was packed last."""
    found: dict[Place, ResultRow] = {}
    for packed in stored:
        for place, what, status, revision, *names in msgpack.unpackb(packed, use_list=False):
            if not status:
                found.pop(place, None)
                continue
            excluded = names[0] if names else ()
            if isinstance(what, tuple):
                value, device, key = what
                event: Event = made_event((result.name, value, place[0], device, NO_TAGS, key))
                found[place] = made_row((event, status, revision, "", excluded))
            else:  # it is gone; a former release did not store its key
                found[place] = made_row((None, status, revision, what or "", excluded))
    return found
