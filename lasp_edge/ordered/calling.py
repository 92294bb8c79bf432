"""Calling the user's functions of a stream: one that raises or is not plain has no output.

That is part of the meaning of a stream, for it depends on its items alone. A function's failures
are kept by place: a replay that steps a place again finds out again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import check_plain
from lasp_edge.reasons import reason_of

TROUBLES_KEPT = 100
"""Failures of a stage whose place and reason are kept; the others are counted."""


class Failures:
    """The failures of the functions of one stage.

    Attributes:
        places: those that fail now -> the reason; of the latest of them.
        total: how often a function failed, replays included.
    """

    __slots__ = ("places", "total")

    def __init__(self) -> None:
        self.places: dict[Place, str] = {}
        self.total = 0

    def note(self, place: Place, error: BaseException) -> None:
        """Note that a function failed at a place.

        Raises:
            KeyboardInterrupt: a person wants to end the process.
        """
        pass_interrupt(error)
        self.total += 1
        self.places[place] = reason_of(error)
        if len(self.places) > TROUBLES_KEPT:
            del self.places[min(self.places)]

    def cut(self, time_us: int) -> None:
        """Let go the places before a time."""
        self.places = {place: why for place, why in self.places.items() if place[0] >= time_us}

    def passed(self, place: Place) -> None:
        """Note that the functions do not fail at a place any more."""
        if self.places:
            self.places.pop(place, None)


def values_of(function: Callable[[Event[Any]], Any], event: Event[Any]) -> tuple[Any, ...]:
    """Return the plain values that a function gives of an event.

    Raises:
        ValueError: they are not plain. What the function raises is passed on.
    """
    given = function(event)
    if isinstance(given, Iterator):  # of a function that yields them
        given = tuple(given)
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise ValueError(f"a list of values is needed, not {type(given).__name__}")
    values = tuple(given)
    check_plain(values)
    return values
