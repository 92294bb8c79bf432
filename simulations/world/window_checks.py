"""What must hold of a sink's windows at the end of every world, whatever befell it.

- a current row is the combination of the pane entries that landed, by plain recomputation
- each window that has entries has a row, unless X lets it wait, and no other has one with readings
- an entry counts in each window that still took late readings when it came; of one that did not,
  nothing more is asked than that its rows follow each other
- revisions count from 0, each differs from the one before, and a status never goes back
- a window is final at most once, and not before the frontier has passed its end; when it has, no
  row of it is tentative any more
- a row that is not tentative names nobody who has promised past its end and has all its readings;
  whom such a row named, the next one names, too, unless that had promised by then past its end, or
  as far as windows are passed, where it is longer now (it may promise less later)
- it names each device of which readings may be missing there, as a store of it was lost, unless it
  was final before anybody knew of the device
- what is deleted of its panes is in no window that still takes late readings
- one that is written again with the same result names somebody no more, or a device of which it is
  known only now that it may lack readings there
- while it waits for its first row, it ends when it ends by the operators' entries that are known
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Set

from crdts.frontier import BOTTOM_US
from device_agent.gateway.core import GatewayCore, WaitingTerms
from lasp_edge.folds.columns import Partial
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.status import FINAL, STATUSES, TENTATIVE
from lasp_edge.protocol.window_rows import MOST_NAMES, FleetRow, WindowStart
from simulations.oracle import combined
from simulations.world.landed import LandedState, WindowEntry
from simulations.world.programs import OPERATED


def wrong_windows(
    plan: Plan, lander: LandedState, terms: WaitingTerms, due_us: int | None = None
) -> Iterator[str]:
    """Yield what is wrong with the windows that a lander keeps.

    Args:
        plan: the program.
        lander: keeps them.
        terms: for whom its windows wait, and for how long they take late readings.
        due_us: windows that end then or earlier have waited for as long as they may.
    """
    right, closed = _true(plan, lander, terms.retain_us)
    right = {at: each for at, each in right.items() if at.window != OPERATED}  # see `control`
    streams = {name: window.stream for name, window in plan.windows.items() if name != OPERATED}
    of_plan = {
        at: rows
        for at, rows in lander.revisions.items()
        if streams.get(at.window) == rows[-1].stream and (at in right or rows[-1].devices_in)
    }
    passed_us = lander.coverage.frontier
    sizes_us = {window.name: window.size_us for window in plan.windows.values()}
    missing = (right.keys() ^ of_plan.keys()) - closed
    if terms.tentative_after_us:
        known_us = [each for each in (passed_us, due_us) if each is not None]
        passed_us = max(known_us, default=None)
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
        if at not in closed and found != right[at]:
            yield f"{at} is {found}, and its panes give {right[at]}"
        yield from _wrong_history(rows, lander.coverage.frontier, lander.lost.keys())
        yield from dropped_names(lander, rows)
        if rows[-1].status != TENTATIVE and at not in closed and not plan.parameters:
            yield from _wrong_names(lander, rows[-1], terms.retain_us)


def ends_otherwise(core: GatewayCore) -> Iterator[str]:
    """Yield the windows without a row that wait for another end than that of their form."""
    for at, end_us in core.windows.unfinished.waiting.items():
        form = core._regimes.of(at.window).form_at(at.start_us)  # noqa: SLF001
        if end_us != at.start_us + form.size_us:
            yield f"{at} waits until {end_us}, and is {form.size_us} us long"


def pruned_too_soon(lander: LandedState, retain_us: int) -> Iterator[str]:
    """Yield the windows of which panes were just deleted, and that still take late readings."""
    frontier_us, below_us = lander.kept.pruned or (BOTTOM_US, {})
    for name, window in lander.plan.windows.items():
        if window.stream in below_us and name != OPERATED:  # its size is another one each time
            last_us = lander.kept.last_below(window.stream, below_us[window.stream])
            end_us = (last_us or BOTTOM_US) // window.slide_us * window.slide_us + window.size_us
            if end_us > frontier_us - retain_us:
                yield f"{lander.file} deleted panes of {name} up to {end_us}, at {frontier_us}"


def _wrong_names(lander: LandedState, row: FleetRow, retain_us: int) -> Iterator[str]:
    frontier_us = lander.coverage.frontier
    if frontier_us is None or not frontier_us - retain_us < row.end_us <= frontier_us:
        return
    counting = {*lander.coverage.expected}.difference(lander.membership.entries)
    for device in sorted(counting & lander.lost.keys()) if len(row.excluded) < MOST_NAMES else ():
        since_us, until_us = lander.lost[device]
        since_us = max(since_us, lander.kept.state.earlier[device].unknown_us)
        is_lost = since_us < row.end_us and row.at.start_us < until_us
        if is_lost and device not in row.excluded:
            yield f"{row.at} may lack readings of {device}, and does not name it"
    promises, begun = lander.promises.entries, lander.begun
    for device in row.excluded[:MOST_NAMES]:
        lacks_until_us = dict(begun.get(device, ())).get(row.stream, row.at.start_us)
        since_us, until_us = lander.lost.get(device, (row.end_us, row.end_us))
        is_lost = since_us < row.end_us and row.at.start_us < until_us
        if device in promises and lacks_until_us <= row.at.start_us and not is_lost:
            promise = promises[device]
            if promise.done or (promise.low_us or 0) >= row.end_us:
                yield f"{row.at} names {device}, which has promised past its end"


def dropped_names(lander: LandedState, rows: list[FleetRow]) -> Iterator[str]:
    """Yield the devices that a final row named, and the next one does not, without a cause."""
    final = [row for row in rows if row.status != TENTATIVE]
    for before, after in itertools.pairwise(final):
        reached_us = lander.dropped.get((after.at, after.revision), {})
        until_us = min(before.end_us, after.end_us, after.frontier_us or BOTTOM_US)
        for device in {*before.excluded}.difference(after.excluded, lander.lost):
            if reached_us.get(device, BOTTOM_US) < until_us:
                yield f"{after.at} names {device} no more, which has not promised past its end"


def _true(
    plan: Plan, lander: LandedState, retain_us: int
) -> tuple[dict[WindowStart, tuple[Partial, int]], set[WindowStart]]:
    """Return what each window holds by what landed, and for which of them that came too late."""
    held: dict[WindowStart, list[WindowEntry]] = defaultdict(list)
    closed = set[WindowStart]()
    for at, entry in lander.window_entries(plan):
        held[at].append(entry)
        size_us = plan.windows[at.window].size_us
        if entry.came_us > at.start_us + size_us + retain_us:
            closed.add(at)
    right = {
        at: (
            combined(entries[0].fold, [entry.partial for entry in entries]),
            len({entry.device for entry in entries}),
        )
        for at, entries in held.items()
    }
    return right, closed


def _wrong_history(rows: list[FleetRow], frontier_us: int | None, lost: Set[str]) -> Iterator[str]:
    at, statuses = rows[0].at, [row.status for row in rows]
    if [row.revision for row in rows] != list(range(len(rows))):
        yield f"{at} has the revisions {[row.revision for row in rows]}"
    if sorted(statuses, key=STATUSES.index) != statuses or statuses.count(FINAL) > 1:
        yield f"{at} was {', '.join(statuses)}"
    for before, after in itertools.pairwise(rows):
        gone, new = (
            set(a.excluded) - set(b.excluded) for a, b in ((before, after), (after, before))
        )
        names = gone | (new & lost if before.was_over else new)
        if (before.result(), before.status) == (after.result(), after.status) and not names:
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
