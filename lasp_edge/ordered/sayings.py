"""Sayings: what a scan says at a place, as events at places of their own.

>>> item = (5, "pi-1", ("x", "", 1), ()), Event("x", 1, 5, "pi-1", {})
>>> for place, event in sayings_at("said", "kitchen", ["a", "b"], *item):
...     print(place[3], event.name, event.value, event.key)
(0,) said a kitchen
(1,) said b kitchen
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from lasp_edge.event import Event
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import check_plain

Saying = tuple[Place, Event]
NO_TAGS: Final = MappingProxyType[str, str]({})
FIRST: Final = (0,)
"""The path of what is said first of a reading: one object for all."""


class Named(NamedTuple):
    """Whose log it is.

    Attributes:
        stream: the scan's name in the program.
        key: which key.
        device: the device that what timers say is of; "" where it is of no single one.
    """

    stream: str
    key: str = ""
    device: str = ""


def sayings_at(
    stream: str, key: str, values: Sequence[Any], place: Place, event: Event
) -> Sequence[Saying]:
    """Return values as events at their places.

    Raises:
        ValueError: they are not plain.
    """
    time_us, device, tie, path = place
    tags = event[4]
    if len(values) == 1:
        check_plain(values[0])
        made = made_event((stream, values[0], time_us, event[3], tags, key))
        return (((time_us, device, tie, (*path, 0) if path else FIRST), made),)
    check_plain(tuple(values))
    return [
        (
            (time_us, device, tie, (*path, n)),
            made_event((stream, value, time_us, event[3], tags, key)),
        )
        for n, value in enumerate(values)
    ]


made_event: Callable[[Iterable[Any]], Event] = partial(tuple.__new__, Event)
"""Makes an event without the Python function of a NamedTuple."""
