"""How variables are kept in the store: as deltas, and now and then whole.

What is stored of one key of one variable is a row of parts; their join is the state. A change adds
its delta, so flash is written for what changed; after some deltas the whole state replaces them, so
that a start has little to join.
"""

from collections.abc import Mapping, Sequence

from crdts import BoundedLWWSet, Lattice
from crdts.wire import decode, encode
from device_agent.state.changes import Changes, VariableId

DELTAS_PER_STATE = 64
"""After so many stored deltas a variable is stored whole."""
DELTAS_PER_KEY = 8
"""As many for one of the many keys of a variable, so that a start stays quick."""
STORED_BYTES = 1 << 30
"""An own stored state is decoded whatever its size; a peer's is bounded by its frame."""


class Stored:
    """What the store holds of variables, and what is to be changed there.

    Args:
        parts: variable -> key -> encoded parts, in the order in which they were stored.
    """

    __slots__ = ("_counts", "_parts")

    def __init__(self, parts: Mapping[str, Mapping[str, Sequence[bytes]]]) -> None:
        self._parts = dict(parts)
        self._counts = {
            (name, key): len(several)
            for name, keys in parts.items()
            for key, several in keys.items()
        }

    def take(self, name: str, bottom: Lattice) -> dict[str, Lattice | None]:
        """Return key -> state of a variable, once; None where something else was stored."""
        found: dict[str, Lattice | None] = {}
        for key, parts in self._parts.pop(name, {}).items():
            found[key] = state = _joined(parts, bottom)
            if state is None:
                self._counts[name, key] = DELTAS_PER_STATE  # the next change stores it whole
        return found

    def note(self, where: VariableId, state: Lattice, delta: Lattice, changes: Changes) -> None:
        """Note that `delta` was joined into `state`."""
        count = self._counts.get(where, 0) + 1
        if count > (DELTAS_PER_KEY if where[1] else DELTAS_PER_STATE):
            self.whole(where, state, changes)
            return
        self._counts[where] = count
        changes.deltas.setdefault(where, []).append((count, encode(delta)))

    def whole(self, where: VariableId, state: Lattice, changes: Changes) -> None:
        """Note that a state is to be stored whole, in place of all that was stored."""
        self._counts[where] = 0
        changes.deltas.pop(where, None)
        changes.states[where] = encode(state)

    def gone(self, where: VariableId, changes: Changes) -> None:
        """Note that a key is no more."""
        self._counts.pop(where, None)
        changes.deltas.pop(where, None)
        changes.states[where] = None


def fitting(encoded: bytes, bottom: Lattice) -> Lattice | None:
    """Return the state if it is one of this kind, None else. A set may have other limits."""
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
