"""Whether an agent still does its work: only then is a watchdog to leave it alone.

No network is no illness: an agent goes on measuring without one. Nor is a full disk: a new process
would not find more room, and would lose the readings that wait in memory. It is ill when something
stands still that must move: a commit that is overdue, a link that no longer tries to connect, a
queue of messages of which the broker confirms none.
"""

from typing import NamedTuple

from lasp_edge.units import SECOND_US

OVERDUE_COMMITS = 3
"""Intervals of commits after which readings that wait in memory wait too long."""
LEAST_OVERDUE_US = 60 * SECOND_US
"""The same where commits come often: a slow card may take such a time."""
STILL_US = 1_800 * SECOND_US
"""Microseconds in which a link must try to connect, or a broker confirm a message: well above the
minutes that a satellite link takes."""


class Vitals(NamedTuple):
    """What an agent does, as seen at one moment.

    Attributes:
        held_since_us: since when readings wait for a commit; None while nothing waits.
        waits_for_room: the last commit failed for want of room, and is tried again and again.
        connected: the broker has taken the agent.
        attempts: how often the link has tried to connect.
        in_flight: messages that were sent and not confirmed.
        confirmed: messages that were confirmed, in all.
    """

    held_since_us: int | None
    waits_for_room: bool
    connected: bool
    attempts: int
    in_flight: int
    confirmed: int


class Health:
    """Compares what an agent does with what it did.

    Args:
        commit_every_us: time between two commits of readings.
    """

    def __init__(self, commit_every_us: int) -> None:
        self._overdue_us = max(OVERDUE_COMMITS * commit_every_us, LEAST_OVERDUE_US)
        self._progress: tuple[bool, int, int] | None = None
        self._since_us = 0

    def problems(self, vitals: Vitals, now_us: int) -> list[str]:
        """Return what stands still, in words; empty where all is well."""
        progress = (vitals.connected, vitals.attempts, vitals.confirmed)
        waits = not vitals.connected or vitals.in_flight > 0
        if progress != self._progress or not waits or now_us < self._since_us:
            self._progress, self._since_us = progress, now_us
        found = []
        held_us = now_us - (vitals.held_since_us if vitals.held_since_us is not None else now_us)
        if held_us > self._overdue_us and not vitals.waits_for_room:
            found.append(f"readings have waited {held_us // SECOND_US} s for a commit")
        still_us = now_us - self._since_us
        if still_us > STILL_US and vitals.connected:
            found.append(f"the broker has confirmed nothing for {still_us // SECOND_US} s")
        elif still_us > STILL_US:
            found.append(f"the link has not tried to connect for {still_us // SECOND_US} s")
        return found
