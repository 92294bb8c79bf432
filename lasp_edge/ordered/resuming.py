"""Resumptions: where a device goes on behind events in order that are older than what it retains.

It answers nothing there any more (`lasp_edge.ordered.answers`), so its half does not step them. But
what it makes of the readings since begins with the share behind the last of them, of each key; and
that part lacks the readings between, unless the half has stepped this very event before. So a
resumption stands where the device's readings begin, before all of them.

    >>> end = (20_000_000, "desk", ("end", "", 1), (1,))
    >>> place, resumed = resumption(90_000_000, "hall", (end, SharedPlace("hall", True, 3)))
    >>> place, is_resumption(place), is_resumption(end)
    ((90000000, '', ('', '{}', 'hall'), ()), True, False)
    >>> resumed_from(resumed.share) == (end, True, 3)
    True

A key may have no event in order any more before that; then it goes on from the first state.

    >>> first, resumed = resumption(90_000_000, "hall")
    >>> first == place, resumed_from(resumed.share)
    (True, None)
"""

from typing import Any

from lasp_edge.ordered.places import Place
from lasp_edge.ordered.shared_places import SharedPlace

_NAME, _TAGS = "", "{}"
"""Stand in place of the name and the tags of an event: events of programs have other names."""


def resumption(
    at_us: int, key: str, last: tuple[Place, SharedPlace] | None = None
) -> tuple[Place, SharedPlace]:
    """Return where a device goes on, as if that were published.

    Args:
        at_us: from when on it retains its readings.
        key: of the scan.
        last: the last event in order before, of this key, and what is published of it.
    """
    share = () if last is None else (*last[0], *last[1][1:])
    return (at_us, "", (_NAME, _TAGS, key), ()), SharedPlace(key, known=True, share=share)


def is_resumption(place: Place) -> bool:
    """Return whether a device goes on at a place, where no event in order is."""
    return place[2][0] == _NAME


def resumed_from(share: Any) -> tuple[Place, bool, Any] | None:
    """Return the event in order from which a device goes on, whether the share is known, and it.

    None where it goes on from the first state.
    """
    if not share:
        return None
    time_us, device, tie, path, known, of_event = share
    return (time_us, device, tie, path), known, of_event
