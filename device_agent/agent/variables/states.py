"""Variables that are one lattice state: handlers change them by deltas.

A state that is not shared is this device's alone. A shared one is joined over the fleet: a device
holds and stores the join of all that it heard, and leaves its own part at the broker, its
trace. What travels, and when, is in `device_agent.agent.variables.sharing`.
"""

from collections.abc import Callable, Iterator

from crdts import Lattice
from crdts.tally import Tally
from crdts.wire import encode
from device_agent.agent.agent import Agent
from device_agent.agent.state.stored import UNREADABLE, fitting
from lasp_edge.protocol.frames import VariableReport
from lasp_edge.variables import Variable

PENDING = "pending"
"""The key under which the store has what this device changed of others' until they confirm it."""


class OwnState:
    """The state of a variable that is this device's alone.

    Args:
        agent: what all parts share.
        variable: the variable.

    Attributes:
        whole: the state that handlers see and change.
    """

    def __init__(self, agent: Agent, variable: Variable) -> None:
        assert variable.bottom is not None
        self.name = variable.name
        self._agent = agent
        self._taken = agent.stored.take(variable.name, variable.bottom)
        self.whole = self._restored("", variable.bottom)

    def _restored(self, key: str, bottom: Lattice) -> Lattice:
        """Return what the store has under a key; a copy of bottom where it has nothing."""
        state = self._taken.get(key, bottom)
        if state is None:
            self._agent.counters.note(UNREADABLE)
        return bottom.copy() if state is None or state is bottom else state

    def join(self, delta: Lattice) -> None:
        """Let handlers see a delta; `store` makes it this device's contribution."""
        self._grow(delta)

    def _grow(self, part: Lattice) -> None:
        """Join a part into the state."""
        self.whole |= part

    def store(self, delta: Lattice) -> None:
        """Store a delta of this device."""
        self._grow(delta)
        self._agent.stored.put_delta((self.name, ""), self.whole, delta)


class SharedState(OwnState):
    """The state of a shared variable: `whole` is the join of all that this device heard.

    Args:
        agent: what all parts share.
        variable: the variable.
        follow: is given everything that is joined; None: nothing follows from it.

    Attributes:
        stream: the id under which parts of it travel.
        trace: what this device leaves at the broker.
    """

    def __init__(
        self, agent: Agent, variable: Variable, follow: Callable[[str, Lattice], None] | None
    ) -> None:
        super().__init__(agent, variable)
        self._bottom = self.whole.bottom()
        self._pending = self._restored(PENDING, self._bottom)
        self._pending_shrank = False
        self._heard = self._bottom.copy()  # joined, and not stored yet
        self._life = agent.replica.incarnation
        self._follow = follow
        self._seq = 0
        self._tally = Tally(self.whole)
        self.stream = agent.plan.shared_streams[variable.name]
        self.trace = Trace(self._own_part)
        if follow is not None:
            follow(self.name, self.whole)

    def _own_part(self) -> Lattice:
        """Return what must outlive this device at the broker; the rest others leave there."""
        return self.whole.restricted(self._agent.replica.device) | self._pending

    def _grow(self, part: Lattice) -> None:
        self._tally.join(part)

    def store(self, delta: Lattice) -> None:
        super().store(delta)
        self._contribute(delta)
        self.trace.add(delta)
        self._joined(delta)

    def _contribute(self, delta: Lattice) -> None:
        """Note the parts of a delta of this device that are not its own writes, until confirmed."""
        beyond = delta - delta.restricted(self._agent.replica.device)
        if beyond != self._bottom:
            self._pending |= beyond
            self._agent.stored.put_delta((self.name, PENDING), self._pending, beyond)

    def _joined(self, news: Lattice) -> None:
        if self._follow is not None:
            self._follow(self.name, news)
        self._seq += 1

    def state_in(self, encoded: bytes) -> Lattice | None:
        """Return the part of such a state that a frame holds; None if it holds something else."""
        state = fitting(encoded, self._bottom)
        return state if state is not None and state.bottom() == self._bottom else None

    def hear(self, state: Lattice) -> None:
        """Join a part that a peer holds; it is stored with the next notes.

        What the trace will say of it is stored before: peers trust the trace, and drop it from
        theirs.
        """
        news = state - self.whole
        if news == self._bottom:
            return
        self._grow(news)
        self._heard |= news
        mine = news.restricted(self._agent.replica.device)
        if mine != self._bottom:  # peers must see in the trace that this device knows it, too
            self.trace.add(mine)
            self._store_heard()
        self._joined(news)

    def confirm(self, device: str, state: Lattice) -> None:
        """Take a device's own writes from its trace: no other device has to send them."""
        if self._pending == self._bottom:
            return
        rest = self._pending - state.restricted(device)
        if rest != self._pending:
            self._pending, self._pending_shrank = rest, True
            self.trace.shrank()

    def recover(self, state: Lattice, incarnation: int) -> None:
        """Take back a part of this device's trace that the broker kept of an earlier life."""
        news = state - self.whole
        lost = state if incarnation >= self._life else news
        if news != self._bottom:
            super().store(news)
            self._joined(news)
        if lost != self._bottom:
            self._contribute(lost)
            self.trace.add(lost)

    def _store_heard(self) -> None:
        heard, self._heard = self._heard, self._bottom.copy()
        self._agent.stored.put_delta((self.name, ""), self.whole, heard)

    def take_notes(self) -> None:
        """Store received deltas, and confirmed ones."""
        if self._heard != self._bottom:
            self._store_heard()
        if self._pending_shrank:
            self._pending_shrank = False
            self._agent.stored.put_whole((self.name, PENDING), self._pending)

    def report(self) -> VariableReport:
        """Return what this device holds, for its beat."""
        return VariableReport(self.name, self._seq, self.digest)

    @property
    def digest(self) -> int:
        """The digest of the state."""
        return self._tally.total


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
    """What a device leaves at the broker of a shared variable, for devices that it never meets.

    The trace of a device is a part of the fleet's state: what only its own writes brought in, and
    what it changed of others' that they have not confirmed. All traces join to the fleet's state. A
    trace lies in **slots**, each a retained frame of bounded size. What changes is joined into slot
    0, the tail, so a change costs a small frame, however large the state is. A full tail becomes a
    slot of its own and is joined with those that are not much larger, so there are few; what is out
    of date in old slots is harmless, for states only grow, and all slots are made again where half
    of them is.

    Source: Jon Bentley, James Saxe, "Decomposable searching problems I", Journal of Algorithms 1,
    1980 (the logarithmic method).

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
        self._written: set[int] = set()  # by this life
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

    def written(self, slot: int) -> None:
        """Note that a slot left, or its removal did."""
        self.unsent.discard(slot)
        self.unused.discard(slot)
        self._written.add(slot)

    def hear(self, slot: int, state: bytes) -> None:
        """Compare a slot that an earlier life of this device left at the broker.

        Where this life has written the slot since, what comes late is there no more.
        """
        if slot not in self._slots:
            self.unused.add(slot)
        elif self.encoded(slot) == state and slot not in self._written:
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
