"""Rows of results, packed, as a store holds them."""

from collections.abc import Iterable, Mapping

import msgpack

from lasp_edge.event import Event
from lasp_edge.language.declarations import StreamResult
from lasp_edge.ordered.outputs import NO_TAGS
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import encoded
from lasp_edge.ordered.results import ResultRow

Rows = Mapping[Place, ResultRow]
ChangedRows = list[tuple[Place, ResultRow | None]]
"""Rows in their order; None: there is no row any more."""


def packed_rows(rows: Iterable[tuple[Place, ResultRow]]) -> bytes:
    """Return the bytes of rows; `rows_in` gives them again."""
    return encoded(
        tuple(
            (place, None if e is None else (e.value, e.device, e.key), row.status, row.revision)
            for place, row in rows
            for e in (row.event,)
        )
    )


def rows_in(result: StreamResult, stored: bytes) -> dict[Place, ResultRow]:
    """Return the rows that were packed."""
    found: dict[Place, ResultRow] = {}
    for place, what, status, revision in msgpack.unpackb(stored, use_list=False):
        event = None
        if what is not None:
            value, device, key = what
            event = Event(result.name, value, place[0], device, NO_TAGS, key)
        found[place] = ResultRow(event, status, revision)
    return found
