"""What somebody should look at on a device, in one line each.

Counted outcomes go on over restarts, so only what was counted since the start is an alarm.

    >>> alarms({"clone_alarms": 3, "accepted": 9, "sink: other store": 1}, {"sink: other store": 1})
    ['another live agent has this name: give one of the two another --device']
"""

from collections.abc import Mapping

CLONES = "clone_alarms"
"""The counted name of messages of another live agent of this name."""
CLONED = "another live agent has this name: give one of the two another --device"
MOST = 8
"""Alarms that are named, at most; the longest has 200 characters."""
_GROUPS = ("failed: ", "sink: ")


def alarms(totals: Mapping[str, int], before: Mapping[str, int]) -> list[str]:
    """Return what was counted since `before` that somebody should look at."""
    new = sorted(name for name, total in totals.items() if total > before.get(name, 0))
    found = [CLONED] if CLONES in new else []
    found += [name for name in new if name.startswith(_GROUPS)]
    return [*found[:MOST], f"and {len(found) - MOST} more"] if len(found) > MOST else found
