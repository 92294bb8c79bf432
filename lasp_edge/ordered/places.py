"""Places: where an item stands in the order of a stream, taken from its content alone.

A **place** is `(time_us, device, tie, path)`, compared as tuples. `tie` is what else tells readings
of one device and time apart; `path` numbers what was made of one item. So a set of items has one
order, whoever holds it and however it came: no sequencer gives numbers, and a reading that is read
again after a store was lost is the same item.

    >>> first, second = reading_place("litres", "", 7, 20, "pi-1"), reading_place("door", "", 1, 10)
    >>> second < first, child_place(first, 0) > first
    (True, True)
    >>> timer_place(20, "left_open", "hall") < first
    True

Laws: the places of all items of a content differ; what is made of an item stands behind the item
and before the next one.

Source: time, and a trace of what was made from what, after Trofimov, Kuralenok, Marshalkin and
Novikov, "Delivery, consistency, and determinism", 2019 (FlameStream), without its clocks.
"""

Tie = tuple[str | int, ...]
Place = tuple[int, str, Tie, tuple[int, ...]]
"""Time, device, tie, path."""


def reading_place(event: str, tags: str, value: int | str, time_us: int, device: str = "") -> Place:
    """Return the place of a reading.

    Args:
        event: the event's name.
        tags: as canonical text.
        value: the quantised value, or a text.
        time_us: its time.
        device: the device that read it.
    """
    return time_us, device, (event, tags, value), ()


def child_place(place: Place, ordinal: int) -> Place:
    """Return the place of what was made of the item at a place, by its ordinal."""
    time_us, device, tie, path = place
    return time_us, device, tie, (*path, ordinal)


def timer_place(at_us: int, scan: str, key: str) -> Place:
    """Return the place of a timer of a scan and key: before all items of that instant.

    A scan and key have at most one timer at one time.
    """
    return at_us, "", (scan, key), ()
