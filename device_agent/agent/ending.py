"""When an agent ends by itself that is to end once its replay has landed."""

from typing import Final

from device_agent.agent.core import Core
from lasp_edge.timers import Timer
from lasp_edge.units import SECOND_US

LONGEST_US: Final = 60 * SECOND_US
"""Microseconds for which values of the fleet are waited for, or three intervals: a device that goes
on reading holds up nobody for longer."""


class Ending:
    """Whether an agent that is to end when it is done may end.

    Its readings have landed, and its variables were published. If others are connected, all of them
    have agreed on the fleet's values for two intervals: who speaks for the fleet has published them
    by then. Where events stay on their devices it does not end: gateways ask for what was made of
    them.

    Args:
        core: of the agent.
        wanted: it is to end at all.
    """

    def __init__(self, core: Core, *, wanted: bool) -> None:
        self._core, self._wanted = core, wanted and core.shares is None
        self._agreed = Timer(2 * core.agent.settings.interval_us)
        self._longest = Timer(max(LONGEST_US, 3 * core.agent.settings.interval_us))
        self._has_begun = False

    def is_over(self, now_us: int) -> bool:
        """Return whether the agent may end now."""
        if not self._wanted:
            return False
        core = self._core
        if not (core.done and core.exchange.all_sent and core.sharing.all_sent):
            self._has_begun = False
            return False
        if not (core.agent.plan.dynamic_folds and core.agreements.others()):
            return True
        if not self._has_begun:
            self._has_begun = True
            self._longest.begin(now_us)
            self._agreed.begin(now_us)
        if not all(each.settled or not each.devices for each in core.agreements.all().values()):
            self._agreed.begin(now_us)
        return self._agreed.is_over(now_us) or self._longest.is_over(now_us)
