"""The rows of types whose entries replace each other: of an entry the greatest rank counts.

A rank is one number: a total, a time with the writer's life below it, a version. What a number
cannot tell apart, which only a cloned device makes, the text `tie` does: it is ordered as
`crdts.plain.encoded` orders.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from cloud_tier.shared.rows import Place, SharedRow, text_of, value_of
from crdts import (
    ControlEntry,
    ControlLog,
    ControlPlace,
    Entry,
    Frontier,
    GCounter,
    GSet,
    IVar,
    LWWRegister,
    Max,
    Member,
    Membership,
    Min,
    OwnedMap,
    PNCounter,
    Promise,
    Replica,
    TwoPSet,
    Version,
)
from crdts.frontier import BOTTOM_US
from crdts.lwwregister import Written
from crdts.plain import INTEGERS, encoded

_NONCE_BITS: Final = 32
_LIFE_BITS: Final = 62
"""Of an incarnation and a nonce."""
_SEQ_BITS: Final = 40
_DIGITS: Final = 31
"""Of a version, which has 102 bits."""
_TIME_DIGITS: Final = 20
_AFTER_DEVICE: Final = "\x1f"
"""Below every character of a device's name, so that names are compared before what follows."""
_AFTER_AUTHOR: Final = _AFTER_DEVICE
_PRESENT: Final = "1"
"""Before a value, so that it is above a value that was taken back."""


def counter_rows(state: GCounter, place: Place) -> Iterator[SharedRow]:
    """Yield each replica's total."""
    yield from _totals(state, place, "", 1)


def counter_state(bottom: GCounter, rows: Sequence[SharedRow]) -> GCounter:
    """Return the counter of these totals."""
    return type(bottom)({_replica(row.entry): row.rank for row in rows})


def pn_counter_rows(state: PNCounter, place: Place) -> Iterator[SharedRow]:
    """Yield the totals that each replica added, and took off."""
    yield from _totals(state.first, place, "+", 1)
    yield from _totals(state.second, place, "-", -1)


def pn_counter_state(_bottom: PNCounter, rows: Sequence[SharedRow]) -> PNCounter:
    """Return the counter of these totals."""
    added, taken_off = (
        GCounter({_replica(row.entry[1:]): row.rank for row in rows if row.sign == sign})
        for sign in (1, -1)
    )
    return PNCounter(added, taken_off)


def set_rows(state: GSet, place: Place) -> Iterator[SharedRow]:
    """Yield each element."""
    for element in map(text_of, state.elements):
        yield place.entry(element, value=element)


def set_state(_bottom: GSet, rows: Sequence[SharedRow]) -> GSet:
    """Return the set of these elements."""
    return GSet({value_of(row.entry) for row in rows})


def two_phase_rows(state: TwoPSet, place: Place) -> Iterator[SharedRow]:
    """Yield each element that was added, and each that was removed, which takes it away."""
    for sides, sign in (("+", None), ("-", 0)):
        elements = state.first if sides == "+" else state.second
        for element in map(text_of, elements):
            yield place.entry(sides + element, value=element, sign=sign)


def two_phase_state(_bottom: TwoPSet, rows: Sequence[SharedRow]) -> TwoPSet:
    """Return the set of these elements."""
    added, removed = (
        GSet({value_of(row.entry[1:]) for row in rows if row.entry[0] == side}) for side in "+-"
    )
    return TwoPSet(added, removed)


def extremum_rows(state: Max | Min, place: Place) -> Iterator[SharedRow]:
    """Yield the winning number."""
    if state.held is not None:
        rank = state.held if isinstance(state, Max) else -state.held
        yield place.entry(rank=rank, value=text_of(state.held))


def extremum_state(bottom: Max | Min, rows: Sequence[SharedRow]) -> Max | Min:
    """Return the extremum of these rows."""
    return type(bottom)(_only(rows, lambda row: value_of(row.value or "")))


def register_rows(state: LWWRegister, place: Place) -> Iterator[SharedRow]:
    """Yield the last write."""
    if state.last is not None:
        time_us, replica, value = state.last
        yield place.entry(
            rank=(time_us << _LIFE_BITS) + _life(replica.incarnation, replica.nonce),
            tie=f"{replica.device}{_AFTER_DEVICE}{encoded(value).decode()}",
            value=text_of(value),
        )


def register_state(_bottom: LWWRegister, rows: Sequence[SharedRow]) -> LWWRegister:
    """Return the register of this write."""

    def written(row: SharedRow) -> Written:
        life = row.rank & ((1 << _LIFE_BITS) - 1)
        incarnation, nonce = life >> _NONCE_BITS, life & ((1 << _NONCE_BITS) - 1)
        device = row.tie.partition(_AFTER_DEVICE)[0]
        return Written(
            row.rank >> _LIFE_BITS, Replica(incarnation, nonce, device), value_of(row.value or "")
        )

    return LWWRegister(_only(rows, written))


