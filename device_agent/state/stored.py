"""How variables are kept in the store: as deltas, and from time to time as a whole state.

What is stored of one key of one variable is a row of parts; their join is the state. A change adds
its delta, so flash is written for what changed; after some deltas the whole state replaces them, so
that a start has little to join.
"""

from collections.abc import Mapping, Sequence

from crdts import BoundedLWWSet, Lattice
from crdts.wire import decode, encode
from device_agent.changes import Changes, VariableId
from device_agent.parts import Part

DELTAS_PER_STATE = 64
"""Stored deltas after which a variable without keys is stored whole: a start joins at most 64."""
DELTAS_PER_KEY = 8
"""The same for each key of a variable with keys: there may be thousands of them."""
STORED_BYTES = 1 << 30
"""Bytes of an own stored state, at most: no limit in effect. A peer's is bounded by its frame."""
SET_ASIDE = "variable: the store holds another definition"
"""What a stored state is counted as that does not fit the program any more."""


class Stored(Part):
    """What the store holds of variables, and what is to be changed there.

    Args:
        parts: variable -> key -> encoded parts, in the order in which they were stored.
    """

    name = "stored variables"

    def __init__(self, parts: Mapping[str, Mapping[str, Sequence[bytes]]]) -> None:
        self._changes = Changes()
        self._parts = dict(parts)
        self._counts = {
            (name, key): len(several)
            for name, keys in parts.items()
            for key, several in keys.items()
        }

    def take(self, name: str, bottom: Lattice) -> dict[str, Lattice | None]:
        """Return key -> state of a variable, once; None where another type was stored."""
        found: dict[str, Lattice | None] = {}
        for key, parts in self._parts.pop(name, {}).items():
            found[key] = state = _joined(parts, bottom)
            if state is None:
                self._counts[name, key] = DELTAS_PER_STATE  # the next change stores it whole
        return found

    def put_delta(self, where: VariableId, state: Lattice, delta: Lattice) -> None:
        """Store what changed: `delta` was joined into `state`."""
        count = self._counts.get(where, 0) + 1
        if count > (DELTAS_PER_KEY if where[1] else DELTAS_PER_STATE):
            self.put_whole(where, state)
            return
        self._counts[where] = count
        self._changes.deltas.setdefault(where, []).append((count, encode(delta)))

    def put_whole(self, where: VariableId, state: Lattice) -> None:
        """Store a state whole, in place of all that was stored."""
        self._counts[where] = 0
        self._changes.deltas.pop(where, None)
        self._changes.states[where] = encode(state)

    def remove(self, where: VariableId) -> None:
        """Remove a key from the store."""
        self._counts.pop(where, None)
        self._changes.deltas.pop(where, None)
        self._changes.states[where] = None

    def take_changes(self) -> Changes | None:
        changes = self._changes
        if not (changes.deltas or changes.states):
            return None
        self._changes = Changes()
        return changes


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
