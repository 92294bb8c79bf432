"""What must hold of events in order at a gateway: a run that starts now gathers the same.

- it has the same records, and the same events are open: so the same is final. What it begins with
  is not what its store has alone: where another program ran meanwhile, a start makes records of
  what that one took, and they are stored with the first turn
"""

from collections.abc import Iterator

from device_agent.gateway.kept import FleetKeeper
from device_agent.gateway.streams import FleetStreams
from lasp_edge.language.plan import Plan


def gathered_otherwise(
    plan: Plan, streams: FleetStreams, store: FleetKeeper, retain_us: int
) -> Iterator[str]:
    """Yield what a run on a store would gather otherwise than the one that has written it.

    Args:
        plan: the program of both.
        streams: of the run, between two turns.
        store: what it has written.
        retain_us: for how long late items are taken.
    """
    next_ones = FleetStreams(plan, store, retain_us).parted.gathered
    for name, now in streams.parted.gathered.items():
        then = next_ones[name]
        for place in sorted(now.records.keys() | then.records.keys()):
            known, kept = now.records.get(place), then.records.get(place)
            if known != kept:
                yield f"scan {name} has {known} at {place}, and its next run {kept}"
            if (place in now.open) != (place in then.open):
                yield f"scan {name} is open at {place} for one of two runs: {now.open.get(place)}"
