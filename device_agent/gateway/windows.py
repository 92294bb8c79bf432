"""Which windows a turn may have changed, and what their rows are: the twin of the job's SQL.

A window's partial is the combination of its panes over replicas, devices and time, so computing it
again is always right and counts nothing twice. A row is made where the result or the status differs
from the current one; when, and which status follows, is said once for both
(`lasp_edge.protocol.status`). The rows that are open, that is tentative, are in memory: when the
frontier passes their end they become final. So are those that have panes and no row, as they wait
for devices (`lasp_edge.protocol.waiting`). All others are asked for when a late pane touches them.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Final, NamedTuple, Self

from device_agent.gateway.kept import (
    FleetKeeper,
    FleetRow,
    KeptEntry,
    RestoredFleet,
    WindowStart,
)
from device_agent.gateway.panes import FleetPanes, PaneTotal
from lasp_edge.aggregates.sliding import TwoStacks
from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.columns import Partial
from lasp_edge.language.declarations import Window
from lasp_edge.protocol.frontier import AwaitedDevices, Coverage
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.protocol.spans import floor_us
from lasp_edge.protocol.status import TENTATIVE, status_after
from lasp_edge.protocol.waiting import WindowWaiting
from lasp_edge.reasons import reason_of

Touched = dict[tuple[str, str], set[int]]
"""(window, key) -> starts to look at."""
MOST_FAILURES: Final = 100
"""Reasons that are counted apart, at most; a fold of the user's own may raise a new text each
time."""


@contextmanager
def count_failure(failed: Counter[str], window: str) -> Iterator[None]:
    """Count what a fold of a user's own raises while a window's rows are made."""
    try:
        yield
    except BaseException as error:  # noqa: BLE001 - a user's fold may raise anything
        pass_interrupt(error)
        reason = f"{window}: {reason_of(error)}"
        if reason in failed or len(failed) < MOST_FAILURES:
            failed[reason] += 1


class TurnFinality:
    """How sure it is that a window is whole.

    Args:
        coverage: how far results are final, and over whom.
        waiting: which windows are due.
        awaited: returns for whom they wait; it is asked once, and in most turns never.
    """

    def __init__(
        self, coverage: Coverage, waiting: WindowWaiting, awaited: Callable[[], AwaitedDevices]
    ) -> None:
        self.coverage, self.waiting = coverage, waiting
        self._awaited = awaited

    @cached_property
    def _devices(self) -> AwaitedDevices:
        return self._awaited()

    def missing(self, wait_us: int, end_us: int) -> tuple[str, ...]:
        """Return who is missing in a window of this X that ends then."""
        led = self._devices.led_by(self.coverage.frontier, self.waiting.ends_us.get(wait_us))
        return led.before(end_us)


def served_by(windows: Iterable[Window]) -> frozenset[int]:
    """Return the streams by which it is kept over which windows a frontier was moved."""
    return frozenset(window.stream for window in windows)


class FinalWindows(NamedTuple):
    """How far windows are final at a start.

    Attributes:
        frontier_us: how far results are final; None for nothing yet.
        unserved: windows of which they may not be: another program moved the frontier last.
    """

    frontier_us: int | None
    unserved: frozenset[str] = frozenset()

    @classmethod
    def of(cls, kept: RestoredFleet, windows: Iterable[Window]) -> Self:
        """Return what is known of the windows of a program."""
        served = kept.served
        others = [each for each in windows if served is not None and each.stream not in served]
        return cls(kept.frontier_us, frozenset(each.name for each in others))

    def since_us(self, window: str, longest_us: int, retain_us: int) -> int | None:
        """Return from which start on windows may not be final; None for any.

        Args:
            window: the name.
            longest_us: how long its windows are, at most.
            retain_us: for how long after its end a window still takes late readings.
        """
        if self.frontier_us is None:
            return None
        late_us = retain_us if window in self.unserved else -1
        return self.frontier_us - longest_us - late_us

    def is_open(self, at: WindowStart, end_us: int, keeper: FleetKeeper) -> bool:
        """Return whether a window that may have no row is not final."""
        if self.frontier_us is None or end_us > self.frontier_us:
            return True
        return at.window in self.unserved and keeper.row(at) is None


class FleetWindows:
    """The windows of a fleet.

    Args:
        windows: of the program.
        panes: the fleet's.
        keeper: keeps the rows.
        final: how far windows are final.
        retain_us: for how long after its end a window still takes late readings.
        waits: window -> X, for how long it waits for devices before it has a row.

    Attributes:
        failed: how often a fold of the user's own raised something, by reason.
    """

    def __init__(
        self,
        windows: Iterable[Window],
        panes: FleetPanes,
        keeper: FleetKeeper,
        final: FinalWindows,
        retain_us: int,
        waits: Mapping[str, int],
    ) -> None:
        self._windows = {window.name: window for window in windows}
        self._by_stream = {window.stream: window for window in self._windows.values()}
        self._panes, self._keeper, self._retain_us = panes, keeper, retain_us
        self._open: dict[WindowStart, FleetRow] = {}
        self._ends: list[tuple[int, WindowStart]] = []
        self._waits = waits
        self._held: set[WindowStart] = set()
        self._held_ends: dict[int, list[tuple[int, WindowStart]]] = defaultdict(list)
        self.failed: Counter[str] = Counter()
        for window in self._windows.values():
            # What is final and tentative all the same has a fold that raised something.
            since_us = final.since_us(window.name, window.size_us, retain_us)
            for row in keeper.tentative(window.name, since_us):
                self._note(row)
            self._hold_again(window, since_us, final)

    def _hold_again(self, window: Window, since_us: int | None, final: FinalWindows) -> None:
        """Find the windows that have panes and no row, among those that start then or later."""
        least_us = EARLIEST_PANE_US if since_us is None else since_us
        for pane_us, key in self._keeper.places(window.stream, least_us):
            for start_us in range(window.start_of_first(pane_us), pane_us + 1, window.slide_us):
                at = WindowStart(window.name, key, start_us)
                if start_us < least_us or at in self._open:
                    continue
                end_us = start_us + window.size_us
                if final.is_open(at, end_us, self._keeper):
                    self._hold(at, end_us)

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
        """Return the windows that are not final, and whose end the frontier has passed."""
        found: Touched = {}
        while frontier_us is not None and self._ends and self._ends[0][0] <= frontier_us:
            _, at = heapq.heappop(self._ends)
            if (at in self._open or at in self._held) and at.window in self._windows:
                found.setdefault((at.window, at.key), set()).add(at.start_us)
        return found

    def due(self, waiting: WindowWaiting) -> Touched:
        """Return the windows without a row that have waited for as long as they may."""
        found: Touched = {}
        for wait_us, ends in self._held_ends.items():
            while ends and waiting.is_due(wait_us, ends[0][0]):
                _, at = heapq.heappop(ends)
                if at in self._held:
                    found.setdefault((at.window, at.key), set()).add(at.start_us)
        return found

    def due_at_us(self, waiting: WindowWaiting) -> int | None:
        """Return when the next window without a row will be due; None where that is not known."""
        times_us = []
        for wait_us, ends in self._held_ends.items():
            while ends and ends[0][1] not in self._held:
                heapq.heappop(ends)
            at_us = waiting.due_at_us(wait_us, ends[0][0]) if ends else None
            times_us += [] if at_us is None else [at_us]
        return min(times_us, default=None)

    def revisions(self, wanted: Touched, finality: TurnFinality) -> Iterator[FleetRow]:
        """Yield a row for each of these windows that differs from its current row.

        A window that waits for devices and is not due has none yet.
        """
        for (name, key), starts in sorted(wanted.items()):
            window = self._windows[name]
            with count_failure(self.failed, name):
                for start_us, (partial, devices_in) in self._computed(window, key, sorted(starts)):
                    at = WindowStart(name, key, start_us)
                    row = self._revision(window, at, partial, devices_in, finality)
                    if row is not None:
                        self._note(row)
                        yield row

    def _hold(self, at: WindowStart, end_us: int) -> None:
        """Remember a window that has panes, and no row yet."""
        if at in self._held:
            return
        self._held.add(at)
        heapq.heappush(self._ends, (end_us, at))
        heapq.heappush(self._held_ends[self._waits[at.window]], (end_us, at))

    def _note(self, row: FleetRow) -> None:
        """Take a row for the current one of its window."""
        self._held.discard(row.at)
        if row.status != TENTATIVE:
            self._open.pop(row.at, None)
            return
        if row.at not in self._open:
            heapq.heappush(self._ends, (row.end_us, row.at))
        self._open[row.at] = row

    def _revision(
        self,
        window: Window,
        at: WindowStart,
        partial: Partial,
        devices_in: int,
        finality: TurnFinality,
    ) -> FleetRow | None:
        """Return the next row of a window; None where nothing differs, or it is not due."""
        end_us, coverage = at.start_us + window.size_us, finality.coverage
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
        current = None
        if at not in self._held:
            current = self._open.get(at) or self._keeper.row(at)
        before = None if current is None else current.status
        differs = current is None or current.result() != made.result()
        passed = coverage.frontier is not None and end_us <= coverage.frontier
        status = status_after(before, passed=passed, differs=differs)
        if not differs and status == before:
            return None
        if status == TENTATIVE:
            if current is None and not finality.waiting.is_due(self._waits[window.name], end_us):
                self._hold(at, end_us)
                return None
            made = made._replace(excluded=finality.missing(self._waits[window.name], end_us))
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
