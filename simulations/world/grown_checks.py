"""What must hold of a sink from commit to commit.

- the stretch of which it may lack readings of a device, as a store of it was lost, only grows: what
  a later life states takes nothing back of what was lost with an earlier one
- a segment of a lander ends with the clock by which its messages came, also where it was stepped
"""

from collections.abc import Iterable, Iterator

from device_agent.gateway.kept import FleetState
from lasp_edge.protocol.acceptance import Record
from lasp_edge.protocol.frontier import Listening
from lasp_edge.protocol.listening import STEP_US
from lasp_edge.units import SECOND_US

OPEN_US = 30 * SECOND_US
"""For how long a segment is open, at most; a clock that is stepped goes further."""


def shrunk(before: FleetState, after: FleetState) -> Iterator[str]:
    """Yield the devices of which a sink takes back that it may lack readings."""
    if after.lost is before.lost:
        return
    for device, (since_us, until_us) in before.lost.items():
        found = after.lost.get(device)
        if found is None or found[0] > since_us or found[1] < until_us:
            yield f"what is lost of {device} was {since_us} to {until_us}, and now it is {found}"


def ended_otherwise(clock: Listening, records: Iterable[Record]) -> Iterator[str]:
    """Yield the messages of a segment that did not come by the clock with which it ends.

    A world's lander hears some messages without a connection, and ends their segment later.
    """
    near_us = STEP_US if clock.lasted_us else OPEN_US
    for record in records:
        if not -near_us < record.received_us - clock.since_us < clock.lasted_us + near_us:
            yield f"a segment ends with {clock}, and has a message of {record.received_us}"
