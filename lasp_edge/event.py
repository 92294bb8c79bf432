"""Events: what handlers, keys and scans see of a reading, or of what was made from readings."""

import json
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from typing import Generic, NamedTuple

from lasp_edge.generics import Number_co


class Event(NamedTuple, Generic[Number_co]):
    """One accepted reading, or an output of a stream, as handlers, keys and scans see it.

    To a type checker `Event` alone is `Event[float]`. The readings of an event with `text=True` are
    `Event[str]`, and those of a stream of pairs `Event[tuple[float, float]]`.

    >>> reading = Event("temperature", 21.5, 1_764_028_800_000_000, "attic", {"room": "attic"})
    >>> reading.value, reading.tags["room"]
    (21.5, 'attic')

    Attributes:
        name: the event's name; of a scan's output the scan's.
        value: of a reading, the quantised value in the event's unit, as the nearest double; of an
            output, any plain value (`lasp_edge.ordered.plain`).
        time_us: its own time in microseconds since the epoch; when it was accepted, if it had none.
        device: the device that read it; of an output that time alone brought, the device of its
            scan, and "" over the fleet.
        tags: its labels, such as {"room": "kitchen"}, in the order of their names; an output has
            those of the event that brought it.
        key: of a scan's output, the key that it is about; else "".
    """

    name: str
    value: Number_co
    time_us: int
    device: str
    tags: Mapping[str, str]
    key: str = ""


class StreamItem(NamedTuple):
    """A reading that streams are made from, or one that is taken back.

    Attributes:
        value: quantised, or a text.
        tags: as canonical text; before them what the reading came on (`text_of_stream`).
        device: the device that read it.
    """

    event: str
    time_us: int
    value: int | str
    tags: str
    device: str
    retracted: bool = False


class StreamColumn(NamedTuple):
    """Readings that streams are made from, or that are taken back: of one event, device and tags.

    Attributes:
        tags, retracted: as of a `StreamItem`.
        times_us, values: equally long, in any order; the values are quantised, or texts.
    """

    event: str
    device: str
    tags: str
    retracted: bool
    times_us: list[int]
    values: list[int | str]

    def add(self, time_us: int, value: int | str) -> None:
        """Add a reading."""
        self.times_us.append(time_us)
        self.values.append(value)

    @property
    def items(self) -> list[StreamItem]:
        """Its readings, each by itself."""
        event, device, tags, retracted, *columns = self
        return [
            StreamItem(event, time_us, value, tags, device, retracted)
            for time_us, value in zip(*columns, strict=True)
        ]


def key_text(parts: tuple[str | int, ...]) -> str:
    """Return a key of several parts as the one text that it is wherever it travels or is kept.

    >>> key_text(("attic", 2))
    '["attic",2]'
    """
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)


def key_parts(key: str | tuple[str | int, ...]) -> str | tuple[str | int, ...]:
    """Return the parts of a key that was given as a tuple; of another one the text itself.

    >>> key_parts('["attic",2]'), key_parts("attic"), key_parts(("attic", 2))
    (('attic', 2), 'attic', ('attic', 2))
    """
    if isinstance(key, tuple) or not key.startswith("["):
        return key
    try:
        parts = json.loads(key)
    except ValueError:
        return key
    is_key = isinstance(parts, list) and parts and {*map(type, parts)} <= {str, int}
    return tuple(parts) if is_key else key


def in_order(tags: Mapping[str, str]) -> Mapping[str, str]:
    """Return tags in the order of their names, the same object where they are so already.

    A function of a program may go over all tags of an event: it gets one key for equal tags.

    >>> list(in_order({"room": "attic", "floor": "2"}))
    ['floor', 'room']
    """
    return tags if _are_in_order(tuple(tags)) else dict(sorted(tags.items()))


@lru_cache(maxsize=1_000)
def _are_in_order(names: tuple[str, ...]) -> bool:
    return list(names) == sorted(names)


def tags_text(tags: Mapping[str, str]) -> str:
    """Return tags as canonical text: equal tags, equal text; no tags are empty text.

    >>> tags_text({"room": "attic", "floor": "2"})
    '{"floor":"2","room":"attic"}'
    """
    if not tags:
        return ""
    return _tight(dict(sorted(tags.items())))


_tight = json.JSONEncoder(separators=(",", ":")).encode


@lru_cache(maxsize=1_000)
def short_tags(text: str) -> str | tuple[str, ...]:
    """Return the text of tags shorter, as it travels: names and values, one after another.

    A text that `tags_text` does not give stays as it is.

    >>> short_tags('{"room":"attic"}'), tags_of_short(("room", "attic")), short_tags("{}")
    (('room', 'attic'), '{"room":"attic"}', '{}')
    """
    try:
        tags = json.loads(text) if text else {}
        short = tuple(chain.from_iterable(tags.items()))
        return (
            short
            if all(type(each) is str for each in short) and tags_of_short(short) == text
            else text
        )
    except (ValueError, AttributeError):
        return text


def tags_of_short(short: str | tuple[str, ...]) -> str:
    """Return the text of tags that `short_tags` was given."""
    if isinstance(short, str):
        return short
    # Texts alone are remembered: 1, 1.0 and True, which a stranger may send, are one key.
    return _text_of(short) if {*map(type, short)} == {str} else _text_of.__wrapped__(short)


@lru_cache(maxsize=1_000)
def _text_of(short: tuple[str, ...]) -> str:
    return tags_text(dict(zip(short[::2], short[1::2], strict=True)))


def text_of_stream(place: str, tags: str) -> str:
    """Return place and tags of a reading as one text, by which readings of one time differ.

    Args:
        place: what they came on (a topic), where their tags do not tell that: two sensors may
            agree. "": nothing more tells them apart.
        tags: as canonical text.
    """
    return f"{place}\n{tags}" if place else tags


def tags_of_stream(text: str) -> str:
    r"""Return the tags in such a text.

    >>> text_of_stream("sensors/attic", '{"floor":"2"}')
    'sensors/attic\n{"floor":"2"}'
    >>> tags_of_stream('sensors/attic\n{"floor":"2"}'), tags_of_stream("sensors/attic\n")
    ('{"floor":"2"}', '')
    """
    return text.rpartition("\n")[2]
