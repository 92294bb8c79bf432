"""Rows of results as they travel: a pane entry for each place, in which the newest version counts.

A row holds its place, its key, and its parts in whole steps or as texts; or none, where nothing is
at its place any more. So whoever holds the entries of a device holds its rows: nothing is
combined, and what is sent again, late or twice changes nothing.

    >>> place = (20, "pi-1", ("litres", "", 130), (0,))
    >>> packed = packed_row(place, "attic", (30, "on"))
    >>> row_at(20, "pi-1", packed) == SentRow(place, "attic", (30, "on"))
    True
    >>> form = RowForm((False, True))
    >>> form.within_limits((packed,)), form.within_limits((packed[:-1],))
    (True, False)
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from lasp_edge.folds.packed import MAX_BINARY_BYTES
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import decoded, encoded
from lasp_edge.protocol.lake_columns import RESULT_ROW

NAME_DIGITS = 12
"""Hexadecimal digits that tell rows of one device and microsecond apart."""
_LIMIT = 2**63

Version = tuple[int, int, int]
"""Incarnation, nonce and seq: of a device's entries the greatest is the newest."""


class SentRow(NamedTuple):
    """A row of a result.

    Attributes:
        place: where it stands. What time alone brought is of no device in the order.
        key: of the scan that it is an output of.
        parts: numbers in steps, and texts; None: there is nothing any more.
    """

    place: Place
    key: str
    parts: tuple[int | str, ...] | None


class Landed(NamedTuple):
    """A pane entry of a result.

    Attributes:
        name: what tells rows of one time apart: the entry's key.
        packed: the row, packed.
    """

    device: str
    time_us: int
    name: str
    version: Version
    packed: bytes


def packed_row(place: Place, key: str, parts: tuple[int | str, ...] | None) -> bytes:
    """Return a row as bytes; its time is that of its pane entry."""
    _, device, tie, path = place
    return encoded((bool(device), tie, path, key, parts))


def row_at(time_us: int, device: str, packed: bytes) -> SentRow:
    """Return the row that a device's pane entry holds."""
    is_of_device, tie, path, key, parts = decoded(packed)
    return SentRow((time_us, device if is_of_device else "", tie, path), key, parts)


def row_name(place: Place) -> str:
    """Return the name of a row among those of its device and time: a digest of its place."""
    return sha256(encoded(place[1:])).hexdigest()[:NAME_DIGITS]


def newest_rows(landed: Iterable[Landed]) -> dict[tuple[str, Place], SentRow]:
    """Return (device, place) -> the row of the newest version, which may be that it is gone."""
    newest: dict[tuple[str, int, str], tuple[Version, bytes]] = {}
    for device, time_us, name, version, packed in landed:
        at = (device, time_us, name)
        newest[at] = max((version, packed), newest.get(at, (version, packed)))
    rows = [(at[0], row_at(at[1], at[0], packed)) for at, (_, packed) in newest.items()]
    return {(device, row.place): row for device, row in rows}


class RowForm(NamedTuple):
    """The form of a result's rows.

    Attributes:
        texts: of each part, whether it is a text.
    """

    texts: tuple[bool, ...]

    @property
    def columns_named(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return (RESULT_ROW,)

    def within_limits(self, partial: Sequence[Any]) -> bool:
        """Return whether `partial`, which may hold anything, is a row in this form."""
        if len(partial) != 1 or type(partial[0]) is not bytes or len(partial[0]) > MAX_BINARY_BYTES:
            return False
        try:
            row = decoded(partial[0])
            return self._fits(*row) and encoded(row) == partial[0]
        except Exception:  # noqa: BLE001 - a stranger may send anything
            return False

    def _fits(self, of_device: Any, tie: Any, path: Any, key: Any, parts: Any) -> bool:
        found = [
            type(of_device) is bool,
            type(tie) is tuple,
            all(_is_part(each, is_text=type(each) is str) for each in tie),
            type(path) is tuple,
            all(type(each) is int and 0 <= each < _LIMIT for each in path),
            type(key) is str,
        ]
        if not all(found):
            return False
        if parts is None:
            return True
        return type(parts) is tuple and all(
            _is_part(part, is_text=is_text) for part, is_text in zip(parts, self.texts, strict=True)
        )


def _is_part(part: Any, *, is_text: bool) -> bool:
    if is_text:
        return type(part) is str
    return type(part) is int and -_LIMIT <= part < _LIMIT
