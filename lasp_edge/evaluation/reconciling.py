"""Events in order after a start: their records, and what the streams make of what is stored.

The two differ where what had been taken is not what the store has: of a device's entry a later one
counts, and a stranger may send one that lacks something; or where a program ran meanwhile in which
the scan had no local events, or none at all: it has taken events in order that have no records.
"""

from collections.abc import Mapping
from typing import Final

from lasp_edge.event import Event
from lasp_edge.ordered.deltas import Change, Delta
from lasp_edge.ordered.gathering import Gathering
from lasp_edge.ordered.parted import SHARE, changes_at
from lasp_edge.ordered.plain import same

_UNKNOWN: Final = (False, None)
"""No share is known at a place."""
_GONE: Final[Change] = (None, None)
_NO_SHARE: Final[Change] = (Event("", (SHARE, None), 0, "", {}), None)
"""How an event in order changes that is not there, and a share that is not known."""


def reconcile(gathered: Mapping[str, Gathering], begun: Mapping[str, Delta], since_us: int) -> None:
    """Let the records of events in order be what streams give at a start, where they differ.

    Args:
        gathered: the events in order of each scan.
        begun: what the streams give of all since the last cut.
        since_us: where that is.
    """
    for name, gathering in gathered.items():
        events, root = (begun.get(f"{name}: {part}", {}) for part in ("gathered", "root"))
        given = {place: each.share or _UNKNOWN for place, each in changes_at(root).items()}
        known = {at: each[1:3] for at, each in gathering.records.items() if at[0] >= since_us}
        changed = dict.fromkeys(known.keys() - events.keys(), _GONE)
        changed |= {
            place: change
            for place, change in events.items()
            if not same(known.get(place), given.get(place, _UNKNOWN))
        }
        shares: Delta = {(*place[:3], (*place[3], 0)): _NO_SHARE for place in changed}
        shares |= {at: each for at, each in root.items() if (*at[:3], at[3][:-1]) in changed}
        gathering.take(changed, shares)
