"""Bugs of a fleet's windows: when they are final, and what revises them."""

from collections.abc import Iterable, Iterator
from typing import Any

from crdts.frontier import Promise
from device_agent.gateway import core as gateway_core
from device_agent.gateway.core import GatewayCore
from device_agent.gateway.kept import FleetRow, KeptEntry, WindowStart
from device_agent.gateway.windows import FleetWindows, Touched
from lasp_edge.protocol.frontier import Coverage, Listening, Liveness, advance
from lasp_edge.protocol.status import FINAL
from simulations.planted.bug import planted, replaced
from simulations.world.keeper import SimulatedKeeper


@planted
def the_frontier_is_the_greatest_promise() -> Iterator[None]:
    """A device lags behind: its windows are final before it has sent what belongs to them."""

    def furthest(
        before: int | None, liveness: Liveness, roster: Any, *patience_us: int
    ) -> Coverage:
        right = advance(before, liveness, roster, *patience_us)
        lows = [each.low_us for each in liveness.promises.entries.values() if each.low_us]
        return right._replace(frontier=max([right.frontier or 0, *lows]) or None)

    with replaced(gateway_core, "advance", furthest):
        yield


@planted
def a_late_pane_revises_nothing() -> Iterator[None]:
    """A device was cut off while its windows became final: what it sends then is in no row."""
    right = FleetWindows.touched

    def touched(self: FleetWindows, entries: Iterable[KeptEntry], before_us: int | None) -> Touched:
        found = right(self, entries, before_us)
        return {
            at: {start for start in starts if before_us is None or start >= before_us}
            for at, starts in found.items()
        }

    with replaced(FleetWindows, "touched", touched):
        yield


@planted
def a_window_that_is_final_is_not_looked_up() -> Iterator[None]:
    """A late pane comes: the window's revisions begin anew, and it is final once more."""

    def row(_self: SimulatedKeeper, _at: WindowStart) -> FleetRow | None:
        return None

    with replaced(SimulatedKeeper, "row", row):
        yield


@planted
def a_restarted_gateway_forgets_which_windows_are_open() -> Iterator[None]:
    """A gateway is killed: what was tentative then never becomes final."""
    right = SimulatedKeeper.current

    def current(self: SimulatedKeeper, *arguments: Any) -> Iterator[FleetRow]:
        return (row._replace(status=FINAL) for row in right(self, *arguments))

    with replaced(SimulatedKeeper, "current", current):
        yield


@planted
def the_frontier_is_not_kept() -> Iterator[None]:
    """A gateway is killed: it begins from nothing, and what was final is tentative again."""
    right = GatewayCore.join

    def join(self: GatewayCore, *arguments: Any) -> Any:
        turn = right(self, *arguments)
        turn.changes.frontier_us = None
        return turn

    with replaced(GatewayCore, "join", join):
        yield


@planted
def who_is_silent_holds_the_frontier() -> Iterator[None]:
    """A device is gone for good: no window of the fleet ever becomes final again."""

    def silence_us(_self: Listening, _promise: Promise | None) -> int:
        return 0

    with replaced(Listening, "silence_us", silence_us):
        yield
