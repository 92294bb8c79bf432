"""Seals: each row of the store ends with a checksum of what stands before it.

SQLite checks how its pages hang together, and not what they hold: a bit that flips on a tired card
would be another number. A row is sealed when it is written, and its seal is verified when it is
read. The masks `dirty` and `refused` of a pane entry stand in its seal as terms of their own, so
that one statement can change them in many rows without reading them.

    >>> unsealed(sealed(("lake", '"lake-1"')))
    ('lake', '"lake-1"')
    >>> unsealed(("lake", '"lake-2"', sealed(("lake", '"lake-1"'))[-1]))
    Traceback (most recent call last):
    device_agent.storage.damage.DamagedStoreError: a row does not match its checksum
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from zlib import crc32

from crdts.packing import pack
from device_agent.storage.damage import DamagedStoreError
from lasp_edge.protocol.sinks import MAX_SINKS

Row = tuple[Any, ...]

_DIRTY = 8_589_934_609
"""What one unit of a pane entry's mask adds to its seal: beyond 32 bits and odd, so that no other
mask with another checksum gives the same seal."""
_REFUSED = _DIRTY << MAX_SINKS
"""What one unit of the second mask adds to it: more than the first mask can; both together stay
below 2**54."""
_MASKS = 1 << 2 * MAX_SINKS
"""Masks are below it."""
_WRONG = "a row does not match its checksum"


def sealed(row: Row) -> Row:
    """Return a row with its seal."""
    return (*row, crc32(pack(row)))


def all_sealed(rows: Iterable[Row]) -> list[Row]:
    """Return rows with their seals."""
    return [(*row, crc32(pack(row))) for row in rows]


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
    """Return a row of the table of panes, whose last columns are the masks, with its seal."""
    *content, dirty, refused = row
    return (*row, crc32(pack(content)) + _DIRTY * dirty + _REFUSED * refused)


def unsealed_pane(row: Row) -> Row:
    """Return a row of the table of panes without its seal.

    Raises:
        DamagedStoreError: the row is not what was sealed.
    """
    *content, dirty, refused, seal = row
    masks = (dirty, refused)
    if {type(mask) for mask in masks} != {int} or not all(0 <= mask < _MASKS for mask in masks):
        raise DamagedStoreError(_WRONG)
    if _checksum(content) + _DIRTY * dirty + _REFUSED * refused != seal:
        raise DamagedStoreError(_WRONG)
    return (*content, dirty, refused)


def masks_become(dirty: str = "dirty", refused: str = "refused") -> str:
    """Return the SQL that sets the masks of pane entries, SQL expressions, and mends their seals.

    >>> masks_become("dirty | 1").startswith("dirty = (dirty | 1), refused = (refused), seal = ")
    True
    """
    more = f"(({dirty}) - dirty) * {_DIRTY} + (({refused}) - refused) * {_REFUSED}"
    return f"dirty = ({dirty}), refused = ({refused}), seal = seal + {more}"


def _checksum(content: Sequence[Any]) -> int:
    try:
        return crc32(pack(content))
    except (ValueError, TypeError, OverflowError):  # SQLite gave what was never written
        return -1
