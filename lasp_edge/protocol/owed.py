"""What retired devices still owe: readings of windows that do not wait for them any more.

A retired device holds nothing up, and what it wrote up to its version counts, also late. So windows
that were open when it was retired may lack readings of it, and name it until it has sent them. It
owes what it had promised to another sink by then, and what windows had passed without it:

    it had promised 60 to this sink and 180 to another, and is retired    it owes [60, 180)
    it then sends all, and promises 180                                   it owes nothing

    >>> from crdts import Version
    >>> retired = Membership().retire("attic", Version(1, 7, 40))
    >>> until_us = owed_until(retired, heard_us=190_000_000, reached_us={"attic": 180_000_000})
    >>> owed_after({}, retired, until_us, frontier_us=60_000_000)
    {'attic': 180000000}
"""

from collections.abc import Iterator, Mapping

from crdts import Membership
from crdts.frontier import BOTTOM_US
from crdts.membership import NEVER
from lasp_edge.protocol.frontier import Liveness, reach_us
from lasp_edge.protocol.lost_stores import LostStretch
from lasp_edge.units import SECOND_US


def owed_until(decided: Membership, heard_us: int, reached_us: Mapping[str, int]) -> dict[str, int]:
    """Return up to which time retired devices may have sent to others what a sink does not have.

    That is all up to the decision, where no beat gives less. A device of which nothing counts owes
    nothing.

    Args:
        decided: the decisions on devices.
        heard_us: when the sink heard of them, by its own clock.
        reached_us: how far devices had promised then, to whichever sink, as far as is known.
    """
    found = {}
    for device, version in decided.retired.items():
        if version > NEVER:
            decided_us = (decided.entries[device].control + 1) * SECOND_US  # by its clock, at most
            found[device] = reached_us.get(device, min(decided_us, heard_us))
    return found


def owed_after(
    known: Mapping[str, int],
    members: Membership,
    came: Mapping[str, int],
    frontier_us: int | None,
) -> Mapping[str, int]:
    """Return up to which time retired devices owe readings of windows that do not wait for them.

    Args:
        known: the same before.
        members: which devices are retired now.
        came: those of which new decisions came, with `owed_until`.
        frontier_us: how far results were final before.
    """
    passed_us = BOTTOM_US if frontier_us is None else frontier_us
    retired = members.retired
    found = {device: us for device, us in known.items() if device in retired}
    for device, until_us in came.items():
        if device in retired:
            found[device] = max(until_us, passed_us, found.get(device, BOTTOM_US))
    return known if found == known else found


def owing(owed: Mapping[str, int], known: Liveness) -> Iterator[tuple[str, LostStretch]]:
    """Yield the devices that owe readings, and of which stretch of time.

    Args:
        owed: see `owed_after`.
        known: what is known of devices.
    """
    promises, former_us = known.promises.entries, known.former_us
    for device, until_us in owed.items():
        since_us = max(reach_us(promises.get(device)), former_us.get(device, BOTTOM_US))
        if since_us < until_us:
            yield device, (since_us, until_us)
