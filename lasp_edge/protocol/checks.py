"""Checks of what strangers send: each function returns the value, or raises `FrameError`.

Nothing that crosses the network is trusted: types, lengths and ranges are checked before a value is
used, and a value that is wrong can do no more than raise `FrameError`.

    >>> integers([3, 5], 0, 10)
    (3, 5)
    >>> integers([3, True])
    Traceback (most recent call last):
    lasp_edge.protocol.checks.FrameError: not a column of integers
"""

from typing import Any

from crdts import Replica
from lasp_edge.folds.packed import MAX_BINARY_BYTES
from lasp_edge.protocol.limits import LATEST_CLOCK_S

_INT64 = 2**63


class FrameError(ValueError):
    """The bytes are not a valid frame; the text is the reason under which they are counted."""


def replica(incarnation: Any, nonce: Any, device: Any) -> Replica:
    """Return the replica with these parts; its device must have a name."""
    try:
        made = Replica.checked(incarnation, nonce, device)
    except ValueError:
        raise FrameError("bad replica") from None
    if not device:
        raise FrameError("bad replica")
    return made


def integer(value: Any, least: int = -_INT64, below: int = _INT64) -> int:
    """Return an integer in a range."""
    if type(value) is not int or not least <= value < below:
        raise FrameError("integer out of range")
    return value


def integers(values: Any, least: int = -_INT64, below: int = _INT64) -> tuple[int, ...]:
    """Return a column of integers in a range."""
    if not isinstance(values, list) or (values and set(map(type, values)) != {int}):
        raise FrameError("not a column of integers")
    if values and not (least <= min(values) and max(values) < below):
        raise FrameError("integer out of range")
    return tuple(values)


def clock_s(value: Any) -> int | None:
    """Return a clock in seconds since the epoch; None where the sender does not know the time."""
    return None if value is None else integer(value, 0, LATEST_CLOCK_S)


def part_column(values: Any) -> tuple[int | bytes | None, ...]:
    """Return a column of partials: integers and None, or bytes of a bounded length."""
    if array(values) and type(values[0]) is bytes:
        if set(map(type, values)) != {bytes}:
            raise FrameError("not a column of one type")
        if max(map(len, values)) > MAX_BINARY_BYTES:
            raise FrameError("a binary part that is too long")
        return tuple(values)
    if None in values:
        integers([value for value in values if value is not None])
        return tuple(values)
    return integers(values)


def text(value: Any, longest: int = 255) -> str:
    """Return text of at most `longest` bytes of UTF-8."""
    if type(value) is not str or len(value.encode()) > longest:
        raise FrameError("bad text")
    return value


def name(value: Any) -> str:
    """Return text that names something: it is not empty."""
    if not text(value):
        raise FrameError("bad text")
    return str(value)


def keys(values: Any, longest: int) -> list[str]:
    """Return keys of at most `longest` bytes each; they hold no control characters."""
    known = [text(value, longest) for value in array(values)]
    if any(character < " " for key in known for character in key):
        raise FrameError("a control character in a key")
    return known


def array(value: Any) -> list[Any]:
    """Return a list."""
    if type(value) is not list:
        raise FrameError("not an array")
    return value


def binary(value: Any) -> bytes:
    """Return bytes; a frame bounds their length."""
    if type(value) is not bytes:
        raise FrameError("not bytes")
    return value


def flag(value: Any) -> bool:
    """Return True or False."""
    if type(value) is not bool:
        raise FrameError("bad flag")
    return value
