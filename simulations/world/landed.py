"""What a sink holds, as everybody looks at it: panes, windows, promises and commands.

What is asked here is what is durable; whoever makes it so is a lander (`lander`) or a gateway
(`gateway`).
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from crdts import Frontier, Lattice, Membership
from crdts.frontier import BOTTOM_US
from device_agent.agent.state.counters import FAILED
from device_agent.gateway.alerts import FleetAlerts
from device_agent.gateway.core import GatewayCore
from device_agent.gateway.kept import FleetState
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.sent_rows import Landed, SentRow, newest_rows
from lasp_edge.protocol.acceptance import Acceptance, Begun
from lasp_edge.protocol.commands import CommandLog
from lasp_edge.protocol.frontier import Coverage, Listening
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from lasp_edge.protocol.witness import Witness
from simulations.world.keeper import PaneKey, SimulatedKeeper


class WindowEntry(NamedTuple):
    """A pane entry that counts in a window.

    Attributes:
        fold: of the pane.
        came_us: how far the frontier was before the entry came.
    """

    device: str
    fold: Fold
    partial: Partial
    came_us: int


class LandedState:
    """The content of one sink's store.

    Attributes:
        plan: of the program whose windows it keeps; another one after a restart.
        core: keeps windows and streams.
        file: what tells its store from others; the same after a restart.
        shared: the join of what has landed of each shared variable.
        alerts: those on windows, and on results over the fleet.
        keeps_all: shared variables and rows of results land there, too.
        listening: its clock at its last commit, and since when it listened by then.
        commits_before: how many there were when its program began to run.
    """

    plan: Plan
    file: str
    shared: dict[str, Lattice]
    keeps_all = True
    listening: Listening | None = None
    commits_before = 0
    alerts: FleetAlerts
    _keeper: SimulatedKeeper
    _acceptance: Acceptance
    core: GatewayCore

    def commit(self, now_us: int | None) -> None:
        """Join what was accepted, and keep what comes of it.

        Args:
            now_us: the sink's clock; None: no time has passed.
        """

    @property
    def is_of_plan(self) -> bool:
        """Whether its program has committed anything: the rows before are of another one."""
        return self._keeper.commits > self.commits_before

    @property
    def lake(self) -> str:
        """The id of its store."""
        return self._acceptance.sink[1]

    @property
    def membership(self) -> Membership:
        """All member commands that were taken."""
        return self._acceptance.membership

    @property
    def witness(self) -> Witness:
        """What its process has heard of devices."""
        return self._acceptance.witness

    @property
    def commands(self) -> CommandLog:
        """All commands of operators that were taken."""
        return self._acceptance.commands

    @property
    def panes(self) -> dict[PaneKey, tuple[int, Partial]]:
        """Pane -> its greatest seq, and the partial at that."""
        self.commit(None)
        return self._keeper.panes

    @property
    def taken(self) -> int:
        """How many pane entries were ever committed, however often each of them."""
        return self._keeper.taken

    @property
    def revisions(self) -> dict[WindowStart, list[FleetRow]]:
        """Window -> all its rows."""
        self.commit(None)
        return self._keeper.revisions

    @property
    def dropped(self) -> Mapping[tuple[WindowStart, int], Mapping[str, int]]:
        """See `SimulatedKeeper.dropped`."""
        return self._keeper.dropped

    @property
    def promises(self) -> Frontier:
        """The newest low watermark of each device."""
        self.commit(None)
        return self._keeper.state.promises

    @property
    def begun(self) -> Mapping[str, Begun]:
        """Device -> the windows that lack readings of it, and from when on all are there."""
        return self._keeper.state.begun

    @property
    def lost(self) -> Mapping[str, tuple[int, int]]:
        """Device -> the stretch of which it may lack what another store of its accepted."""
        return self._keeper.state.lost

    @property
    def kept(self) -> SimulatedKeeper:
        """All that was ever made durable."""
        return self._keeper

    @property
    def coverage(self) -> Coverage:
        """How far results are final, and over whom."""
        return self.core.coverage

    def not_kept(self, state: FleetState | None = None) -> Iterator[str]:
        """Yield what its process goes by, and the next one would not.

        Args:
            state: what that would go by; None: what was ever kept.
        """
        state, core, witness = state or self._keeper.state, self.core, self._acceptance.witness
        devices = {*state.witnessed, *witness.heard_since(0)}
        goes_by = {
            "membership": self.membership,
            "control": self.commands.control,
            "frontier_us": core.coverage.frontier,
            "steps": core.waiting.steps,
            "held": core.windows.held.spans,
            "witnessed": {device: witness.line(device) for device in devices},
        }
        for name, known in goes_by.items():
            kept = getattr(state, name)
            if kept != known:
                yield f"{self.file} goes by {name} {known}, and its store has {kept}"
        if dict(state.promises.entries) != core.promises:
            yield f"{self.file} goes by promises that its store does not have"

    @property
    def failures(self) -> list[str]:
        """What functions of the program raised here, as devices name it."""
        return [f"{FAILED}{reason}" for reason in self.core.failed + self.alerts.failed]

    def rows(self, plan: Plan, name: str) -> dict[tuple[str, Place], SentRow]:
        """Return (device, place) -> the row of a result that is there; `FLEET` for a device."""
        if plan.streams[name].fleet:
            self.commit(None)
            streams = self.core.streams
            return (
                {} if streams is None else {(FLEET, row.place): row for row in streams.rows(name)}
            )
        stream = plan.stream_results[name].stream
        landed = [
            Landed(device, time_us, key, (incarnation, nonce, seq), partial[0])
            for (of, key, time_us, device, incarnation, nonce), (seq, partial) in self.panes.items()
            if of == stream
        ]
        return {at: row for at, row in newest_rows(landed).items() if row.parts is not None}

    def windows(
        self, plan: Plan, name: str, without: Collection[str] = ()
    ) -> dict[tuple[str, int], Partial]:
        """Return (key, start_us) -> partial of every window, combined from the panes.

        The panes of the devices `without` are left out.
        """
        found: dict[tuple[str, int], Partial] = {}
        for at, entry in self.window_entries(plan):
            if at.window == name and entry.device not in without:
                before = found.get(at[1:], entry.fold.zero)
                found[at[1:]] = entry.fold.combine(before, entry.partial)
        return found

    def window_entries(self, plan: Plan) -> Iterator[tuple[WindowStart, WindowEntry]]:
        """Yield each window, once with each landed pane entry that is part of it.

        An entry counts under the parameters that the sink knows, as its device has them.
        """
        regimes = FleetRegimes(plan, self.commands.control)
        for pane, (_, partial) in self.panes.items():
            stream, key, pane_us, device, *_ = pane
            came_us = self._keeper.came_us.get(pane, BOTTOM_US)
            window, piece = regimes.window_of(stream), regimes.piece_of(device, stream, pane_us)
            if window is not None and piece is not None:
                for start_us, _ in regimes.of(window.name, device).starts_over(piece, pane_us):
                    at = WindowStart(window.name, key, start_us)
                    yield at, WindowEntry(device, piece.fold, partial, came_us)
