"""What must hold of windows that wait, wherever a sink has just committed.

- one without a row has not waited for X: nobody was done with it X ago, by the promises that came
- a window is held until devices have promised past it under the present log, and not for longer
"""

from collections.abc import Iterator

from crdts.frontier import BOTTOM_US
from device_agent.gateway.core import WaitingTerms
from lasp_edge.protocol.frontier import reach_us
from lasp_edge.protocol.limits import NEVER_US
from simulations.world.landed import LandedState

_PARTS = 4_096
"""X is counted to a part of it so small."""


def overdue(lander: LandedState, terms: WaitingTerms) -> Iterator[str]:
    """Yield the windows that wait for their first row though they have waited for X.

    Args:
        lander: keeps them.
        terms: with X.
    """
    wait_us, listening, windows = terms.tentative_after_us, lander.listening, lander.core.windows
    if not 0 < wait_us < NEVER_US or listening is None or windows.held.spans:
        return
    if lander.coverage.frontier is None and terms.roster is None:
        return  # it listens who is there
    least_us = listening.now_us - wait_us - wait_us // _PARTS - 1
    due_us = max((lead_us for at_us, lead_us in lander.kept.leads if at_us <= least_us), default=0)
    for at, end_us in windows.unfinished.waiting.items():
        if end_us <= due_us:
            yield f"{lander.lake} has no row of {at}, which has waited since {due_us}"


def held_for_long(lander: LandedState) -> Iterator[str]:
    """Yield the windows that are held though all devices that were heard have promised past them.

    Args:
        lander: keeps them, and waits for whoever was heard.
    """
    core, retired = lander.core, lander.membership.retired
    promises = [each for name, each in lander.promises.entries.items() if name not in retired]
    promised_us = min(map(reach_us, promises), default=BOTTOM_US)
    for span in core.windows.held.spans:
        longest_us = core._regimes.of(span.window).longest_us  # noqa: SLF001 - as it is now
        if span.last_us + longest_us <= promised_us:
            yield f"{lander.lake} holds {span}, and all have promised up to {promised_us}"
