"""Outputs of a scan at a place, as events at places of their own.

>>> item = (5, "pi-1", ("x", "", 1), ()), Event("x", 1, 5, "pi-1", {})
>>> for place, event in outputs_at("used", "kitchen", ["a", "b"], *item):
...     print(place[3], event.name, event.value, event.key)
(0,) used a kitchen
(1,) used b kitchen
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from lasp_edge.event import Event
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import check_plain

Output = tuple[Place, Event[Any]]
NO_TAGS: Final = MappingProxyType[str, str]({})
FIRST: Final = (0,)
"""The path of a reading's first output: one object for all."""


class LogName(NamedTuple):
    """What a log is of: it names the outputs.

    Attributes:
        stream: the scan's name in the program.
        key: which key.
        device: of the outputs of timers; "" where they are of no single one.
    """

    stream: str
    key: str = ""
    device: str = ""


def outputs_at(
    stream: str, key: str, values: Sequence[Any], place: Place, event: Event[Any]
) -> Sequence[Output]:
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


made_event: Callable[[Iterable[Any]], Event[Any]] = partial(tuple.__new__, Event)
"""Makes an event without the Python function of a NamedTuple."""