def variable_rows(state: IVar, place: Place) -> Iterator[SharedRow]:
    """Yield the value, once it is bound."""
    for value in state.held:
        yield place.entry(tie=encoded(value).decode(), value=text_of(value))


def variable_state(_bottom: IVar, rows: Sequence[SharedRow]) -> IVar:
    """Return the variable that is bound to this value."""
    return IVar(tuple(value_of(row.value or "") for row in rows))


def owned_rows(state: OwnedMap, place: Place) -> Iterator[SharedRow]:
    """Yield each device's newest entry."""
    for device, (version, payload) in state.entries.items():
        yield place.entry(
            rank=_number(version),
            tie=encoded(payload).decode(),
            value=text_of(payload),
            key=(device,),
        )


def owned_state(_bottom: OwnedMap, rows: Sequence[SharedRow]) -> OwnedMap:
    """Return the map of these entries."""
    return OwnedMap(
        {row.keys[-1]: Entry(_version(row.rank), value_of(row.value or "")) for row in rows}
    )


def frontier_rows(state: Frontier, place: Place) -> Iterator[SharedRow]:
    """Yield each device's newest promise."""
    for device, (version, low_us, done, heard_us) in state.entries.items():
        low = (BOTTOM_US if low_us is None else low_us) - BOTTOM_US
        yield place.entry(
            rank=_number(version),
            tie=f"{low:0{_TIME_DIGITS}d} {done:d} {INTEGERS - heard_us:0{_TIME_DIGITS}d}",
            value=text_of(low_us),
            key=(device,),
        )


def frontier_state(_bottom: Frontier, rows: Sequence[SharedRow]) -> Frontier:
    """Return the frontier of these promises."""

    def promise(row: SharedRow) -> Promise:
        _, done, heard_us = map(int, row.tie.split())
        return Promise(
            _version(row.rank), value_of(row.value or ""), bool(done), INTEGERS - heard_us
        )

    return Frontier({row.keys[-1]: promise(row) for row in rows})


def membership_rows(state: Membership, place: Place) -> Iterator[SharedRow]:
    """Yield the newest decision on each device; a retired one shows its last version."""
    for device, (control, retired, version) in state.entries.items():
        yield place.entry(
            rank=control << 1 | retired,
            tie=f"{_number(version):0{_DIGITS}d}",
            value=text_of(tuple(version)) if retired else None,
            key=(device,),
        )


def membership_state(_bottom: Membership, rows: Sequence[SharedRow]) -> Membership:
    """Return the membership of these decisions."""
    return Membership(
        {
            row.keys[-1]: Member(row.rank >> 1, bool(row.rank & 1), _version(int(row.tie)))
            for row in rows
        }
    )


def control_rows(state: ControlLog, place: Place) -> Iterator[SharedRow]:
    """Yield the newest entry of each place; one that was taken back has no value."""
    for at, (number, author, value) in state.entries.items():
        yield place.entry(
            rank=number,
            tie=author + _AFTER_AUTHOR + ("" if value is None else _PRESENT + value),
            value=None if value is None else text_of(value),
            key=(tuple(at),),
        )


def control_state(_bottom: ControlLog, rows: Sequence[SharedRow]) -> ControlLog:
    """Return the log of these entries."""

    def entry(row: SharedRow) -> ControlEntry:
        author, _, _ = row.tie.partition(_AFTER_AUTHOR)
        return ControlEntry(row.rank, author, None if row.value is None else value_of(row.value))

    return ControlLog({ControlPlace(*row.keys[-1]): entry(row) for row in rows})


def _totals(counter: GCounter, place: Place, prefix: str, sign: int) -> Iterator[SharedRow]:
    for (incarnation, nonce, device), total in counter.entries.items():
        entry = prefix + text_of((device, incarnation, nonce))
        yield place.entry(entry, rank=total, sign=sign)


def _replica(entry: str) -> Replica:
    device, incarnation, nonce = value_of(entry)
    return Replica(incarnation, nonce, device)


def _life(incarnation: int, nonce: int) -> int:
    return incarnation << _NONCE_BITS | nonce


def _number(version: Version) -> int:
    return _life(version.incarnation, version.nonce) << _SEQ_BITS | version.seq


def _version(number: int) -> Version:
    life, seq = number >> _SEQ_BITS, number & ((1 << _SEQ_BITS) - 1)
    return Version(life >> _NONCE_BITS, life & ((1 << _NONCE_BITS) - 1), seq)


def _only(rows: Iterable[SharedRow], read: Callable[[SharedRow], Any]) -> Any:
    """Return what is read from the only row; None without a row."""
    return next(map(read, rows), None)
