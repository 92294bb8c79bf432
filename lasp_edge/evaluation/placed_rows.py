"""Rows of results with their places, and which of several is the latest of its key."""

from collections.abc import Iterable
from typing import Any

from lasp_edge.ordered.places import Place
from lasp_edge.ordered.results import ResultRow
from lasp_edge.protocol.status import TENTATIVE

PlacedRow = tuple[Place, ResultRow]
"""A row, and where it stands."""


def latest_rows(
    changed: Iterable[tuple[Place, ResultRow | None]],
) -> tuple[dict[str, list[Any]], set[Place]]:
    """Return by key the last final row, the last tentative one and the first time; what is gone."""
    gone: set[Place] = set()
    latest: dict[str, list[Any]] = {}
    for each in changed:
        place, row = each
        if row is None or row[0] is None:
            gone.add(place)
            continue
        found = latest.get(key := row[0][5])
        if found is None:
            found = latest[key] = [None, None, place[0]]
        elif place[0] < found[2]:
            found[2] = place[0]
        at = row[1] == TENTATIVE
        before = found[at]
        if before is None or before[0] < place:
            found[at] = each
    return latest, gone


def later_row(known: PlacedRow | None, found: PlacedRow | None) -> PlacedRow | None:
    """Return the later of two rows; of two at one place the one that was found."""
    if known is None or found is None:
        return found or known
    return found if known[0] <= found[0] else known
