"""Variables that are one lattice state: handlers change them by deltas.

A state that is not shared is this device's alone. A shared one is joined over the fleet: a device
holds and stores the join of all that it heard, and leaves its own part at the broker (`trace`).
What travels, and when, is in `device_agent.agent.variables.sharing`.
"""

from collections.abc import Callable

from crdts import Lattice
from crdts.tally import Tally
from device_agent.agent.agent import Agent
from device_agent.agent.state.stored import UNREADABLE, fitting
from device_agent.agent.variables.trace import Trace
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
        """Note what a delta of this device says beyond its own writes, until it is confirmed."""
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
        """Join a part that a peer holds; it is stored with the next notes."""
        news = state - self.whole
        if news == self._bottom:
            return
        self._grow(news)
        self._heard |= news
        mine = news.restricted(self._agent.replica.device)
        if mine != self._bottom:  # peers must see in the trace that this device knows it, too
            self.trace.add(mine)
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
            self.trace.add(news)
            self._joined(news)
        if lost != self._bottom:
            self._contribute(lost)

    def take_notes(self) -> None:
        """Store what was heard, and what was confirmed."""
        if self._heard != self._bottom:
            heard, self._heard = self._heard, self._bottom.copy()
            self._agent.stored.put_delta((self.name, ""), self.whole, heard)
        if self._pending_shrank:
            self._pending_shrank = False
            self._agent.stored.put_whole((self.name, PENDING), self._pending)

    def report(self) -> VariableReport:
        """Return what this device holds, for its beat."""
        return VariableReport(self.name, self._seq, self.digest)

    @property
    def digest(self) -> int:
        """What tells the state from others."""
        return self._tally.total
