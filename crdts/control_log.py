"""ControlLog: the values that operators gave a running program's parameters, and from when on.

It is a schedule, as a cron table is one: (parameter, scope, from) -> value. The **place** of an
entry is event time in integer microseconds: a reading at exactly `from_us` belongs to the new
value, and no two readings can disagree about that. The scope is "" for the whole fleet, or a
device. An entry's value is a text, which the program reads; or one of two marks that are no text:

- `INHERITED` ends the scope's own value: from there on the wider scope's is in force.
- `TAKEN_BACK` takes the place back: it is as if there had never been an entry.

An entry has a number, above the greatest that its writer knew, and the greater one stands
at a place: (number, author, what it says) is the order, it is total, and one place is an
irreducible. Two operators who did not know of each other may give one number; then the author
decides, the same everywhere. Numbers of a place only grow, so no state of it ever comes back.

`steps` reads the log as a step function of time: the last place at or before t that has a value, of
the device's own scope, else of the fleet's, decides. So an entry for tomorrow survives one for
today, and an entry for yesterday changes yesterday alone.

Cost: a place is some 40 B on the wire, the names of its parameter and scope apart, which are there
once; some 300 B in memory. A place is replaced, never added to, so nothing grows but the number of
places.

>>> here = ControlLog()
>>> here |= here.set("above", "", 600, "30", "ann")
>>> there = here | here.set("above", "cellar", 100, "25", "bob")
>>> here |= here.set("above", "", 600, TAKEN_BACK, "ann")
>>> here |= here.set("above", "", 800, "31", "ann")
>>> [tuple(step) for step in (here | there).steps("above", "cellar")]
[(-4611686018427387904, ''), (100, '25')]
>>> [tuple(step) for step in (here | there).steps("above", "attic")]
[(-4611686018427387904, ''), (800, '31')]

Source: Daniel Abadi et al., "The Design of the Borealis Stream Processing Engine", CIDR 2005,
section 3.3 (control lines: revisions of the parameters of running boxes, effective from a time on);
here they are data with a join.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, NamedTuple, Self

from crdts.chain_map import ChainMap
from crdts.plain import need_int, need_text, need_tuple
from crdts.replica import DEVICE_BYTES, SEQS

FLEET: Final = ""
"""The scope of an entry for all devices."""
INHERITED: Final = ""
"""The value of an entry from which on a scope follows the wider one: the fleet's, then the
default."""
TAKEN_BACK: Final = None
"""The value of an entry whose place counts no more."""
BEFORE_ALL_US: Final = -(2**62)
"""Before every place."""
PARAMETER_BYTES: Final = 64
"""Bytes of a parameter's name, at most."""
VALUE_BYTES: Final = 255
"""Bytes of a value, at most."""
_PLACES_US: Final = 2**61


class ControlPlace(NamedTuple):
    """The parameter, scope and time of an entry.

    >>> from crdts import ControlLog
    >>> log = ControlLog().set("limit", "cellar", 100, "25", "bob")
    >>> log.value[ControlPlace("limit", "cellar", 100)]
    '25'
    """

    parameter: str
    scope: str
    from_us: int


class ControlEntry(NamedTuple):
    """The last entry at a place; the greatest (number, author, value) stands.

    >>> from crdts import ControlLog
    >>> log = ControlLog().set("limit", "", 0, "30", "ann")
    >>> list(log.entries.values())
    [ControlEntry(number=1, author='ann', value='30')]
    >>> ControlEntry(2, "ann", "28") > ControlEntry(1, "bob", "31")
    True

    Attributes:
        number: of the entry, from 1.
        author: of the entry.
        value: a text, `INHERITED` or `TAKEN_BACK`.
    """

    number: int
    author: str
    value: str | None

    def __gt__(self, other: Any) -> bool:
        """Return whether this entry replaces `other`; what was taken back is the least."""
        return self._order() > ControlEntry._order(other)

    def _order(self) -> tuple[int, str, bool, str]:
        return self.number, self.author, self.value is not None, self.value or ""


class ControlStep(NamedTuple):
    """A value, and from when on it holds, until the next step; `INHERITED` is the default."""

    from_us: int
    value: str


IsValue = Callable[[str], bool]
"""Tells of a text whether it is a value of the parameter; others count as taken back."""


def _any_text(_value: str) -> bool:
    return True


