"""Variables that are one lattice state: handlers change them by deltas.

A state that is not shared is this device's alone. A shared one is joined over the fleet: each
device publishes what it contributed itself, over all its incarnations, and joins what the others
published.
"""

from collections.abc import Callable, Iterable

from crdts import Lattice, Version
from crdts.wire import encode
from device_agent.agent import Agent
from device_agent.parts import FrameRefusedError
from device_agent.state.stored import UNREADABLE, fitting
from device_agent.variables.replicated import Replicated
from lasp_edge.protocol.frames import BeatFrame, VariableFrame, VariableReport
from lasp_edge.protocol.inputs import text_hash, variable_digest
from lasp_edge.variables import Variable

NO_STREAM = 0
"""The stream of a shared state's frames: no fold made it."""


class OwnState:
    """The state of a variable to which this device contributes.

    Args:
        agent: what all parts share.
        variable: the variable.

    Attributes:
        own: what this device contributed, over all its incarnations.
    """

    def __init__(self, agent: Agent, variable: Variable) -> None:
        assert variable.bottom is not None
        self.own = variable.bottom.copy()
        self._agent = agent
        self._at = (variable.name, "")
        for state in agent.stored.take(variable.name, self.own).values():
            if state is None:
                agent.counters.note(UNREADABLE)
            else:
                self.own = state

    @property
    def whole(self) -> Lattice:
        """The state that handlers see and change."""
        return self.own

    def join(self, delta: Lattice) -> None:
        """Let handlers see a delta; `store` makes it part of this device's contribution."""
        self.own |= delta

    def store(self, delta: Lattice) -> None:
        """Store a delta of this device."""
        self.own |= delta
        self._agent.stored.put_delta(self._at, self.own, delta)


class SharedState(OwnState, Replicated):
    """The state of a shared variable.

    Args:
        agent: what all parts share.
        variable: the variable.
        follow: is given everything that is joined.

    Attributes:
        fleet: the join of what this device has heard of, its own contribution included.
    """

    def __init__(
        self, agent: Agent, variable: Variable, follow: Callable[[str, Lattice], None]
    ) -> None:
        OwnState.__init__(self, agent, variable)
        Replicated.__init__(self, variable.name)
        self.fleet = self.own.copy()
        self._follow = follow
        self._seq = 0
        self._digest: int | None = None
        follow(self.name, self.own)

    @property
    def whole(self) -> Lattice:
        # What others wrote counts, too: only what was observed can be removed.
        return self.fleet

    def join(self, delta: Lattice) -> None:
        self.fleet |= delta

    def store(self, delta: Lattice) -> None:
        super().store(delta)
        self._join_fleet(delta)
        self._seq += 1
        self.unsent.add(0)

    def _join_fleet(self, state: Lattice) -> None:
        self.fleet |= state
        self._follow(self.name, state)
        self._digest = None

    def succeed(self) -> None:
        self._seq = 1
        self.unsent = {0}

    def shards(self) -> Iterable[int]:
        return (0,)

    def version(self, shard: int) -> Version:  # noqa: ARG002 - there is one
        return Version.of(self._agent.replica, self._seq)

    def frame(self, shard: int) -> VariableFrame:
        number, columns = self._seq, ((encode(self.own),),)
        keys, seqs = ("",), (number,)
        return VariableFrame(
            self._agent.replica, number, self.name, NO_STREAM, shard, keys, seqs, columns
        )

    def receive(self, frame: VariableFrame, *, own: bool) -> None:
        state = _state_in(frame, self.fleet.bottom())
        if state is None:
            raise FrameRefusedError("variable: another definition")
        if own and not state <= self.own:  # the store was lost, the broker's copy was not
            self.store(state)
        elif not state <= self.fleet:
            self._join_fleet(state)

    def report(self) -> VariableReport:
        return VariableReport(self.name, self._seq, self._fleet_digest())

    def lacks(self, beat: BeatFrame, report: VariableReport) -> bool:  # noqa: ARG002 - any device's
        return report.digest != self._fleet_digest()

    def _fleet_digest(self) -> int:
        if self._digest is None:
            self._digest = variable_digest([text_hash(encode(self.fleet).hex())])
        return self._digest


def _state_in(frame: VariableFrame, bottom: Lattice) -> Lattice | None:
    """Return the shared state in a frame; None where it holds another type."""
    if frame.stream != NO_STREAM or (frame.shard, frame.keys, len(frame.columns)) != (0, ("",), 1):
        return None
    (encoded,) = frame.columns[0]
    state = fitting(encoded, bottom) if isinstance(encoded, bytes) else None
    return state if state is not None and state.bottom() == bottom else None
