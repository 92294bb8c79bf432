"""Seals: each row of the store ends with a checksum of what stands before it.

SQLite checks how its pages hang together, and not what they hold: a bit that flips on a tired card
would be another number. A row is sealed when it is written, and its seal is verified when it is
read. The mask `dirty` of a pane entry stands in its seal as a term of its own, so that one
statement can change it in many rows without reading them.

    >>> unsealed(sealed(("lake", '"lake-1"')))
    ('lake', '"lake-1"')
    >>> unsealed(("lake", '"lake-2"', sealed(("lake", '"lake-1"'))[-1]))
    Traceback (most recent call last):
    device_agent.state.damage.DamagedStoreError: a row does not match its checksum
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from zlib import crc32

import msgpack

from device_agent.state.damage import DamagedStoreError

Row = tuple[Any, ...]

_DIRTY = 8_589_934_609
"""What one unit of a pane entry's mask adds to its seal: beyond 32 bits and odd, so that no other
mask with another checksum gives the same seal."""
_WRONG = "a row does not match its checksum"


def sealed(row: Row) -> Row:
    """Return a row with its seal."""
    return (*row, crc32(msgpack.packb(row)))


def all_sealed(rows: Iterable[Row]) -> list[Row]:
    """Return rows with their seals."""
    return [(*row, crc32(msgpack.packb(row))) for row in rows]


def unsealed(row: Row) -> Row:
    """Return a row without its seal.

    Raises:
        DamagedStoreError: the row is not what was sealed.
    """
    *content, seal = row
    if _checksum(content) != seal:
        raise DamagedStoreError(_WRONG)
    return tuple(content)


def all_unsealed(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows without their seals; raises what `unsealed` raises."""
    return map(unsealed, rows)


def sealed_pane(row: Row) -> Row:
    """Return a row of the table of panes, whose last column is the mask, with its seal."""
    *content, dirty = row
    return (*row, crc32(msgpack.packb(content)) + _DIRTY * dirty)


def unsealed_pane(row: Row) -> Row:
    """Return a row of the table of panes without its seal.

    Raises:
        DamagedStoreError: the row is not what was sealed.
    """
    *content, dirty, seal = row
    if type(dirty) is not int or _checksum(content) + _DIRTY * dirty != seal:
        raise DamagedStoreError(_WRONG)
    return (*content, dirty)


def dirty_becomes(mask: str) -> str:
    """Return the SQL that sets the mask of pane entries, an SQL expression, and mends their seals.

    >>> dirty_becomes("dirty | 1").startswith("dirty = (dirty | 1), seal = seal + ")
    True
    """
    return f"dirty = ({mask}), seal = seal + (({mask}) - dirty) * {_DIRTY}"


def _checksum(content: Sequence[Any]) -> int:
    try:
        return crc32(msgpack.packb(content))
    except (ValueError, TypeError, OverflowError):  # SQLite gave what was never written
        return -1
