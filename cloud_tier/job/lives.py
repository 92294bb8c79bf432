"""The lives of devices before their present ones, as a job has merged them, and what they lost.

A life whose store was lost, or a twin's, had accepted readings that landed nowhere. The next life
states up to when in its promises (`since_us`), and how far the lives before had promised is known
here alone (`lasp_edge.protocol.lost_stores`). Both are needed for as long as rows are written, and
of promises only the newest one of each device stays. So `lattice` has rows of the kind `lives`:

    `low_us`                how far the lives of the `device` before its present one had promised
    `now_us`                how far results were final when it was first heard
    `pane_us`, `since_us`   of which stretch readings may be missing; the latter is NULL for none
    `changed`               up to when a retired device owes readings; NULL for one that owes none
    `seq`                   the row with the greatest counts

A row is written before the batch that it follows from: a batch that dies between the two is done
again, and comes to the same.

The promises of a batch are taken life by life, so it changes nothing in which batch they are.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

import pyarrow as pa

from cloud_tier.lake.coverage import member_in, promise_in
from cloud_tier.lake.tables import ABSENT, BEGUN, LIVES, MEMBER, PROMISE, arrow_schema
from crdts import Frontier, Membership, Version
from crdts.frontier import BOTTOM_US, Promise
from lasp_edge.protocol.accepted import Begun
from lasp_edge.protocol.frames import EVERY_WINDOW
from lasp_edge.protocol.frontier import Liveness
from lasp_edge.protocol.lake_columns import LANDED, PANE_DATE
from lasp_edge.protocol.lost_stores import (
    EarlierLives,
    LostStretch,
    earlier_after,
    earlier_of,
    lost_after,
)
from lasp_edge.protocol.owed import owed_after

Life = tuple[int, int]
"""The incarnation of a device, and its nonce."""


class DeviceLives(NamedTuple):
    """What is known of the lives of devices before their present ones.

    Attributes:
        earlier: device -> how far they had promised; see `earlier_after`.
        lost: device -> of which stretch readings may be missing; see `lost_after`.
        owed: retired device -> up to which time it owes readings; see `lasp_edge.protocol.owed`.
        number: of the newest row of the kind `lives`.
        begun: device -> the windows that lack readings of it, and from when on all are there, as
            of its newest promise: `lattice` has that as it landed.
    """

    earlier: Mapping[str, EarlierLives] = MappingProxyType({})
    lost: Mapping[str, LostStretch] = MappingProxyType({})
    owed: Mapping[str, int] = MappingProxyType({})
    number: int = 0
    begun: Mapping[str, Begun] = MappingProxyType({})

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """Return what the newest rows of devices in `lattice` hold."""
        rows = [*rows]
        kept, promises, lost, owed, number = {}, {}, {}, {}, 0
        for row in rows:
            device = row["device"]
            if row["kind"] == PROMISE:
                promises[device] = promise_in(row)
            elif row["kind"] == LIVES:
                kept[device] = EarlierLives(row["low_us"], row["now_us"])
                number = max(number, row["seq"])
                if row["since_us"] is not None:
                    lost[device] = (row["pane_us"], row["since_us"])
                if row["changed"] is not None:
                    owed[device] = row["changed"]
        return cls(earlier_of(promises, kept), lost, owed, number, begun_after({}, {}, rows))

    def rows_after(self, before: "DeviceLives") -> pa.Table:
        """Return rows of `lattice`: what differs from before, for a job that starts again."""
        if self is before:
            return _SCHEMA.empty_table()
        devices = {*self.earlier, *self.owed, *before.owed}
        rows = [
            self._row(device)
            for device in sorted(devices)
            if any(
                each.get(device) != known.get(device)
                for each, known in zip(self[:3], before[:3], strict=True)
            )
        ]
        return pa.Table.from_pylist(rows, _SCHEMA)

    def _row(self, device: str) -> dict[str, Any]:
        earlier = self.earlier.get(device, _NEVER_HEARD)
        return (
            dict.fromkeys(LANDED)
            | dict(ABSENT)
            | {"kind": LIVES, "device": device, "seq": self.number, "received_us": 0}
            | {"low_us": earlier.reached_us, "now_us": earlier.unknown_us}
            | dict(zip(("pane_us", "since_us"), self.lost.get(device, ()), strict=False))
            | {"changed": self.owed.get(device), PANE_DATE: _EPOCH}
        )


_NEVER_HEARD: Final = EarlierLives(BOTTOM_US, BOTTOM_US)
_EPOCH: Final = date(1970, 1, 1)
_SCHEMA: Final = arrow_schema(LANDED).append(pa.field(PANE_DATE, pa.date32()))


def lives_after(
    known: DeviceLives,
    before: Liveness,
    rows: Iterable[Mapping[str, Any]],
    frontier_us: int | None,
) -> DeviceLives:
    """Return what is known of earlier lives after a batch's promises and member commands.

    Args:
        known: before it.
        before: every promise before it.
        rows: of the batch, at least those.
        frontier_us: how far results were final before it; None for nothing yet.
    """
    earlier, lost = known.earlier, known.lost
    rows = [*rows]
    owed = _owed(known.owed, before.membership, rows, frontier_us)
    begun = begun_after(known.begun, before.promises.entries, rows)
    for came, stated in _by_life(rows, before.promises.entries):
        earlier = earlier_after(earlier, before, came, frontier_us)
        lost = lost_after(lost, stated, earlier)
        before = before._replace(promises=before.promises | Frontier(came))
    if earlier is known.earlier and lost is known.lost and owed is known.owed:
        return known if begun is known.begun else known._replace(begun=begun)
    return DeviceLives(earlier, lost, owed, known.number + 1, begun)


def begun_after(
    known: Mapping[str, Begun], before: Mapping[str, Promise], rows: Iterable[Mapping[str, Any]]
) -> Mapping[str, Begun]:
    """Return which windows lack readings of devices, after the promises of some rows.

    Args:
        known: the same before.
        before: the newest promise of each device before.
        rows: at least the promises and what came beside them; an older promise states nothing.
    """
    stated = defaultdict[tuple[str, Version], set[tuple[int, int]]](set)
    newest: dict[str, Version] = {}
    for row in rows:
        device, version = row["device"], Version(row["incarnation"], row["nonce"], row["seq"])
        if row["kind"] == BEGUN:
            stated[device, version].add((row["stream"], row["since_us"]))
        elif row["kind"] == PROMISE:
            newest[device] = max(version, newest.get(device, version))
    found = dict(known)
    for device, version in newest.items():
        was = before.get(device)
        if was is None or was.version <= version:
            found[device] = tuple(sorted(stated[device, version]))
    found = {device: each for device, each in found.items() if each}
    return known if found == known else found


def _owed(
    known: Mapping[str, int],
    before: Membership,
    rows: Iterable[Mapping[str, Any]],
    frontier_us: int | None,
) -> Mapping[str, int]:
    """Return up to which time retired devices owe readings, after the decisions of a batch."""
    decided = [(row, member_in(row)) for row in rows if row["kind"] == MEMBER]
    if not decided:
        return known
    members, came = before.copy(), dict[str, int]()
    for row, member in decided:
        device = row["device"]
        members |= Membership({device: member})
        known_member = before.entries.get(device)
        is_news = known_member is None or member > known_member  # two landers may write it
        if row["low_us"] is not None and is_news:
            came[device] = max(row["low_us"], came.get(device, BOTTOM_US))
    return owed_after(known, members, came, frontier_us)


def _by_life(
    rows: Iterable[Mapping[str, Any]], known: Mapping[str, Promise]
) -> Iterator[tuple[dict[str, Promise], dict[str, Begun]]]:
    """Yield the newest promise and what is stated of the first life of each device, then the next.

    Only of devices that are new here, have another life, or state that a lost store had more.
    """
    promised = [row for row in rows if row["kind"] == PROMISE]
    changed = {
        row["device"]
        for row in promised
        if row["since_us"] is not None
        or (was := known.get(row["device"])) is None
        or was.version[:2] != (row["incarnation"], row["nonce"])
    }
    several: dict[str, dict[Life, list[Mapping[str, Any]]]] = defaultdict(dict)
    for row in promised if changed else ():
        if row["device"] in changed:
            life = (row["incarnation"], row["nonce"])
            several[row["device"]].setdefault(life, []).append(row)
    left = {device: sorted(several[device].items(), reverse=True) for device in sorted(several)}
    while left:
        came, begun = dict[str, Promise](), dict[str, Begun]()
        for device, lives in left.items():
            _, of_life = lives.pop()
            came[device] = max(map(promise_in, of_life))
            stated = [row["since_us"] for row in of_life if row["since_us"] is not None]
            if stated:
                begun[device] = ((EVERY_WINDOW, max(stated)),)
        yield came, begun
        left = {device: lives for device, lives in left.items() if lives}
