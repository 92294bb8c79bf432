"""The events in order of a cell, as they are published to devices.

>>> place = (20_000_000, "desk", ("end", "", 1), (1,))
>>> packed = packed_places({place: SharedPlace("hall", True, 0)}, 20_000_000)
>>> places_in(packed, 20_000_000)[place]
SharedPlace(key='hall', known=True, share=0)
>>> unknown = packed_places({place: SharedPlace("hall", False, None)}, 20_000_000)
>>> places_in(unknown, 20_000_000)[place]
SharedPlace(key='hall', known=False, share=None)
>>> places_in(b"", 20_000_000)
Traceback (most recent call last):
    ...
ValueError: no events in order of this cell
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from lasp_edge.ordered.cells import CELL_US
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


def packed_places(places: Mapping[Place, SharedPlace], cell_us: int) -> bytes:
    """Return the bytes of the events in order of a cell: their times count from its start.

    A share that is not known is left out.
    """
    return encoded(
        tuple(
            (place[0] - cell_us, *place[1:], each.key, *((each.share,) if each.known else ()))
            for place, each in sorted(places.items())
        )
    )


def places_in(packed: bytes, cell_us: int) -> dict[Place, SharedPlace]:
    """Return the events in order of a cell.

    Raises:
        ValueError: the bytes, which may be anything, hold none of this cell.
    """
    rows: Any = ()
    try:
        rows = decoded(packed)
        fit = type(rows) is tuple and cell_us % CELL_US == 0 and all(map(_fits, rows))
    except Exception:  # noqa: BLE001 - a stranger may send anything
        fit = False
    if not fit:
        raise ValueError("no events in order of this cell")
    return {
        (cell_us + row[0], *row[1:4]): SharedPlace(row[4], bool(row[5:]), *(row[5:] or (None,)))
        for row in rows
    }


def _fits(row: Any) -> bool:
    after_us, device, tie, path, key, *share = row
    are_whole = all(type(each) is int and abs(each) < _LIMIT for each in (after_us, *path))
    is_tie = type(tie) is tuple and len(tie) > 1 and all(type(each) in {int, str} for each in tie)
    check_plain(tuple(share))
    return (
        are_whole
        and is_tie
        and all(type(each) is str for each in (*tie[:2], device, key))
        and type(path) is tuple
        and len(share) <= 1
        and 0 <= after_us < CELL_US
    )
