"""The events in order of a cell, as they are published to devices.

A name of an event travels as its number among those of the scan, where these are given.

>>> place = (20_000_000, "desk", ("end", "", 1), (1,))
>>> packed = packed_places({place: SharedPlace("hall", True, 0)}, 20_000_000)
>>> places_in(packed, 20_000_000)[place]
SharedPlace(key='hall', known=True, share=0)
>>> unknown = packed_places({place: SharedPlace("hall", False, None)}, 20_000_000)
>>> places_in(unknown, 20_000_000)[place]
SharedPlace(key='hall', known=False, share=None)
>>> len(packed), len(packed_places({place: SharedPlace("hall", True, 0)}, 20_000_000, ("end",)))
(22, 19)
>>> places_in(b"", 20_000_000)
Traceback (most recent call last):
    ...
ValueError: no events in order of this cell
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from lasp_edge.event import short_tags, tags_of_short
from lasp_edge.ordered.cells import CELL_US
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import are_short_integers, check_plain, decoded, encoded

_OF_VALUES: Final = frozenset({int, str})
_OF_TEXTS: Final = {str}


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


def packed_places(
    places: Mapping[Place, SharedPlace], cell_us: int, names: Sequence[str] = ()
) -> bytes:
    """Return the bytes of the events in order of a cell: their times count from its start.

    A share that is not known is left out.
    """
    return encoded(tuple([_row(*each, cell_us, names) for each in sorted(places.items())]))


def _row(place: Place, each: SharedPlace, cell_us: int, names: Sequence[str]) -> tuple[Any, ...]:
    time_us, device, (name, tags, *value), path = place
    of = names.index(name) if name in names else name
    share = (each.share,) if each.known else ()
    return time_us - cell_us, device, of, short_tags(tags), *value, path, each.key, *share


def places_in(packed: bytes, cell_us: int, names: Sequence[str] = ()) -> dict[Place, SharedPlace]:
    """Return the events in order of a cell.

    Raises:
        ValueError: the bytes, which may be anything, hold none of this cell.
    """
    rows: Any = ()
    try:
        rows = [_named(row, names) for row in decoded(packed)]
        fit = cell_us % CELL_US == 0 and all(map(_fits, rows))
    except Exception:  # noqa: BLE001 - a stranger may send anything
        fit = False
    if not fit:
        raise ValueError("no events in order of this cell")
    return {
        (cell_us + row[0], row[1], row[2:5], row[5]): SharedPlace(
            row[6], bool(row[7:]), *(row[7:] or (None,))
        )
        for row in rows
    }


def _named(row: Any, names: Sequence[str]) -> tuple[Any, ...]:
    """Return a row with the name and the tags of its event as texts."""
    after_us, device, of, tags, *rest = row
    name = names[of] if type(of) is int and of >= 0 else of
    return after_us, device, name, tags_of_short(tags), *rest


def _fits(row: tuple[Any, ...]) -> bool:
    after_us, device, name, tags, value, path, key, *share = row
    check_plain(tuple(share))
    return (
        are_short_integers((after_us, *path))
        and type(value) in _OF_VALUES
        and set(map(type, (name, tags, device, key))) == _OF_TEXTS
        and type(path) is tuple
        and len(share) <= 1
        and 0 <= after_us < CELL_US
    )
