"""Plain data: what states hold, and what they are made of on the wire.

A **value** is None, a bool, an integer of 64 bits, a float that is a number, text, bytes, or a
tuple of values. An **element** (what a set holds, or a map's key) is a value without bools and
floats: Python holds `1 == 1.0 == True`, so two replicas could keep different ones of them and still
call their states equal, and equal states would have unequal bytes.

What a caller gives is checked where it enters, and what a peer sent where it is decoded, by the
same functions. Each error names what was needed and what was given. `pack` gives the bytes of it.

>>> need_element(("room", 3))
('room', 3)
>>> need_element(2.5)
Traceback (most recent call last):
    ...
ValueError: an element needs an integer, text, bytes, None or a tuple of these, got 2.5
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import sub
from typing import Any

import msgpack

INTEGERS = 1 << 63  # -INTEGERS <= integer < INTEGERS
COLUMN_INTEGERS = 1 << 61  # the second differences of such integers still have 64 bits
MAX_DEPTH = 8  # of tuples in tuples: deeper ones break `==` and `repr` far below msgpack's limit


def encoded(value: Any) -> bytes:
    """Return bytes that tell any two plain values or states apart, on every Python version alike.

    They order what nothing else orders: elements on the wire, and the two values that only a cloned
    device can have written under one id, of which the greater wins everywhere.
    """
    return ascii(_spelt_out(value)).encode()


def outranks(value: Any, known: Any) -> bool:
    """Return whether `value` wins over `known` where both were written under one id."""
    if value is known or (type(value) is type(known) in _EXACT and value == known):
        return False
    return encoded(value) > encoded(known)


_EXACT = (int, str, bytes)  # equal ones have equal bytes, unlike 0.0 and -0.0


def _spelt_out(value: Any) -> Any:
    if hasattr(value, "to_plain"):
        return (type(value).__name__, _spelt_out(value.to_plain()))
    if type(value) is dict:
        return tuple((key, _spelt_out(item)) for key, item in value.items())
    return tuple(map(_spelt_out, value)) if type(value) is tuple else value


def _is_plain(value: Any, *, exact: bool, depth: int = MAX_DEPTH) -> bool:
    kind = type(value)
    if kind is int:
        return bool(-INTEGERS <= value < INTEGERS)
    if kind is str:
        # An unpaired surrogate has no UTF-8; nearly all text is ASCII, which is seen in O(1).
        return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)
    if kind is tuple:
        return depth > 0 and all(_is_plain(item, exact=exact, depth=depth - 1) for item in value)
    if kind is float:
        return not exact and value == value  # noqa: PLR0124  # only NaN differs from itself
    return value is None or kind is bytes or (kind is bool and not exact)


def need_value(value: Any) -> Any:
    """Return `value` if it is a plain value.

    Raises:
        ValueError: it is something else.
    """
    if not _is_plain(value, exact=False):
        raise ValueError(
            "a value needs a number of 64 bits, a bool, text, bytes, None or a tuple of these, "
            f"got {value!r}"
        )
    return value


def need_element(element: Any) -> Any:
    """Return `element` if it is a plain value without bools and floats.

    Raises:
        ValueError: it is something else.
    """
    kind = type(element)
    if (kind is int and -INTEGERS <= element < INTEGERS) or (kind is str and element.isascii()):
        return element  # nearly all are, and are distinguished here without another call
    if not _is_plain(element, exact=True):
        raise ValueError(
            f"an element needs an integer, text, bytes, None or a tuple of these, got {element!r}"
        )
    return element


def need_int(number: Any, what: str, *, least: int = 0, below: int = INTEGERS) -> int:
    """Return `number` if it is an integer, `least` <= number < `below`.

    Raises:
        ValueError: it is something else.
    """
    if type(number) is not int or not least <= number < below:
        raise ValueError(f"{what} needs an integer from {least} to {below - 1}, got {number!r}")
    return number


def need_text(text: Any, what: str, max_bytes: int) -> str:
    """Return `text` if it is a name: at most `max_bytes` in UTF-8, no control characters.

    Raises:
        ValueError: it is something else.
    """
    if type(text) is str and text.isascii() and text.isprintable() and len(text) <= max_bytes:
        return text  # nearly all are
    if type(text) is not str or not _is_plain(text, exact=True) or len(text.encode()) > max_bytes:
        raise ValueError(f"{what} needs text of at most {max_bytes} bytes, got {text!r}")
    if any(character < " " for character in text):  # names are joined by one of these in digests
        raise ValueError(f"{what} needs text without control characters, got {text!r}")
    return text


def need_tuple(plain: Any, what: str, length: int | None = None) -> tuple[Any, ...]:
    """Return `plain` if it is a tuple, of `length` items where that is given.

    Raises:
        ValueError: it is something else.
    """
    if type(plain) is not tuple or (length is not None and len(plain) != length):
        wanted = "a list" if length is None else f"a list of {length}"
        given = f"{len(plain)} items" if type(plain) is tuple else type(plain).__name__
        raise ValueError(f"{what} needs {wanted}, got {given}")
    return plain


def need_column(plain: Any, what: str, length: int | None = None) -> tuple[int, ...]:
    """Return `plain` if it is a tuple of integers, of `length` where that is given.

    Raises:
        ValueError: it is something else.
    """
    for number in need_tuple(plain, what, length):
        need_int(number, what, least=-INTEGERS)
    return plain  # type: ignore[no-any-return]  # need_tuple has checked it


def differences(column: Iterable[int]) -> tuple[int, ...]:
    """Return each integer less the one before it: a column that climbs slowly packs small.

    >>> differences([100, 101, 103]), sums((100, 1, 2))
    ((100, 1, 2), (100, 101, 103))
    """
    column = tuple(column)
    return tuple(map(sub, column, (0, *column)))  # the last one has none after it


def sums(column: Sequence[int]) -> tuple[int, ...]:
    """Return the column that `differences` was given."""
    return tuple(accumulate(column))


_free: list[msgpack.Packer] = []
"""Encoders that nobody uses now, as many as threads ever encoded at once. `msgpack.packb` makes
one, with its buffer, for each value."""


def pack(value: Any) -> bytes:
    """Return the bytes of plain data; threads may do so at the same time.

    >>> pack((1, "kitchen", None)) == msgpack.packb((1, "kitchen", None))
    True

    Raises:
        TypeError, ValueError, OverflowError: msgpack cannot hold it.
    """
    try:
        encoder = _free.pop()
    except IndexError:
        encoder = msgpack.Packer()
    packed: bytes = encoder.pack(value)
    _free.append(encoder)  # not after what cannot be encoded: its buffer holds a part of that
    return packed
