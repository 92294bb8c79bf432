"""What must hold of events in order at a gateway: a run that starts now gathers the same.

- it has the same records, and the same events are open: so the same is final
"""

from collections.abc import Iterator

from device_agent.gateway.fleet_history import GatewayHistory
from device_agent.gateway.kept import FleetKeeper
from device_agent.gateway.streams import FleetStreams
from lasp_edge.language.plan import Plan
from lasp_edge.ordered.log import BEFORE_ALL_US


def gathered_otherwise(plan: Plan, streams: FleetStreams, store: FleetKeeper) -> Iterator[str]:
    """Yield what a run on a store would gather otherwise than the one that has written it.

    Args:
        plan: the program of both.
        streams: of the run, between two turns.
        store: what it has written.
    """
    frontier_us = streams.frontier_us
    floor_us = BEFORE_ALL_US if frontier_us is None else streams.floor_us(frontier_us)
    after = GatewayHistory(plan, store).parted
    after.begin(floor_us)
    for name, now in streams.parted.gathered.items():
        then = after.gathered[name]
        for place in sorted(now.records.keys() | then.records.keys()):
            known, kept = now.records.get(place), then.records.get(place)
            if known != kept:
                yield f"scan {name} has {known} at {place}, and its store {kept}"
            if (place in now.open) != (place in then.open):
                yield f"scan {name} is open at {place} for one of two runs: {now.open.get(place)}"
