"""What must hold of each row of a window at the moment at which a sink makes it durable.

- it states how far results are final, and how many devices count, as they are durable with it
- a tentative one waits for nobody who has promised past its end or has ended, and for nobody at all
  before somebody has promised so far; else for each device that was heard lately and has not, if
  one was heard just now, and not by a clock that was ahead
"""

from collections.abc import Collection, Iterator, Sequence

from crdts.frontier import BOTTOM_US, Promise
from device_agent.gateway.kept import FleetState
from lasp_edge.protocol.frontier import CLOCKS_DIFFER_US, reach_us
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import FleetRow
from lasp_edge.units import SECOND_US

_LATELY_US = 3 * SECOND_US
"""Microseconds before a promise that has just come: with those until it is committed they are fewer
than those for which a sink waits for a device that is silent."""


def lead_us(promises: Collection[Promise]) -> int:
    """Return how far anybody has promised, for no more than the time at which that came."""
    leads_us = [min(each.low_us, each.heard_us) for each in promises if each.low_us is not None]
    return max(leads_us, default=BOTTOM_US)


def wrong_rows(
    rows: Sequence[FleetRow],
    before: FleetState,
    state: FleetState,
    roster: Collection[str] | None,
    furthest_us: int,
) -> Iterator[str]:
    """Yield what is wrong in rows that were committed together.

    Args:
        rows: the rows.
        before: the state before.
        state: that was committed with them.
        roster: the devices that are expected; None for whichever were heard.
        furthest_us: how far anybody has ever promised, by `lead_us`.
    """
    promises = state.promises.entries
    expected = {*(promises if roster is None else roster)} - state.membership.retired.keys()
    now_us = lead_us(promises.values())
    newest_us = _newest_us(state)
    for row in rows:
        if (row.frontier_us, row.devices_expected) != (state.frontier_us, len(expected)):
            yield f"{row} was made at {state.frontier_us}, where {sorted(expected)} counted"
        if row.status != TENTATIVE:
            continue
        ready = {each for each in row.excluded if row.end_us <= reach_us(promises.get(each))}
        if ready or (row.excluded and furthest_us < row.end_us):
            yield f"{row} waits for {row.excluded}, with {sorted(ready)} past its end"
        if state.control.entries:
            continue  # an entry makes promises void
        lacking = {
            device
            for device in expected & promises.keys()
            if reach_us(promises[device]) < row.end_us
            and promises[device].low_us is not None
            and promises[device].heard_us > newest_us - _LATELY_US
        }
        is_known = _newest_us(before) < newest_us <= now_us + CLOCKS_DIFFER_US
        is_known = is_known and row.end_us <= now_us
        if is_known and not lacking <= {*row.excluded}:
            yield f"{row} does not wait for {sorted(lacking)}"


def _newest_us(state: FleetState) -> int:
    return max((each.heard_us for each in state.promises.entries.values()), default=0)
