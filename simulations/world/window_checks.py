"""What must hold of a sink's windows at the end of every world, whatever befell it.

- a current row is the combination of the pane entries that landed, by plain recomputation
- each window that has entries has a row, and no other has one with readings in it
- revisions count from 0, each differs from the one before, and a status never goes back
- the frontier never goes back, and passes no promise of a device that was heard lately; nobody else
  holds it: not who is silent for long, who is done or retired, or who promises nothing
- a window is final at most once, and not before the frontier has passed its end; when it has, no
  row of it is tentative any more
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator

from crdts.frontier import BOTTOM_US
from lasp_edge.folds.columns import Partial
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.status import FINAL, STATUSES, TENTATIVE
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from simulations.oracle import combined
from simulations.world.faults import STEP_US
from simulations.world.lander import TERMS, SimulatedLander, WindowEntry

LOOK_US = 4 * STEP_US
"""Microseconds between two looks at who holds the frontier: what is wrong there lasts."""


def wrong_windows(plan: Plan, lander: SimulatedLander) -> Iterator[str]:
    """Yield what is wrong with the windows that a lander keeps."""
    right = _true(plan, lander)
    streams = {window.stream for window in plan.windows.values()}
    of_plan = {
        at: rows
        for at, rows in lander.revisions.items()
        if rows[-1].stream in streams and (at in right or rows[-1].devices_in)
    }
    for at in sorted(right.keys() ^ of_plan.keys()):
        yield f"{at} has {'no row' if at in right else 'a row and no pane'}"
    for at in sorted(right.keys() & of_plan.keys()):
        rows = of_plan[at]
        found = (rows[-1].partial, rows[-1].devices_in)
        if found != right[at]:
            yield f"{at} is {found}, and its panes give {right[at]}"
        yield from _wrong_history(rows, lander.coverage.frontier)


class FrontierWatch:
    """Looks at the frontier of each sink after each step."""

    def __init__(self) -> None:
        self._before: dict[str, int | None] = {}

    def wrong(self, lander: SimulatedLander, now_us: int) -> Iterator[str]:
        """Yield what is wrong with a lander's frontier."""
        before_us = self._before.get(lander.lake)
        after_us = self._before[lander.lake] = lander.coverage.frontier
        if now_us % LOOK_US == 0:
            yield from _held_back(lander, after_us)
        if after_us == before_us:
            return
        if after_us is None or (before_us is not None and after_us < before_us):
            yield f"the frontier of {lander.lake} went from {before_us} back to {after_us}"
            return
        for device, promise in lander.promises.entries.items():
            is_heard = now_us - promise.heard_us <= TERMS.dead_after_us
            counts = device not in lander.membership.retired and not promise.done
            if is_heard and counts and promise.low_us is not None and promise.low_us < after_us:
                yield f"the frontier of {lander.lake} passed the promise of {device}"


def _held_back(lander: SimulatedLander, frontier_us: int | None) -> Iterator[str]:
    """Yield that a lander's frontier is not as far as promises let it be."""
    listening = lander.listening
    if listening is None or (frontier_us is None and listening.lasted_us <= TERMS.dead_after_us):
        return
    lows_us, done_us = [], []
    for device, promise in lander.promises.entries.items():
        if promise.low_us is None or device in lander.membership.retired:
            continue
        if promise.done:
            done_us.append(promise.low_us)
        elif listening.now_us <= max(promise.heard_us, listening.since_us) + TERMS.dead_after_us:
            lows_us.append(promise.low_us)
    allowed_us = min(lows_us, default=max(done_us, default=BOTTOM_US))
    if allowed_us > (BOTTOM_US if frontier_us is None else frontier_us):
        yield f"the frontier of {lander.lake} is {frontier_us}, and promises allow {allowed_us}"


def _true(plan: Plan, lander: SimulatedLander) -> dict[WindowStart, tuple[Partial, int]]:
    """Return what each window holds, from the entries that landed."""
    held: dict[WindowStart, list[WindowEntry]] = defaultdict(list)
    for at, entry in lander.window_entries(plan):
        held[at].append(entry)
    return {
        at: (
            combined(entries[0].fold, [entry.partial for entry in entries]),
            len({entry.device for entry in entries}),
        )
        for at, entries in held.items()
    }


def _wrong_history(rows: list[FleetRow], frontier_us: int | None) -> Iterator[str]:
    at, statuses = rows[0].at, [row.status for row in rows]
    if [row.revision for row in rows] != list(range(len(rows))):
        yield f"{at} has the revisions {[row.revision for row in rows]}"
    if sorted(statuses, key=STATUSES.index) != statuses or statuses.count(FINAL) > 1:
        yield f"{at} was {', '.join(statuses)}"
    for before, after in itertools.pairwise(rows):
        if (before.result(), before.status) == (after.result(), after.status):
            yield f"{at} was written twice: {after}"
    for row in rows:
        passed = row.frontier_us is not None and row.end_us <= row.frontier_us
        if passed == (row.status == TENTATIVE):
            yield f"{at} was {row.status} at the frontier {row.frontier_us}"
    if frontier_us is not None and rows[-1].end_us <= frontier_us and statuses[-1] == TENTATIVE:
        yield f"{at} is tentative, and the frontier is {frontier_us}"
