"""Plain values: what a state or an output may be, its bytes, and when two of them are the same.

Plain are whole numbers of 64 bits, finite doubles, text, bytes, True, False, None, and tuples of
plain values. Each has one encoding. **The same** means the same encoding: 1, 1.0 and True are equal
in Python, and who takes them for the same would keep the outputs of another one.

    >>> 1 == 1.0, same(1, 1.0), same(("a", 1), ("a", 1))
    (True, False, True)
    >>> decoded(encoded(("a", (1, 2.5, None))))
    ('a', (1, 2.5, None))
    >>> check_plain([1, 2])
    Traceback (most recent call last):
        ...
    ValueError: a plain value is needed (a tuple in place of a list), not a list
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from operator import is_
from typing import Any

import msgpack

from crdts.plain import pack

PLAIN_BYTES = 65_536
"""Bytes of the encoding of a scan's state, and of what it says at one place, at most: a store and a
frame hold it."""
PART_BYTES = 16_384
"""Bytes of one output that leaves a device for an order over the fleet, encoded, at most; an entry
with it alone holds its place, too."""
PLAIN_DEPTH = 16
"""Tuples within each other, at most."""
_LEAST, _LIMIT = -(2**63), 2**63
_SHORT = 2**62
"""Times, and numbers in places, are below it in magnitude."""
_FEW, _FEW_INNER = 60, 6
_SHORTER = 100
_HEAD_BYTES = 9
"""Bytes that a number, or the head of a text or tuple, takes at most."""


def encoded(value: Any) -> bytes:
    """Return the bytes of a plain value; the same bytes, the same value."""
    return pack(value)


def decoded(data: bytes) -> Any:
    """Return the value whose bytes `encoded` gave."""
    return msgpack.unpackb(data, use_list=False)


def plain_of(value: Any) -> Any:
    """Return what a function gave as a plain value: a Decimal or a Fraction as the nearest double.

    Decimal's logarithms are rounded alike on every machine; those of the `math` module are not.

    Raises:
        ValueError: it is not plain.
    """
    found = float(value) if type(value) is Decimal or type(value) is Fraction else value
    check_plain(found)
    return found


def same(a: Any, b: Any) -> bool:
    """Return whether two plain values have one encoding, which is made only where they are equal.

    Where two equal values are of one kind, nearly all are known to have one without it.
    """
    return a is b or (bool(a == b) and _are_alike(a, b))


def _are_alike(a: Any, b: Any) -> bool:
    """Return whether two equal values have one encoding."""
    kind = type(a)
    if kind is type(b):
        if kind in _EXACT or (kind is float and a != 0.0):  # 0.0 equals -0.0
            return True
        if kind is tuple and len(a) <= _FEW:
            for one, other in zip(a, b, strict=True):  # mostly numbers and texts: without a call
                of = type(one)
                if (of is not type(other) or of not in _EXACT) and not _are_alike(one, other):
                    return False
            return True
    return encoded(a) == encoded(b)


def check_plain(value: Any) -> None:
    """Check that a value is plain, and that its encoding has at most `PLAIN_BYTES`.

    Raises:
        ValueError: it is not; the text says what it is.
    """
    kind = type(value)
    if kind is float and value - value == 0.0:
        return  # most states are a number
    if value is None or (kind is int and _LEAST <= value < _LIMIT):
        return
    if kind is tuple and is_short(value):
        return
    if _most_bytes(value, PLAIN_DEPTH) > PLAIN_BYTES:
        size = len(encoded(value))
        if size > PLAIN_BYTES:
            raise ValueError(f"at most {PLAIN_BYTES} bytes may be kept, not {size}")


def are_plain(values: Sequence[Any]) -> bool:
    """Return whether some values surely are plain and fit, by columns; else each is to be checked.

    >>> are_plain([(1, "a", ()), (2, "b", ())]), are_plain([1, None]), are_plain([[1], [2]])
    (True, True, False)
    """
    try:
        return not values or _most_bytes_of(values, PLAIN_DEPTH) <= PLAIN_BYTES
    except ValueError:
        return False


def _most_bytes_of(values: Sequence[Any], depth: int) -> int:
    """Return how many bytes the encoding of each of some values takes, or somewhat more."""
    first = values[0]
    if all(map(is_, values, repeat(first))):
        return _most_bytes(first, depth)
    kinds = set(map(type, values))
    if kinds == _INT:
        return max(_most_bytes(min(values), depth), _most_bytes(max(values), depth))
    if kinds == _TUPLE:
        if not depth:
            raise ValueError("tuples within each other")
        columns = zip(*values, strict=True)  # or ValueError: not of one length
        return _HEAD_BYTES + sum([_most_bytes_of(column, depth - 1) for column in columns])
    return max([_most_bytes(value, depth) for value in values])


def are_short_integers(values: Sequence[Any]) -> bool:
    """Return whether some values, at least one, are integers below 2**62 in magnitude."""
    return set(map(type, values)) == _INT and min(values) > -_SHORT and max(values) < _SHORT


def is_short(  # noqa: C901, PLR0911, PLR0912 - every state goes through it
    values: tuple[Any, ...], few: int = _FEW, short: int = 1_000
) -> bool:
    """Return whether a tuple surely is plain and small: a few numbers, short texts, and tuples.

    With 60 values of 1,000 characters, or 6 of 100 in each, or in those 6 of 10, it has less than
    `PLAIN_BYTES`.
    """
    if len(values) > few:
        return False
    for value in values:
        kind = type(value)
        if kind is float:
            if value - value != 0.0:
                return False
        elif kind is int:
            if not _LEAST <= value < _LIMIT:
                return False
        elif kind is tuple:
            if value and (short < _SHORTER or len(value) > _FEW_INNER):
                return False
            for part in value:  # mostly numbers: without a call
                if type(part) is not int or not _LEAST <= part < _LIMIT:
                    if not is_short(value, _FEW_INNER, short // 10):
                        return False
                    break
        elif kind is str:
            if len(value) > short or not value.isascii():
                return False
        elif kind is bytes:
            if len(value) > short:
                return False
        elif value is not None and kind is not bool:
            return False
    return True


def _most_bytes(value: Any, depth: int) -> int:
    """Return how many bytes the encoding of a plain value takes, or somewhat more."""
    kind = type(value)
    if kind is tuple:
        if not depth:
            raise ValueError(f"at most {PLAIN_DEPTH} tuples within each other may be kept")
        return _HEAD_BYTES + sum([_most_bytes(each, depth - 1) for each in value])
    if kind is str or kind is bytes:
        return _HEAD_BYTES + _text_bytes(value)
    if kind is float and value - value != 0.0:  # infinite, or not a number
        raise ValueError(f"a finite number is needed, not {value}")
    if kind is int and not _LEAST <= value < _LIMIT:
        raise ValueError("a whole number of 64 bits is needed, not a greater one")
    if kind not in _SINGLE:
        raise ValueError(f"a plain value is needed{_HINTS.get(kind, '')}, not a {kind.__name__}")
    return _HEAD_BYTES


def _text_bytes(value: str | bytes) -> int:
    if isinstance(value, str) and not value.isascii():
        return len(value.encode())  # half a surrogate pair is no text
    return len(value)


_INT, _TUPLE = {int}, {tuple}
_EXACT = frozenset({bool, int, str, bytes, type(None)})
"""Kinds of which equal values have one encoding."""
_SINGLE = frozenset({bool, float, int, type(None)})
_HINTS: dict[type, str] = {
    list: " (a tuple in place of a list)",
    dict: " (a sorted tuple of pairs in place of a dict)",
    **dict.fromkeys((set, frozenset), " (a sorted tuple in place of a set)"),
}
