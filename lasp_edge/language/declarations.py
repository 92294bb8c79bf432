"""What a program is made of: events, variables, windows and folds over them.

All are plain, immutable descriptions that `lasp_edge.language.program.Program` makes and hands out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from math import gcd
from typing import Any, NamedTuple

from crdts import Lattice
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.protocol.shards import KEY_BYTES

NAME_BYTES = 64
SPAN_LIMIT_US = 2**53
"""Windows are shorter than this, some 285 years."""
WINDOWS_PER_INSTANT = 10_000
"""At most this many windows of one definition hold one instant."""


class Event(NamedTuple):
    """One accepted reading, as handlers and keys see it.

    Attributes:
        name: the event's name.
        value: the quantised reading in the event's unit, as the nearest double.
        time_us: its own time, microseconds since the epoch; the acceptance where it had none.
        device: the device that read it.
        tags: what it was labelled with, such as {"room": "kitchen"}.
    """

    name: str
    value: float
    time_us: int
    device: str
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EventType:
    """A kind of reading: its name, the step of its values and their unit."""

    name: str
    resolution: Resolution
    unit: str = ""


Key = Callable[[Event], str]


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A named state.

    Attributes:
        name: unique in its program.
        bottom: the state it starts with.
        dynamic: each device keeps its own value; the fleet sees them side by side.
        measures: the event whose resolution its values have, where it was named.
        key: gives the text by which it is grouped: each key has a state of its own.
        version: of the meaning of `key`.
    """

    name: str
    bottom: Lattice | None
    dynamic: bool
    measures: EventType | None = None
    key: Key | None = None
    version: int = 1

    @property
    def keyed(self) -> bool:
        """Whether each key has a state of its own."""
        return self.key is not None


@dataclass(frozen=True, slots=True)
class Window:
    """A sliding window over an event's readings, by their own time.

    Attributes:
        stream: signed 64-bit id; panes of different streams never meet.
        span_us: length of a pane, the greatest that no window boundary cuts.
    """

    name: str
    source: EventType
    fold: Fold
    size_us: int
    slide_us: int
    key: Key | None
    version: int
    stream: int

    @property
    def keyed(self) -> bool:
        """Whether each key has rows of its own; else the only key is ""."""
        return self.key is not None

    @property
    def span_us(self) -> int:
        """Length of a pane, the greatest that no window boundary cuts."""
        return gcd(self.size_us, self.slide_us)

    @property
    def resolution(self) -> Resolution:
        """The step of the values that were folded."""
        return self.source.resolution

    def end_of_last(self, time_us: int) -> int:
        """Return the end of the last window that holds `time_us`."""
        return time_us // self.slide_us * self.slide_us + self.size_us


@dataclass(frozen=True, slots=True)
class LocalFold:
    """A fold over one device's own state of a dynamic variable: one partial a device and key."""

    name: str
    source: Variable
    fold: Fold
    resolution: Resolution
    stream: int

    @property
    def keyed(self) -> bool:
        """Whether there is a partial for each key; else the only key is ""."""
        return self.source.key is not None


@dataclass(frozen=True, slots=True)
class DynamicFold:
    """The combination of all devices' partials of a local fold, for each key if it has keys."""

    name: str
    source: LocalFold
    stream: int

    @property
    def fold(self) -> Fold:
        return self.source.fold

    @property
    def resolution(self) -> Resolution:
        """The step of the values that were folded."""
        return self.source.resolution

    @property
    def keyed(self) -> bool:
        """Whether there is a result for each key."""
        return self.source.keyed


class Derivation(NamedTuple):
    """How a derived set is made.

    Attributes:
        operator: "map", "filter", "union", "intersection", "product" or "bind_to".
        sources: the names of what it is made from.
        version: of the meaning of its function.
    """

    operator: str
    sources: tuple[str, ...]
    version: int = 1

    def __str__(self) -> str:
        return f"{self.operator} of {' and '.join(map(repr, self.sources))}"


class Awaited(NamedTuple):
    """What a handler waits for: a variable, and the threshold that it has to reach."""

    variable: str
    threshold: Any


class Change(NamedTuple):
    """What a handler asked for: a mutator of a variable, by name, with its arguments.

    `key` says of which of a keyed variable's states; it is "" where there is one.
    """

    variable: str
    mutator: str
    arguments: tuple[Any, ...]
    key: str = ""


def key_of(key: Key | None, event: Event, whose: str) -> str:
    """Return the group of an event; "" where there is no key.

    Args:
        key: the function of the user's.
        event: what it is asked about.
        whose: says in an error whose key it is, such as "window 'by_room'".

    Raises:
        ValueError: it gives no text, too long a one, or one with control characters. Whatever else
            the function raises is passed on.
    """
    if key is None:
        return ""
    given: Any = key(event)
    if not isinstance(given, str) or len(given.encode()) > KEY_BYTES:
        raise ValueError(f"the key of {whose} must be text of at most {KEY_BYTES} B")
    if any(character < " " for character in given):
        raise ValueError(f"the key of {whose} must not hold control characters")
    return str(given)


def checked_key(key: Key, whose: str) -> Key:
    """Return a user's key function that checks the text which it gives.

    Args:
        key: the function of the user's; whatever it raises is passed on.
        whose: says in an error whose key it is, such as "window 'by_room'".
    """

    @wraps(key)
    def checked(event: Event) -> str:
        given: Any = key(event)
        if not isinstance(given, str) or len(given.encode()) > KEY_BYTES:
            raise ValueError(f"the key of {whose} must be text of at most {KEY_BYTES} B")
        if not given.isprintable() and any(character < " " for character in given):
            raise ValueError(f"the key of {whose} must not hold control characters")
        return str(given)

    return checked


def need_key(key: Any, version: Any, what: str) -> None:
    """Check a `key=` and its `version=`.

    Raises:
        ValueError: one of them is none.
    """
    if key is not None and not callable(key):
        raise ValueError(f"{what}: key must be a function of the event, not {key!r}")
    if type(version) is not int or version < 1:
        raise ValueError(f"{what}: version must be a whole number from 1, not {version!r}")


def named(name: Any, what: str) -> str:
    """Return `name` if it can name something; `what` says in an error what it was to name.

    Raises:
        ValueError: it cannot.
    """
    if (
        not isinstance(name, str)
        or not name.isprintable()
        or not 0 < len(name.encode()) <= NAME_BYTES
    ):
        raise ValueError(
            f"{what}: a printable name of 1 to {NAME_BYTES} bytes is needed, not {name!r}"
        )
    return name


def size_and_slide(window: str, size_s: float, slide_s: float) -> tuple[int, int]:
    """Return a window's size and slide in microseconds.

    Raises:
        ValueError: they are no spans, or do not fit each other.
    """
    size_us, slide_us = _microseconds(size_s, window), _microseconds(slide_s, window)
    if slide_us > size_us or size_us > slide_us * WINDOWS_PER_INSTANT:
        raise ValueError(
            f"{window}: a slide from size / {WINDOWS_PER_INSTANT} to the size "
            f"({size_s} s) is needed, not {slide_s} s"
        )
    return size_us, slide_us


def _microseconds(seconds: Any, what: str) -> int:
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 < seconds < SPAN_LIMIT_US / 1_000_000:
        raise ValueError(f"{what}: a size and slide in seconds above 0 are needed, not {seconds!r}")
    span_us: int = round(seconds * 1_000_000)
    if not span_us:
        raise ValueError(f"{what}: a microsecond is the least size and slide, not {seconds!r} s")
    return span_us
