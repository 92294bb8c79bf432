"""How variables are kept in the store: under their meaning, as deltas and now and then whole.

What is stored of one key of one variable is a row of parts; their join is the state. A change adds
its delta, so flash is written for what changed; deltas that are many, and half as large as the
state, are replaced by the whole of it, so that a start has little to join.

A variable that is declared otherwise (other events, another step, keys of another version, another
type) does not take over what was stored. Samples are converted where only the step differs and
every value is a whole number of the new steps. All else is set aside: it stays in the store under
its former meaning, is named in reports, and counts again when that meaning comes back. It is
deleted where that is asked for (`Settings.drop_set_aside`), and never by itself: it may be all that
is left of what was counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from crdts import BoundedLWWSet, Lattice
from crdts.wire import decode, encode
from device_agent.agent.changes import Changes, Facts, Restored
from device_agent.agent.parts import Part
from device_agent.agent.stored_rows import StoredId, VariableId
from lasp_edge.folds.numbers import LIMIT
from lasp_edge.language.meaning import Meaning

DELTAS_PER_STATE = 64
"""Stored deltas after which a variable without keys may be stored whole: a start joins 64, or as
many as are half as large as the state."""
DELTAS_PER_KEY = 8
"""The same for each key of a variable with keys: there may be thousands of them."""
STORED_BYTES = 1 << 30
"""Bytes of an own stored state, at most: no limit in effect. A peer's is bounded by its frame."""
DROP_OPTION = "--drop-set-aside"
"""The option of `lasp-edge agent` that deletes what is set aside."""
UNREADABLE = "variable: what the store holds cannot be read"
"""What a stored state is counted as that is not of its variable's type."""


class Stored(Part):
    """What the store holds of variables, and what is to be changed there.

    Args:
        restored: what the store holds.
        meanings: variable -> the meaning that the program gives its values.
        drop_set_aside: what is set aside is deleted.
    """

    name = "stored variables"

    def __init__(
        self,
        restored: Restored,
        meanings: Mapping[str, Meaning],
        *,
        drop_set_aside: bool = False,
    ) -> None:
        self._changes: Changes | None = None
        self.is_changed = False
        self._parts = dict(restored.variables)
        self._counts: dict[VariableId, int] = {}
        self._bytes: dict[VariableId, tuple[int, int]] = {}  # of the whole state; of its deltas
        self._meanings = dict(restored.meanings)
        numbers = {meaning: number for number, meaning in self._meanings.items()}
        before = restored.facts.meanings or {}
        self._numbers: dict[str, int] = {}
        for name, meaning in meanings.items():
            number = numbers.get((name, meaning.text))
            if number is None:
                number = max(self._meanings, default=0) + 1
                self._meanings[number] = self._changed().meanings[number] = (name, meaning.text)
            self._numbers[name] = number
        for name in sorted(self._numbers.keys() & before):
            self._convert(before[name], self._numbers[name])
        if self._numbers != before:
            self._changed().facts.add(Facts(meanings=self._numbers))
        if drop_set_aside:
            self._drop_set_aside()
        self._set_aside = list(set_aside(self._meanings, self._parts, self._numbers))
        self._parts = {n: self._parts[n] for n in self._numbers.values() if n in self._parts}

    def _convert(self, former: int, present: int) -> None:
        """Give values of a former meaning the present one, where all of them can have it."""
        if former == present or present in self._parts or former not in self._parts:
            return
        old, new = (Meaning.from_text(self._meanings[number][1]) for number in (former, present))
        factor = old.factor(new)
        if factor is None:
            return
        converted = {}
        for key, parts in self._parts[former].items():
            state = _converted(parts, factor)
            if state is None:
                return
            converted[key] = [encode(state)]
        for key, (state_bytes,) in converted.items():
            self._changed().states[former, key] = None
            self._changed().states[present, key] = state_bytes
        del self._parts[former]
        self._parts[present] = converted

    def _drop_set_aside(self) -> None:
        """Delete what is stored under a meaning that the program does not give to a variable."""
        for number in self._parts.keys() - set(self._numbers.values()):
            for key in self._parts.pop(number):
                self._changed().states[number, key] = None

    def take(self, name: str, bottom: Lattice) -> dict[str, Lattice | None]:
        """Return key -> state of a variable, once; None where another type was stored."""
        found: dict[str, Lattice | None] = {}
        for key, parts in self._parts.pop(self._numbers[name], {}).items():
            found[key] = state = _joined(parts, bottom)
            # What cannot be read is stored whole by the next change.
            self._counts[name, key] = len(parts) if state is not None else DELTAS_PER_STATE
            whole = len(parts[0]) if state is not None else 0
            self._bytes[name, key] = whole, sum(map(len, parts)) - whole
        return found

    def put_delta(self, where: VariableId, state: Lattice, delta: Lattice) -> None:
        """Store what changed: `delta` was joined into `state`."""
        count, part = self._counts.get(where, 0) + 1, encode(delta)
        whole, deltas = self._bytes.get(where, (0, 0))
        many = count > (DELTAS_PER_KEY if where[1] else DELTAS_PER_STATE)
        if many and 2 * (deltas + len(part)) >= whole:
            self.put_whole(where, state)
            return
        self._counts[where], self._bytes[where] = count, (whole, deltas + len(part))
        self._changed().deltas.setdefault(self._at(where), []).append((count, part))

    def put_whole(self, where: VariableId, state: Lattice) -> None:
        """Store a state whole, in place of all that was stored."""
        encoded = encode(state)
        self._counts[where], self._bytes[where] = 0, (len(encoded), 0)
        self._changed().deltas.pop(self._at(where), None)
        self._changed().states[self._at(where)] = encoded

    def remove(self, where: VariableId) -> None:
        """Remove a key from the store."""
        self._counts.pop(where, None)
        self._bytes.pop(where, None)
        self._changed().deltas.pop(self._at(where), None)
        self._changed().states[self._at(where)] = None

    def _at(self, where: VariableId) -> StoredId:
        return self._numbers[where[0]], where[1]

    def _changed(self) -> Changes:
        """Return what is to be committed, to add to it; mostly there is nothing."""
        if self._changes is None:
            self._changes, self.is_changed = Changes(), True
        return self._changes

    def take_changes(self) -> Changes | None:
        taken, self._changes, self.is_changed = self._changes, None, False
        return taken

    def report(self) -> dict[str, Any]:
        return {"set_aside": self._set_aside}