class ControlLog(ChainMap[ControlPlace, ControlEntry]):
    """(parameter, scope, from) -> the last entry there.

    >>> log = ControlLog()
    >>> log |= log.set("limit", "", 0, "30", "ann")
    >>> log |= log.set("limit", "cellar", 100, "25", "bob")
    >>> [step.value for step in log.steps("limit", "cellar")]  # from the first time on, 0 and 100
    ['', '30', '25']
    """

    __slots__ = ()

    @property
    def value(self) -> dict[ControlPlace, str]:
        """Place -> its value, of all that were not taken back, in order."""
        return {
            at: text for at in sorted(self.entries) if (text := self.entries[at].value) is not None
        }

    @property
    def mark(self) -> int:
        """A number by which devices and sinks compare logs: the fingerprint, 0 of an empty one."""
        return self.fingerprint() if self.entries else 0

    def set(
        self,
        parameter: str,
        scope: str,
        from_us: int,
        value: str | None,
        author: str,
        *,
        least: int = 1,
    ) -> Self:
        """Return the delta in which a place has `value`; its number is at least `least`.

        Raises:
            ValueError: a name, time or value is not valid, or its number would reach 2**40.
        """
        number = max([least, *(1 + entry.number for entry in self.entries.values())])
        return type(self)({_place(parameter, scope, from_us): _entry(number, author, value)})

    def of(self, parameter: str, scope: str) -> Self:
        """Return the part of the log that is about one parameter and scope."""
        return type(self)(
            {at: entry for at, entry in self.entries.items() if at[:2] == (parameter, scope)}
        )

    def of_parameters(self, names: Collection[str]) -> Self:
        """Return the part of the log that is about some parameters."""
        return type(self)({at: each for at, each in self.entries.items() if at.parameter in names})

    def lanes(self) -> list[tuple[str, str]]:
        """Return the parameters and scopes that have entries, in order."""
        return sorted({at[:2] for at in self.entries})

    def places(self, parameter: str, scope: str) -> list[tuple[int, ControlEntry]]:
        """Return the places of a parameter and scope, by time."""
        return sorted(
            (at.from_us, entry)
            for at, entry in self.entries.items()
            if at.parameter == parameter and at.scope == scope
        )

    def steps(self, parameter: str, *scopes: str, counts: IsValue = _any_text) -> list[ControlStep]:
        """Return a parameter's value as a step function of time; equal neighbours are one step.

        Args:
            parameter: its name.
            *scopes: the narrow ones; each goes before those after it, and all before the fleet's.
            counts: tells which texts are values.
        """
        lanes = [self._lane(parameter, scope, counts) for scope in (*scopes, FLEET)]
        marks = sorted({BEFORE_ALL_US, *(from_us for lane in lanes for from_us, _ in lane)})
        found: list[ControlStep] = []
        for mark_us in marks:
            values = (_at(lane, mark_us) for lane in lanes)
            value = next((each for each in values if each != INHERITED), INHERITED)
            if not found or found[-1].value != value:
                found.append(ControlStep(mark_us, value))
        return found

    def _lane(self, parameter: str, scope: str, counts: IsValue) -> list[tuple[int, str]]:
        return [
            (from_us, entry.value)
            for from_us, entry in self.places(parameter, scope)
            if entry.value is not None and (entry.value == INHERITED or counts(entry.value))
        ]

    def to_plain(self) -> dict[str, dict[str, tuple[Any, ...]]]:
        plain: dict[str, dict[str, tuple[Any, ...]]] = {}
        for parameter, scope in self.lanes():
            rows = tuple((from_us, *entry) for from_us, entry in self.places(parameter, scope))
            plain.setdefault(parameter, {})[scope] = rows
        return plain

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        return cls(
            {
                at: entry
                for parameter, scopes in _need_map(plain, "a control log")
                for scope, rows in _need_map(scopes, "a parameter")
                for at, entry in control_rows(parameter, scope, rows)
            }
        )


def control_rows(
    parameter: Any, scope: Any, rows: Any
) -> Iterable[tuple[ControlPlace, ControlEntry]]:
    """Yield the places of a parameter and scope, and their entries, as a peer sent them.

    Raises:
        ValueError: they are not of that form.
    """
    for row in need_tuple(rows, "places"):
        from_us, number, author, value = need_tuple(row, "a place", 4)
        yield _place(parameter, scope, from_us), _entry(number, author, value)


def _place(parameter: Any, scope: Any, from_us: Any) -> ControlPlace:
    return ControlPlace(
        need_text(parameter, "a parameter's name", PARAMETER_BYTES),
        need_text(scope, "a scope", DEVICE_BYTES),
        need_int(from_us, "a place", least=-_PLACES_US, below=_PLACES_US),
    )


def _entry(number: Any, author: Any, value: Any) -> ControlEntry:
    if value is not None:
        need_text(value, "a value", VALUE_BYTES)
    return ControlEntry(
        need_int(number, "a number", least=1, below=SEQS),
        need_text(author, "an author's name", DEVICE_BYTES),
        value,
    )


def _need_map(plain: Any, what: str) -> Iterable[tuple[Any, Any]]:
    if type(plain) is not dict:
        raise ValueError(f"{what} needs a map, got {type(plain).__name__}")
    return plain.items()


def _at(lane: list[tuple[int, str]], time_us: int) -> str:
    """Return a scope's value at a time; `INHERITED` before its first place."""
    after = bisect_right(lane, time_us, key=lambda place: place[0])
    return lane[after - 1][1] if after else INHERITED
