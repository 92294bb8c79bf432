"""Byte forms of columns that one integer cannot hold: counts by bucket, and greatest values.

Both are canonical (equal content, equal bytes) and of fixed width, big-endian with an offset that
makes the order of bytes the order of numbers. So Spark can take them apart with its own functions.

- Counts: entries by ascending bucket, 8 bytes each: 2 bytes bucket + 2**15, 6 bytes count. A bucket
  without a count is absent.
- Top: values in descending order, repeats kept, 4 bytes each: value + 2**31.

    >>> packed_counts({3: 2, -1: 5}).hex(" ", 8)
    '7fff000000000005 8003000000000002'
    >>> counts_of(counts_added(packed_counts({3: 2}), packed_counts({3: 1, 4: 1})))
    {3: 3, 4: 1}
    >>> top_of(top_joined(packed_top([7, 7, 1]), packed_top([9, 5]), size=3))
    (9, 7, 7)
"""

from collections.abc import Iterable, Mapping
from struct import pack, unpack
from typing import Any

MAX_BINARY_BYTES = 20_000
"""The longest binary part of one device's partial."""

BUCKET_LIMIT = 2**15
"""Buckets lie from -BUCKET_LIMIT to BUCKET_LIMIT - 1."""

PACKED_COUNT_LIMIT = 2**47
"""Counts are below this; two of them do not overflow an entry."""

TOP_LIMIT = 2**31

_COUNT_BITS = 48
_COUNT = 2**_COUNT_BITS - 1
_ENTRY_BYTES = 8
_VALUE_BYTES = 4


def packed_counts(counts: Mapping[int, int]) -> bytes:
    """Return bucket -> count as bytes. Counts of 0 leave no trace.

    Raises:
        ValueError: a bucket or count is out of range.
    """
    entries = []
    for bucket, count in sorted(counts.items()):
        fits = -BUCKET_LIMIT <= bucket < BUCKET_LIMIT and 0 <= count < PACKED_COUNT_LIMIT
        if not fits:
            raise ValueError(f"bucket {bucket} with count {count} is out of range")
        if count:
            entries.append(bucket + BUCKET_LIMIT << _COUNT_BITS | count)
    return _from_entries(entries)


def counts_of(packed: bytes) -> dict[int, int]:
    """Return bucket -> count, by ascending bucket."""
    return {(entry >> _COUNT_BITS) - BUCKET_LIMIT: entry & _COUNT for entry in _to_entries(packed)}


def counts_added(a: bytes, b: bytes) -> bytes:
    """Return the counts of both, added up bucket by bucket.

    Raises:
        ValueError: a count reaches PACKED_COUNT_LIMIT.
    """
    if not a or not b:
        return a or b
    entries = {entry >> _COUNT_BITS: entry for entry in _to_entries(a)}
    for entry in _to_entries(b):
        bucket = entry >> _COUNT_BITS
        known = entries.get(bucket)
        if known is not None:
            entry = known + (entry & _COUNT)  # noqa: PLW2901 - what is stored for the bucket
            if entry & PACKED_COUNT_LIMIT:
                raise ValueError(f"a count of bucket {bucket - BUCKET_LIMIT} reaches 2**47")
        entries[bucket] = entry
    return _from_entries(sorted(entries.values()))


def counts_taken(a: bytes, b: bytes) -> bytes:
    """Return the counts of `a` less those of `b`, which it contains.

    Raises:
        ValueError: it does not contain them.
    """
    if not b:
        return a
    entries = {entry >> _COUNT_BITS: entry for entry in _to_entries(a)}
    for entry in _to_entries(b):
        bucket, count = entry >> _COUNT_BITS, entry & _COUNT
        left = (entries.get(bucket, 0) & _COUNT) - count
        if left < 0:
            raise ValueError(f"bucket {bucket - BUCKET_LIMIT} holds less than is to be taken away")
        if left:
            entries[bucket] -= count
        else:
            del entries[bucket]
    return _from_entries(list(entries.values()))


def is_packed_counts(part: Any, limit: int = PACKED_COUNT_LIMIT) -> bool:
    """Return whether `part`, which may be anything, is canonical with counts below `limit`."""
    if type(part) is not bytes or len(part) > MAX_BINARY_BYTES or len(part) % _ENTRY_BYTES:
        return False
    limit = min(limit, PACKED_COUNT_LIMIT)
    before = -1
    for entry in _to_entries(part):
        bucket, count = entry >> _COUNT_BITS, entry & _COUNT
        if bucket <= before or not 0 < count < limit:
            return False
        before = bucket
    return True


def packed_top(values: Iterable[int]) -> bytes:
    """Return values as bytes, the greatest first.

    Raises:
        ValueError: a value is not below 2**31 in absolute value.
    """
    falling = sorted(values, reverse=True)
    if falling and not -TOP_LIMIT < falling[-1] <= falling[0] < TOP_LIMIT:
        raise ValueError(f"values from {falling[-1]} to {falling[0]} are out of range")
    return pack(f">{len(falling)}I", *[value + TOP_LIMIT for value in falling])


def top_of(packed: bytes) -> tuple[int, ...]:
    """Return the values, the greatest first."""
    return tuple([value - TOP_LIMIT for value in unpack(f">{len(packed) // 4}I", packed)])


def top_joined(a: bytes, b: bytes, size: int) -> bytes:
    """Return the `size` greatest values of both, which hold no more than that each."""
    if not a or not b:
        return a or b
    full = size * _VALUE_BYTES
    if len(a) == full and b[:_VALUE_BYTES] <= a[-_VALUE_BYTES:]:
        return a
    if len(b) == full and a[:_VALUE_BYTES] <= b[-_VALUE_BYTES:]:
        return b
    values = unpack(f">{len(a) // 4}I", a) + unpack(f">{len(b) // 4}I", b)
    kept = sorted(values, reverse=True)[:size]
    return pack(f">{len(kept)}I", *kept)


def is_packed_top(part: Any, size: int) -> bool:
    """Return whether `part`, which may be anything, holds at most `size` values in order."""
    if type(part) is not bytes or len(part) > size * _VALUE_BYTES or len(part) % _VALUE_BYTES:
        return False
    values = unpack(f">{len(part) // 4}I", part)
    if values and not values[-1]:
        return False  # -2**31 is no reading
    return all(map(int.__ge__, values, values[1:]))


def _to_entries(packed: bytes) -> tuple[int, ...]:
    return unpack(f">{len(packed) // _ENTRY_BYTES}Q", packed)


def _from_entries(entries: list[int]) -> bytes:
    return pack(f">{len(entries)}Q", *entries)
