"""The events in order of a cell, as they are published to devices.

>>> place = (20_000_000, "desk", ("end", "", 1), (1,))
>>> packed = packed_places({place: SharedPlace("hall", True, 0)})
>>> places_in(packed, 20_000_000)[place]
SharedPlace(key='hall', known=True, share=0)
>>> places_in(packed, 10_000_000)
Traceback (most recent call last):
    ...
ValueError: no events in order of this cell
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from lasp_edge.ordered.cells import cell_of
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import check_plain, decoded, encoded

_LIMIT: Final = 2**62


class SharedPlace(NamedTuple):
    """An event in order, as an evaluator publishes it.

    Attributes:
        key: of the scan.
        known: the share behind it is known.
        share: it; None where it is not known.
    """

    key: str
    known: bool
    share: Any


def packed_places(places: Mapping[Place, SharedPlace]) -> bytes:
    """Return the bytes of the events in order of a cell."""
    return encoded(tuple((*place, *each) for place, each in sorted(places.items())))


def places_in(packed: bytes, cell_us: int) -> dict[Place, SharedPlace]:
    """Return the events in order of a cell.

    Raises:
        ValueError: the bytes, which may be anything, hold none of this cell.
    """
    rows: Any = ()
    try:
        rows = decoded(packed)
        fit = type(rows) is tuple and all(_fits(row, cell_us) for row in rows)
    except Exception:  # noqa: BLE001 - a stranger may send anything
        fit = False
    if not fit:
        raise ValueError("no events in order of this cell")
    return {row[:4]: SharedPlace(*row[4:]) for row in rows}


def _fits(row: Any, cell_us: int) -> bool:
    time_us, device, tie, path, key, known, share = row
    are_whole = all(type(each) is int and abs(each) < _LIMIT for each in (time_us, *path))
    is_tie = type(tie) is tuple and len(tie) > 1 and all(type(each) in {int, str} for each in tie)
    check_plain(share)
    return (
        are_whole
        and is_tie
        and all(type(each) is str for each in (*tie[:2], device, key))
        and type(path) is tuple
        and type(known) is bool
        and cell_of(time_us) == cell_us
    )
