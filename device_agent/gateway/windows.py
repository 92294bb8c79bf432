"""Which windows a turn may have changed, and what their rows are: the twin of the job's SQL.

A window's partial is the combination of its panes over replicas, devices and time, so computing it
again is always right and counts nothing twice. A row is made where the result or the status differs
from the current one; when, and which status follows, is said once for both
(`lasp_edge.protocol.status`). The rows that are open, that is tentative, are in memory: when the
frontier passes their end they become final. All others are asked for when a late pane touches them.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from device_agent.gateway.kept import FleetKeeper, FleetRow, KeptEntry, WindowStart
from device_agent.gateway.panes import FleetPanes, PaneTotal
from lasp_edge.aggregates.sliding import TwoStacks
from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.columns import Partial
from lasp_edge.language.declarations import Window
from lasp_edge.protocol.frontier import Coverage
from lasp_edge.protocol.spans import floor_us
from lasp_edge.protocol.status import TENTATIVE, status_after
from lasp_edge.reasons import reason_of

Touched = dict[tuple[str, str], set[int]]
"""(window, key) -> starts to look at."""
MOST_FAILURES: Final = 100
"""Reasons that are counted apart, at most; a fold of the user's own may raise a new text each
time."""


class FleetWindows:
    """The windows of a fleet.

    Args:
        windows: of the program.
        panes: the fleet's.
        keeper: keeps the rows.
        frontier_us: how far results are final; None for nothing yet.
        retain_us: for how long after its end a window still takes late readings.

    Attributes:
        failed: how often a fold of the user's own raised something, by reason.
    """

    def __init__(
        self,
        windows: Iterable[Window],
        panes: FleetPanes,
        keeper: FleetKeeper,
        frontier_us: int | None,
        retain_us: int,
    ) -> None:
        self._windows = {window.name: window for window in windows}
        self._by_stream = {window.stream: window for window in self._windows.values()}
        self._panes, self._keeper, self._retain_us = panes, keeper, retain_us
        self._open: dict[WindowStart, FleetRow] = {}
        self._ends: list[tuple[int, WindowStart]] = []
        self.failed: Counter[str] = Counter()
        for window in self._windows.values():
            # What ends at the frontier or before is final, or its fold has raised something.
            since_us = None if frontier_us is None else frontier_us - window.size_us + 1
            for row in keeper.tentative(window.name, since_us):
                self._note(row)

    def touched(self, entries: Iterable[KeptEntry], before_us: int | None) -> Touched:
        """Return the starts of the windows that hold an entry's pane, above the floor.

        Args:
            entries: those that came or grew.
            before_us: the frontier before them; None for nothing yet.
        """
        found: Touched = {}
        for stream, key, pane_us in {(each.stream, each.key, each.pane_us) for each in entries}:
            window = self._by_stream[stream]
            least_us = floor_us(window, before_us, self._retain_us)
            starts = range(window.start_of_first(pane_us), pane_us + 1, window.slide_us)
            found.setdefault((window.name, key), set()).update(
                starts if least_us is None else [each for each in starts if each >= least_us]
            )
        return found

    def passed(self, frontier_us: int | None) -> Touched:
        """Return the windows that are open, and whose end the frontier has passed."""
        found: Touched = {}
        while frontier_us is not None and self._ends and self._ends[0][0] <= frontier_us:
            _, at = heapq.heappop(self._ends)
            row = self._open.get(at)
            if row is not None and row.at.window in self._windows:
                found.setdefault((at.window, at.key), set()).add(at.start_us)
        return found

    def revisions(self, wanted: Touched, coverage: Coverage) -> Iterator[FleetRow]:
        """Yield a row for each of these windows that differs from its current row."""
        for (name, key), starts in sorted(wanted.items()):
            window = self._windows[name]
            try:
                for start_us, (partial, devices_in) in self._computed(window, key, sorted(starts)):
                    at = WindowStart(name, key, start_us)
                    row = self._revision(window, at, partial, devices_in, coverage)
                    if row is not None:
                        self._note(row)
                        yield row
            except BaseException as error:  # noqa: BLE001 - a user's fold may raise anything
                pass_interrupt(error)
                reason = f"{name}: {reason_of(error)}"
                if reason in self.failed or len(self.failed) < MOST_FAILURES:
                    self.failed[reason] += 1

    def _note(self, row: FleetRow) -> None:
        """Take a row for the current one of its window."""
        if row.status != TENTATIVE:
            self._open.pop(row.at, None)
            return
        if row.at not in self._open:
            heapq.heappush(self._ends, (row.end_us, row.at))
        self._open[row.at] = row

    def _revision(
        self, window: Window, at: WindowStart, partial: Partial, devices_in: int, coverage: Coverage
    ) -> FleetRow | None:
        """Return the next row of a window; None where nothing differs."""
        end_us = at.start_us + window.size_us
        made = FleetRow(
            at,
            end_us,
            partial,
            devices_in,
            len(coverage.expected),
            coverage.excluded,
            TENTATIVE,
            0,
            coverage.frontier,
            window.stream,
        )
        current = self._open.get(at) or self._keeper.row(at)
        before = None if current is None else current.status
        differs = current is None or current.result() != made.result()
        passed = coverage.frontier is not None and end_us <= coverage.frontier
        status = status_after(before, passed=passed, differs=differs)
        if not differs and status == before:
            return None
        revision = 0 if current is None else current.revision + 1
        return made._replace(status=status, revision=revision)

    def _computed(
        self, window: Window, key: str, starts: list[int]
    ) -> Iterator[tuple[int, tuple[Partial, int]]]:
        """Yield the start, partial and number of devices of windows that have a pane.

        Windows that overlap are made together, so that a pane enters and leaves a total once.
        """
        reach_us = window.size_us - window.span_us
        while starts:
            together = 1
            while together < len(starts) and starts[together] <= starts[together - 1] + reach_us:
                together += 1
            run, starts = starts[:together], starts[together:]
            totals = self._panes.totals(window.stream, key, run[0], run[-1] + reach_us)
            yield from _slid(window, run, totals)


def _slid(
    window: Window, starts: Iterable[int], totals: Mapping[int, PaneTotal]
) -> Iterator[tuple[int, tuple[Partial, int]]]:
    """Yield what each of some windows that overlap holds.

    Args:
        window: whose rows they are.
        starts: in order.
        totals: of all panes of these windows that hold the key, in order.
    """
    coming, held = list(totals.items()), TwoStacks(window.fold)
    inside: Counter[frozenset[str]] = Counter()  # most panes have the same devices
    first = last = 0
    for start_us in starts:
        while last < len(coming) and coming[last][0] < start_us + window.size_us:
            held.push(coming[last][1].partial)
            inside[coming[last][1].devices] += 1
            last += 1
        while first < last and coming[first][0] < start_us:
            held.pop()
            inside[coming[first][1].devices] -= 1
            first += 1
        if first < last:
            devices = frozenset().union(*(each for each, panes in inside.items() if panes))
            yield start_us, (held.total, len(devices))
