"""Bugs of a fleet's windows: when they are final, and what revises them."""

from collections.abc import Iterable, Iterator
from typing import Any

from crdts.frontier import Promise
from device_agent.gateway import core as gateway_core
from device_agent.gateway.kept import KeptEntry
from device_agent.gateway.windows import FleetWindows, Touched
from lasp_edge.protocol.frontier import Coverage, Listening, Liveness, advance
from simulations.planted.bug import planted, replaced


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
def who_is_silent_holds_the_frontier() -> Iterator[None]:
    """A device is gone for good: no window of the fleet ever becomes final again."""

    def silence_us(_self: Listening, _promise: Promise | None) -> int:
        return 0

    with replaced(Listening, "silence_us", silence_us):
        yield