def set_aside(
    meanings: Mapping[int, tuple[str, str]],
    variables: Mapping[int, Mapping[str, Any]],
    present: Mapping[str, int],
) -> Iterator[str]:
    """Yield a line on each former meaning of which the store keeps values: what, why, what to do.

    Args:
        meanings: number -> the variable's name, and the meaning as text.
        variables: number of the meaning -> what is stored, by key.
        present: variable -> the number of the meaning that the program gives it.
    """
    for number in sorted(variables):
        name, text = meanings[number]
        if present.get(name) == number:
            continue
        former = Meaning.from_text(text)
        if name in present:
            now = Meaning.from_text(meanings[present[name]][1])
            why = f"the program now declares {now}"
        else:
            why = "the program declares no such variable"
        size = sum(len(part) for parts in variables[number].values() for part in parts)
        yield (
            f"{name}: {former}, {size:,} bytes kept in the store and not used, since {why}; "
            "to use it again, run a program that declares it as it was; to delete it, start the "
            f"agent with {DROP_OPTION}"
        )


def fitting(encoded: bytes, bottom: Lattice) -> Lattice | None:
    """Return the state if its type and settings are those of `bottom`, else None.

    A set may have other limits: they can be changed.
    """
    try:
        state = decode(encoded, max_bytes=STORED_BYTES)
    except ValueError:
        return None
    if type(state) is not type(bottom):
        return None
    return state if isinstance(state, BoundedLWWSet) or state.bottom() == bottom else None


def _joined(parts: Sequence[bytes], bottom: Lattice) -> Lattice | None:
    joined: Lattice | None = None
    for encoded in parts:
        state = fitting(encoded, bottom)
        if state is None:
            return None
        if joined is None:
            joined = state
        else:
            joined |= state
    return joined


def _converted(parts: Sequence[bytes], factor: Fraction) -> BoundedLWWSet | None:
    """Return stored samples with every value times `factor`; None where one is no whole number."""
    state = _joined(parts, BoundedLWWSet(bound=1))
    if not isinstance(state, BoundedLWWSet):
        return None
    for seq, (time_us, value, accepted_us) in state.items.items():
        exact = value * factor if type(value) is int else Fraction(1, 2)
        if exact.denominator != 1 or abs(exact) >= LIMIT:
            return None
        state.items[seq] = (time_us, int(exact), accepted_us)
    return state
