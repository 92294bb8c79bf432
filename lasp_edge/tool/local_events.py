"""Messages of a gateway and a job on scans with local events that devices hold up.

>>> found = refused_part("load", RefusedPart(1_700_000_000_000_000, "attic", "TypeError"))
>>> found.partition(". ")[0]
'load: the part of attic is refused since 2023-11-14 22:13:20 UTC (TypeError), and rows lack it'
"""

from collections.abc import Sequence
from typing import Final

from lasp_edge.ordered.stalls import RefusedPart
from lasp_edge.protocol.waiting import DEAD_AFTER_US
from lasp_edge.tool.times import shown_time

MINUTE_US: Final = 60_000_000
MOST_NAMED: Final = 3
"""Devices that are named, at most."""


def refused_part(scan: str, part: RefusedPart) -> str:
    """Return that a part is refused, whose it is, and what to do."""
    return (
        f"{scan}: the part of {part.device} is refused since {_moment(part.since_us)} "
        f"({part.why}), and rows lack it. Does {part.device} run another file of the program? "
        f"Install the same one there, or type: lasp-edge retire {part.device}"
    )


def stands(scan: str, time_us: int, devices: Sequence[str]) -> str:
    """Return that a scan goes no further, whose answers it waits for, and what to do."""
    more = f" and {len(devices) - MOST_NAMED} more" if len(devices) > MOST_NAMED else ""
    return (
        f"{scan} stands at {_moment(time_us)}: {', '.join(devices[:MOST_NAMED])}{more} did not "
        f"answer the event in order there. Where another gateway has ended, devices follow it for "
        f"{DEAD_AFTER_US // MINUTE_US} minutes: then wait. Else see lasp-edge status on them; to "
        f"go on without one, type: lasp-edge retire {devices[0]}"
    )


def _moment(time_us: int) -> str:
    return f"{shown_time(time_us).partition('.')[0]} UTC"
