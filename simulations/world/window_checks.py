"""What must hold of a sink's windows at the end of every world, whatever befell it.

- a current row is the combination of the pane entries that landed, by plain recomputation
- each window that has entries has a row, unless X lets it wait, and no other has one with readings
- revisions count from 0, each differs from the one before, and a status never goes back
- a window is final at most once, and not before the frontier has passed its end; when it has, no
  row of it is tentative any more
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator

from lasp_edge.folds.columns import Partial
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.status import FINAL, STATUSES, TENTATIVE
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from simulations.oracle import combined
from simulations.world.landed import LandedState, WindowEntry


def wrong_windows(plan: Plan, lander: LandedState, *, waits: bool = False) -> Iterator[str]:
    """Yield what is wrong with the windows that a lander keeps.

    Args:
        plan: the program.
        lander: keeps them.
        waits: windows may wait for devices before they have a row.
    """
    right = _true(plan, lander)
    streams = {window.stream for window in plan.windows.values()}
    of_plan = {
        at: rows
        for at, rows in lander.revisions.items()
        if rows[-1].stream in streams and (at in right or rows[-1].devices_in)
    }
    missing = right.keys() ^ of_plan.keys()
    if waits:
        passed_us = lander.coverage.frontier
        sizes_us = {window.name: window.size_us for window in plan.windows.values()}
        missing = {
            at
            for at in missing
            if passed_us is not None and at.start_us + sizes_us[at.window] <= passed_us
        }
    for at in sorted(missing):
        yield f"{at} has {'no row' if at in right else 'a row and no pane'}"
    for at in sorted(right.keys() & of_plan.keys()):
        rows = of_plan[at]
        found = (rows[-1].partial, rows[-1].devices_in)
        if found != right[at]:
            yield f"{at} is {found}, and its panes give {right[at]}"
        yield from _wrong_history(rows, lander.coverage.frontier)


def _true(plan: Plan, lander: LandedState) -> dict[WindowStart, tuple[Partial, int]]:
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
    final_end_us = None
    for row in rows:
        passed = row.frontier_us is not None and row.end_us <= row.frontier_us
        # What was final is never tentative again, though a program makes it longer.
        is_longer = final_end_us is not None and final_end_us != row.end_us
        final_end_us = row.end_us if row.status == FINAL else final_end_us
        if passed == (row.status == TENTATIVE) and not is_longer:
            yield f"{at} was {row.status} at the frontier {row.frontier_us}"
    if frontier_us is not None and rows[-1].end_us <= frontier_us and statuses[-1] == TENTATIVE:
        yield f"{at} is tentative, and the frontier is {frontier_us}"
