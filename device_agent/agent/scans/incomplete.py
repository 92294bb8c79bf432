"""Which answers of a device are incomplete: a former life had readings that this one may not have.

Up to its **doubt** a former life had accepted readings that the store does not contain, as far as
sinks and peers say (`device_agent.agent.intake.source_highs`). Whatever is made of the readings up
to there may lack some. So may the part at the first event in order of each key behind it, whose
slice begins before; an answer of a former life lacks there what came since. From the next one on
all is known.

No event in order is taken before a sink has answered what former lives had
(`device_agent.agent.scans.shares`).
"""

from collections.abc import Callable, Iterator

from lasp_edge.language.halves import leaf_of, shares_of
from lasp_edge.ordered.answers import IsLast
from lasp_edge.ordered.cells import cell_of
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.places import Place

PlacesOf = Callable[[str, int, int], Iterator[tuple[Place, str]]]
"""Yields the published events in order of an input from one time to another, with their keys."""


class IncompleteAnswers:
    """Tells which answers are incomplete.

    Args:
        doubt_us: returns up to when some life had surely read; None where this store has all.
        places: the published ones.
    """

    def __init__(self, doubt_us: Callable[[], int | None], places: PlacesOf) -> None:
        self._doubt_us, self._places = doubt_us, places
        self._known_us: int | None = None
        self._first: dict[str, dict[str, Place]] = {}

    def of(self, scan: str) -> IsLast | None:
        """Return which answers of a scan are incomplete; None: all are complete."""
        doubt_us = self._doubt_us()
        if doubt_us is None:
            return None
        if doubt_us != self._known_us:
            self._known_us = doubt_us
            self._first.clear()

        def is_last(place: Place, key: str) -> bool | None:
            return False if place[0] <= doubt_us else self._is_first(scan, doubt_us, place, key)

        return is_last

    def _is_first(self, scan: str, doubt_us: int, place: Place, key: str) -> bool | None:
        """Return whether no event in order of a key is between the doubt and a place; else None."""
        first = self._first.get(scan)
        if first is None:
            first = self._first[scan] = {}
            event = shares_of(leaf_of(scan))
            for at, of_key in self._places(event, cell_of(doubt_us), FOR_EVER_US):
                if at[0] > doubt_us:
                    first[of_key] = min(at, first.get(of_key, at))
        first[key] = min(place, first.get(key, place))
        return True if place == first[key] else None
