"""What a device leaves at the broker of a shared variable, so that devices that never meet agree.

The trace of a device is a part of the fleet's state: what only its own writes brought in, and what
it changed of others' that they have not confirmed. All traces join to the fleet's state. A trace
lies in **slots**, each a retained frame of bounded size. What changes is joined into slot 0, the
tail, so a change costs a small frame, however large the state is. A full tail becomes a slot of its
own and is joined with those that are not much larger, so there are few; what is out of date in old
slots is harmless, for states only grow, and all slots are made again where half of them is.

Source: Jon Bentley, James Saxe, "Decomposable searching problems I", Journal of Algorithms 1, 1980
(the logarithmic method).
"""

from collections.abc import Callable, Iterator

from crdts import Lattice
from crdts.wire import encode

TAIL = 0
"""The slot that takes what changed last."""
TAIL_BYTES = 1_024
"""Bytes of the tail at which it becomes a slot of its own: what a change costs, at most, but for
one in some tens."""
PIECE_BYTES = 16_384
"""Bytes of a slot and of a repair frame, at most, beside one irreducible that is larger: few enough
that a lost one costs little, far below the greatest frame."""
SLACK_BYTES = 4_096
"""Bytes that all slots may have beyond twice those of the trace before they are made again."""


class Trace:
    """The slots of one device and shared variable.

    Args:
        whole: returns what the slots must join to, at least.

    Attributes:
        unsent: slots to be published.
        unused: slots to be removed from the broker.
    """

    def __init__(self, whole: Callable[[], Lattice]) -> None:
        self._whole = whole
        self._slots: dict[int, Lattice] = {}
        self._bytes: dict[int, int] = {}
        self._order: list[int] = []  # of all but the tail, the newest last
        self._changed = False
        self._needed = 0  # bytes that the slots must hold, when they were counted last
        self.unsent: set[int] = set()
        self.unused: set[int] = set()

    def encoded(self, slot: int) -> bytes:
        """Return the encoded state of a slot."""
        return encode(self._slots[slot])

    def add(self, part: Lattice) -> None:
        """Join what changed into the tail."""
        self._changed = True
        tail = self._slots.get(TAIL)
        if tail is None:
            tail = part.copy()
        else:
            tail |= part
        self._put(TAIL, tail)
        if self._bytes[TAIL] > TAIL_BYTES:
            self._close_tail()

    def _put(self, slot: int, state: Lattice) -> None:
        self._slots[slot] = state
        self._bytes[slot] = len(encode(state))
        self.unsent.add(slot)
        self.unused.discard(slot)

    def _drop(self, slot: int) -> Lattice:
        self.unsent.discard(slot)
        self.unused.add(slot)
        del self._bytes[slot]
        return self._slots.pop(slot)

    def _close_tail(self) -> None:
        """Make a slot of the tail, joined with the newest slots that are not much larger."""
        size = self._bytes[TAIL]
        state = self._drop(TAIL)
        while self._order:
            newest = self._bytes[self._order[-1]]
            if newest > 2 * size or newest + size > PIECE_BYTES:
                break
            state |= self._drop(self._order.pop())
            size = len(encode(state))
        self._append(state)
        if self._is_loose() and self._is_loose(self._whole()):
            self.renew()

    def _is_loose(self, whole: Lattice | None = None) -> bool:
        """Return whether half of all slots is out of date; `whole`: counted again.

        What must be held is counted only where the slots have outgrown the last count: each count
        costs what the whole costs, and comes after as many bytes of changes.
        """
        if whole is not None:
            self._needed = len(encode(whole))
        return sum(self._bytes.values()) > SLACK_BYTES + 2 * self._needed

    def _append(self, state: Lattice) -> None:
        """Put a state into new slots."""
        for piece in pieces(state):
            slot = TAIL + 1
            while slot in self._slots:
                slot += 1
            self._put(slot, piece)
            self._order.append(slot)

    def renew(self) -> None:
        """Make all slots again from what they must join to; all are to be published."""
        for slot in list(self._slots):
            self._drop(slot)
        self._order.clear()
        whole = self._whole()
        self._needed = len(encode(whole))
        if self._needed > TAIL_BYTES:
            self._append(whole)
        elif whole != whole.bottom():
            self._put(TAIL, whole)
        self._changed = False

    def tidy(self) -> None:
        """Make the slots again if something changed and a quarter of them is out of date."""
        if not self._changed:
            return
        self._changed = False
        needed = self._needed = len(encode(self._whole()))
        if (
            4 * sum(self._bytes.values()) > 5 * needed
            or len(self._slots) > 1 + needed // TAIL_BYTES
        ):
            self.renew()

    def shrank(self) -> None:
        """Note that the slots need to hold less than before."""
        self._changed = True

    def hear(self, slot: int, state: bytes) -> None:
        """Compare a slot that an earlier life of this device left at the broker."""
        if slot not in self._slots:
            self.unused.add(slot)
        elif self.encoded(slot) == state:
            self.unsent.discard(slot)
        else:
            self.unsent.add(slot)


def pieces(state: Lattice) -> Iterator[Lattice]:
    """Yield states that fit into frames and join to `state`; bottom has none."""
    if state == state.bottom():
        return
    if len(encode(state)) <= PIECE_BYTES:
        yield state
    else:
        yield from state.pieces(PIECE_BYTES)
