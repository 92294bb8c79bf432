"""Byte form of values and how often each is there: what was taken back counts less than nothing.

Entries by ascending value, 8 bytes each, big-endian: value + 2**31 and count + 2**31, 4 bytes
each. A value whose count is 0 is absent. Counts add up, and every one has an inverse, also where
the bytes that a value is taken out of are elsewhere: in an entry of a device's former life.

    >>> packed_values({7: 2, -1: 1}).hex(" ", 8)
    '7fffffff80000001 8000000780000002'
    >>> values_of(values_added(packed_values({7: 2}), packed_values({7: -2, 9: 1})))
    {9: 1}

Source: the Z-sets of Budiu, Chajed, McSherry, Ryzhyk and Tannen, "DBSP: Automatic Incremental View
Maintenance for Rich Query Languages", VLDB 2023.
"""

from collections.abc import Mapping
from struct import pack, unpack
from typing import Any, Final

from lasp_edge.folds.packed import MAX_BINARY_BYTES

ENTRY_BYTES: Final = 8
HALF: Final = 2**31
"""Values and counts are less than this, without their sign."""


def packed_values(counts: Mapping[int, int]) -> bytes:
    """Return value -> count as bytes. Counts of 0 leave no trace.

    Raises:
        ValueError: a value or count is out of range.
    """
    found: list[int] = []
    for value, count in sorted(counts.items()):
        if not (-HALF < value < HALF and -HALF < count < HALF):
            raise ValueError(f"value {value} with count {count} is out of range")
        if count:
            found += (value + HALF, count + HALF)
    return pack(f">{len(found)}I", *found)


def values_of(packed: bytes) -> dict[int, int]:
    """Return value -> count, by ascending value."""
    found = unpack(f">{len(packed) // 4}I", packed)
    pairs = zip(found[::2], found[1::2], strict=True)
    return {value - HALF: count - HALF for value, count in pairs}


def values_added(a: bytes, b: bytes) -> bytes:
    """Return the counts of both, added up value by value."""
    return _combined(a, b, 1) if a and b else a or b


def values_taken(a: bytes, b: bytes) -> bytes:
    """Return the counts of `a` less those of `b`."""
    return _combined(a, b, -1) if b else a


def _combined(a: bytes, b: bytes, sign: int) -> bytes:
    counts = values_of(a)
    for value, count in values_of(b).items():
        counts[value] = counts.get(value, 0) + sign * count
    return packed_values(counts)


def is_packed_values(part: Any) -> bool:
    """Return whether `part`, which may be anything, is canonical."""
    if type(part) is not bytes or len(part) > MAX_BINARY_BYTES or len(part) % ENTRY_BYTES:
        return False
    found = unpack(f">{len(part) // 4}I", part)
    values = found[::2]
    return 0 not in found and HALF not in found[1::2] and all(map(int.__lt__, values, values[1:]))
