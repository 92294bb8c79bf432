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
    >>> place_text(child_place(reading_place("litres", "", 130, 20, "pi-1"), 0))
    'b20!!pi-1!!litres!!!!c130!!a0'

Laws: the places of all items of a content differ; what is made of an item stands behind the item
and before the next one.

Source: time, and a trace of what was made from what, after Trofimov, Kuralenok, Marshalkin and
Novikov, "Delivery, consistency, and determinism", 2019 (FlameStream), without its clocks.
"""

from collections.abc import Container

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


_ENDS = "!!"
"""Stands between two parts of a place's text: lower than whatever a part may go on with."""
_ESCAPED = {chr(code): "!" + chr(code + 0x22) for code in range(0x21)} | {"!": "!~"}
_ESCAPES = str.maketrans(_ESCAPED)
_PLAIN = {escaped[1]: letter for letter, escaped in _ESCAPED.items()}
VALUE_AT = 2
"""Where the value stands in the tie of a reading."""
OF_DEVICE = "\0"
"""What the tie of a place begins with where its device stands there: no event's name does."""


def place_text(place: Place) -> str:
    """Return a place as text; texts of places are ordered as the places are.

    A number begins with a letter that tells how many digits follow, so 9 (a9) comes before 10
    (b10).
    """
    time_us, device, tie, path = place
    numbers = ".".join(map(_number_text, path))
    return _ENDS.join(map(_part_text, (time_us, device, *tie, numbers)))


def place_in(text: str, numbers: Container[str]) -> Place:
    """Return the place that gave a text.

    Args:
        text: the place's.
        numbers: the names of events whose readings are numbers.

    >>> place = (20, "pi 1", ("litres", "", -130), (0, 12))
    >>> place_in(place_text(place), {"litres"}) == place
    True
    """
    time_us, device, *tie, path = text.split(_ENDS)
    parts: list[str | int] = [_text_of(part) for part in tie]
    if len(parts) > VALUE_AT and parts[0] in numbers:
        parts[VALUE_AT] = _number_of(tie[VALUE_AT])
    ordinals = tuple(_number_of(each) for each in path.split(".") if each)
    return _number_of(time_us), _text_of(device), tuple(parts), ordinals


def _text_of(part: str) -> str:
    first, *others = part.split("!")
    return first + "".join(_PLAIN[each[0]] + each[1:] for each in others)


def _number_of(text: str) -> int:
    if text[0] >= "a":
        return int(text[1:])
    return -int("".join(str(9 - int(digit)) for digit in text[1:]))


def _part_text(part: str | int) -> str:
    if isinstance(part, int):
        return _number_text(part)
    return part.translate(_ESCAPES)


def _number_text(number: int) -> str:
    digits = str(abs(number))
    if number >= 0:
        return chr(ord("a") + len(digits) - 1) + digits
    return chr(ord("Z") - len(digits) + 1) + "".join(str(9 - int(digit)) for digit in digits)
