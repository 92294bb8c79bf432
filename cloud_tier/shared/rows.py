"""A row of the table `shared`: one irreducible of a shared variable's state.

There are three kinds of row:

    entry   something of which the greatest counts: a replica's total, a register's last write, an
            element of a set that only grows. Of the rows of one (`part`, `key`, `entry`) the one
            with the greatest (`rank`, `tie`) counts
    live    the write number `seq` of a replica of `device`; its value is `value`
    gone    the writes `seq` to `upto` of that replica were removed

A live row counts while no `gone` row covers it, in whatever order they land. An `entry` row below
a map's key names the write that it is a part of, and counts as that does. So rows may repeat and
come in any order: of rows that are alike but for `rank` and `upto` the greatest of these is their
join.

The other columns: `part` is the place in a product, such as "1" or "0.1"; `key` is the keys of maps
on the way as a JSON array, "" outside of maps; `context` is the place whose writes `seq` numbers;
`mark` is a hash of a write's whole payload; `sign` is 1 or -1 where the ranks of an entry are added
up to the value (a counter's), 0 where the row takes `value` away, else NULL; `value` is JSON, and
NULL in rows that show nothing by themselves.
"""

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple

from crdts import NOBODY, Replica
from crdts.plain import encoded

ENTRY: Final = "entry"
LIVE: Final = "live"
GONE: Final = "gone"

_NOT_FINITE: Final = {"inf": float("inf"), "-inf": float("-inf")}


class SharedRow(NamedTuple):
    """One irreducible; the module says what the columns mean."""

    part: str
    key: str
    kind: str
    entry: str
    context: str
    device: str
    incarnation: int
    nonce: int
    seq: int
    mark: int
    sign: int | None
    value: str | None
    tie: str
    rank: int
    upto: int | None

    @property
    def replica(self) -> Replica:
        """The replica that made the row's write."""
        return Replica(self.incarnation, self.nonce, self.device)

    @property
    def keys(self) -> tuple[Any, ...]:
        """The keys of maps on the way to the row's place."""
        keys: tuple[Any, ...] = value_of(self.key) if self.key else ()
        return keys


class Place(NamedTuple):
    """Where in a state a part of it lies.

    Attributes:
        part: see `SharedRow`.
        keys: of maps, the outermost first.
        context: the place of the causal state that it is below.
        replica, seq: the write there that it is a part of; `NOBODY` and 0 outside of maps.
        mark: the hash of this write's whole payload.
    """

    part: str = ""
    keys: tuple[Any, ...] = ()
    context: str = ""
    replica: Replica = NOBODY
    seq: int = 0
    mark: int = 0

    def inside(self, at: int) -> "Place":
        """Return the place of a product's part."""
        return self._replace(part=f"{self.part}.{at}" if self.part else str(at))

    def entry(
        self,
        entry: str = "",
        *,
        rank: int = 0,
        tie: str = "",
        value: str | None = None,
        sign: int | None = None,
        key: tuple[Any, ...] = (),
    ) -> SharedRow:
        """Return a row of which the greatest counts."""
        keys = self.keys + key
        return SharedRow(
            self.part,
            text_of(keys) if keys else "",
            ENTRY,
            entry,
            self.context,
            self.replica.device,
            self.replica.incarnation,
            self.replica.nonce,
            self.seq,
            self.mark,
            sign,
            value,
            tie,
            rank,
            None,
        )

    def live(self, value: str | None, tie: str) -> SharedRow:
        """Return the row of the write that this place is about."""
        return self.entry(value=value, tie=tie)._replace(kind=LIVE)

    def gone(self, replica: Replica, first: int, last: int) -> SharedRow:
        """Return the row of a run of a replica's writes that were removed here."""
        at = self._replace(keys=(), replica=replica, seq=first)
        return at.entry()._replace(kind=GONE, upto=last)


WHOLE: Final = Place()
"""The place of a variable's whole state."""


def text_of(value: Any) -> str:
    """Return a plain value as JSON; equal texts are equal values.

    >>> text_of(("room", 3, None, b"a", 1.0, True))
    '["room", 3, null, {"bytes": "61"}, 1.0, true]'
    >>> value_of(text_of((float("inf"), ("a",))))
    (inf, ('a',))
    """
    return json.dumps(_to_json(value), ensure_ascii=False)


def value_of(text: str) -> Any:
    """Return the plain value that `text_of` was given."""
    return _from_json(json.loads(text))


def mark_of(payload: Any) -> int:
    """Return 63 bits of a hash of a write's payload."""
    return int.from_bytes(sha256(encoded(payload)).digest()[:8]) >> 1


def alike(rows: Iterable[SharedRow]) -> Iterator[tuple[int, list[SharedRow]]]:
    """Yield the number of each part of a product that has rows, with its rows as they are in it."""
    found: dict[int, list[SharedRow]] = {}
    for row in rows:
        at, _, inner = row.part.partition(".")
        found.setdefault(int(at), []).append(row._replace(part=inner))
    yield from found.items()


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_to_json, value))
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, float) and repr(value) in _NOT_FINITE:
        return {"float": repr(value)}
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_from_json, value))
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        return bytes.fromhex(text) if kind == "bytes" else _NOT_FINITE[text]
    return value
