"""Which windows a turn may have changed, and what their rows are: the twin of the job's SQL.

A window's partial is the combination of its panes over replicas, devices and time, so computing it
again is always right and counts nothing twice. Of each device counts what its regimes name
(`lasp_edge.language.fleet_regimes`): one stream for ever where no parameter changes the window, and
else pieces; entries of another meaning are kept and count for nothing. A row is made where the
result or the status differs from the current one (`lasp_edge.protocol.status`), and where the
window is final or has waited for devices for long enough (`lasp_edge.protocol.waiting`).

When operators say something late, devices rebuild panes, which come one after the other. So the
windows below the frontier that an entry touches are **held**: their rows stay as they are until all
devices that are waited for have promised past them under the new log. Then each row that differs is
revised once. G says how far they have promised: the least low watermark, which goes back, and never
F, which does not. Where windows wait for devices no longer than X, rows are held no longer either:
X after the first device has promised past them under the new log they are revised, and say who is
missing.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Final

from device_agent.gateway.failures import count_failure
from device_agent.gateway.finality import HeldStarts, TurnFinality
from device_agent.gateway.kept import FleetKeeper, KeptEntry
from device_agent.gateway.panes import FleetPanes, PaneTotal, WindowTotal, slid_totals
from device_agent.gateway.unfinished import UnfinishedWindows
from lasp_edge.language.fleet_regimes import FleetRegimes, StartSpan
from lasp_edge.language.forms import WindowForm
from lasp_edge.protocol.acceptance import PaneRows
from lasp_edge.protocol.limits import EARLIEST_PANE_US, LATEST_PANE_US
from lasp_edge.protocol.spans import PassedFrontier
from lasp_edge.protocol.status import TENTATIVE, status_after
from lasp_edge.protocol.waiting import Step, WindowWaiting
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from lasp_edge.units import SECOND_US

Touched = dict[tuple[str, str], set[int]]
"""(window, key) -> starts to look at."""

ROWS_AT_ONCE_US: Final = 3_600 * SECOND_US
"""Starts in microseconds whose rows are read at once, where devices are back: an hour."""


class FleetWindows:
    """The windows of a fleet.

    Args:
        regimes: what panes mean.
        panes: the fleet's.
        keeper: keeps the rows.
        held: the starts that wait until devices have promised under the present log.
        passed: how far the frontier has passed each window.
        retain_us: for how long after its end a window still takes late readings.
        waits: window -> X, for how long it waits for devices before it has a row.

    Attributes:
        held: see there.
        unfinished: the windows that are not final.
        failed: how often a fold of the user's own raised something, by reason.
    """

    def __init__(
        self,
        regimes: FleetRegimes,
        panes: FleetPanes,
        keeper: FleetKeeper,
        held: Iterable[StartSpan],
        passed: PassedFrontier,
        retain_us: int,
        waits: Mapping[str, int],
    ) -> None:
        self._regimes, self._panes, self._keeper = regimes, panes, keeper
        self._retain_us, self._waits = retain_us, waits
        self._waiting_under_log = WindowWaiting.of(waits.values())
        self._reformed: list[WindowStart] = []
        self.held = HeldStarts(held)
        self.unfinished = UnfinishedWindows(waits)
        self.failed: Counter[str] = Counter()
        for name in regimes.windows:
            self._restore(name, passed.of(name))

    def _restore(self, name: str, passed_us: int | None) -> None:
        """Find the windows of a name that are tentative, and those that have panes and no row.

        Those whose row is of another definition are made again: a former program had it.
        """
        since_us, stream = EARLIEST_PANE_US, self._regimes.windows[name].stream
        if passed_us is not None:
            since_us = self.held.least_us(passed_us + 1 - self._longest_us(name))
        current = self._keeper.current(name, since_us, LATEST_PANE_US)
        rows = {row.at: row for row in current}
        for row in rows.values():
            is_short = not row.was_over and (passed_us is None or row.end_us > passed_us)
            if row.stream == stream and (row.status == TENTATIVE or is_short):
                self.unfinished.put(row)
            if row.stream == stream and not self._has_form(row):
                self._reformed.append(row.at)
        for at, end_us in self._with_panes(StartSpan(name, since_us, LATEST_PANE_US)):
            if at in rows:
                self._reformed += [at] if rows[at].stream != stream else []
            elif passed_us is None or end_us > passed_us:
                self.unfinished.wait(at, end_us)

    def _has_form(self, row: FleetRow) -> bool:
        """Return whether a row is of a window that exists, and as long as that."""
        name, _, start_us = row.at
        regimes = self._regimes.of(name)
        if not row.devices_in and not regimes.exists(start_us):
            return True  # it stands for no window
        size_us = regimes.form_at(start_us).size_us
        return regimes.exists(start_us) and row.end_us == start_us + size_us

    def _with_panes(self, span: StartSpan) -> Iterator[tuple[WindowStart, int]]:
        """Yield the windows of a span that have a pane in the store, with their ends."""
        name = span.window
        for regimes in (self._regimes.of(name, each) for each in self._regimes.scopes(name)):
            for piece in regimes.pieces:
                first_us = max(piece.first_us, span.first_us)
                last_us = min(piece.end_us - 1, span.last_us + regimes.longest_us)
                if first_us > last_us:
                    continue
                for pane_us, key in self._keeper.places(piece.stream, first_us, last_us):
                    for start_us, form in regimes.starts_over(piece, pane_us):
                        if span.first_us <= start_us <= span.last_us:
                            yield WindowStart(name, key, start_us), start_us + form.size_us

    def _longest_us(self, window: str) -> int:
        """Return how long windows of a name are, at most; all devices have the same forms."""
        return self._regimes.of(window).longest_us

    def take_entries(self, rows: PaneRows, frontier_us: int | None) -> tuple[list[KeptEntry], int]:
        """Join accepted entries.

        Args:
            rows: the entries.
            frontier_us: how far results were final before them.

        Returns:
            Those that were not known yet; and how many came too late for a window of theirs.
        """
        found, late = [], 0
        for entry in self._panes.join(rows):
            is_taken = True
            if frontier_us is not None and entry.pane_us < frontier_us - self._retain_us:
                at = (entry.stream, entry.writer.device, entry.pane_us)
                every, opened = (len(self._starts_over(*at, each)) for each in (None, frontier_us))
                late += opened < every
                is_taken = bool(opened) or not every
            if is_taken:
                found.append(entry)
        return found, late

    def log_changed(self, touched: Iterable[StartSpan], frontier_us: int | None) -> None:
        """Hold what operators touched below the frontier: all devices have to promise again.

        Args:
            touched: the starts whose panes, or whose windows, are others now.
            frontier_us: how far results are final.
        """
        self._waiting_under_log = WindowWaiting.of(self._waits.values())
        self._panes.clear()
        for at in list(self.unfinished.waiting):
            self.unfinished.wait(
                at, at.start_us + self._regimes.of(at.window).form_at(at.start_us).size_us
            )
        for at, row in self.unfinished.rows.items():
            is_open = frontier_us is None or row.end_us > frontier_us
            if is_open and not self._has_form(row):
                self._reformed.append(at)
        if frontier_us is not None:
            for span in touched:
                least_us = frontier_us - self._retain_us - self._longest_us(span.window)
                self.held.hold(span, least_us, frontier_us)

    def promised(self, steps: Iterable[Step], now_us: int | None) -> None:
        """Take the steps of promises under the present log; see `WindowWaiting`."""
        if self.held.spans:
            self._waiting_under_log = self._waiting_under_log.joined(steps, now_us)

    def touched(self, entries: Iterable[KeptEntry], before_us: int | None) -> Touched:
        """Return the starts of the windows that an entry counts in, above the floor or held.

        Args:
            entries: those that came or grew.
            before_us: the frontier before them; None for nothing yet.
        """
        scope, keys = self._regimes.scope, dict[tuple[int, str, int], set[str]]()
        for entry in entries:
            at = (entry.stream, scope(entry.stream, entry.writer.device), entry.pane_us)
            keys.setdefault(at, set()).add(entry.key)
        found: Touched = {}
        for at, several in keys.items():
            window = self._regimes.window_of(at[0])
            starts = self._starts_over(*at, before_us)
            for key in several if window is not None and starts else ():
                assert window is not None
                found.setdefault((window.name, key), set()).update(starts)
        return found

    def _starts_over(
        self, stream: int, device: str, pane_us: int, frontier_us: int | None
    ) -> list[int]:
        """Return the starts of the windows that a device's pane counts in, above the floor or held.

        With a frontier of None there is no floor.
        """
        window = self._regimes.window_of(stream)
        piece = self._regimes.piece_of(device, stream, pane_us)
        if window is None or piece is None:
            return []
        starts = self._regimes.of(window.name, device).starts_over(piece, pane_us)
        if frontier_us is None or pane_us >= frontier_us - self._retain_us:
            return [start_us for start_us, _ in starts]  # as nearly always: all of them are open
        return [
            start_us
            for start_us, form in starts
            if start_us >= frontier_us - self._retain_us - form.size_us
            or (window.name, start_us) in self.held
        ]

    def revisions(
        self, entries: Iterable[KeptEntry], before_us: int | None, finality: TurnFinality
    ) -> Iterator[FleetRow]:
        """Yield the rows that differ from the current ones, and may be written.

        Args:
            entries: those that came or grew.
            before_us: the frontier before them; None for nothing yet.
            finality: how sure it is that a window is whole.
        """
        wanted, unfinished = self.touched(entries, before_us), self.unfinished
        ended = [unfinished.passed(finality.coverage.frontier), unfinished.due(finality.waiting)]
        if before_us is not None and (finality.caught_up or finality.grown):
            ended.append(self._renamed(finality, before_us))
        for at in chain(*ended, self._released(finality.promised_us), self._reformed):
            wanted.setdefault((at.window, at.key), set()).add(at.start_us)
        self._reformed.clear()
        for (name, key), starts in sorted(wanted.items()):
            with count_failure(self.failed, name):
                for total in self._computed(name, key, sorted(starts)):
                    row = self._revision(name, key, total, finality)
                    if row is not None:
                        unfinished.put(row)
                        yield row
        if finality.promised_us is not None:
            self.held.release(finality.promised_us, self._longest_us)

    def _renamed(self, finality: TurnFinality, before_us: int) -> Iterator[WindowStart]:
        """Yield the windows whose rows are to name others, as devices have spoken.

        They name a device that has sent all of them since, or not one whose readings they may lack,
        as is known now.
        """
        ends_us, times_us = finality.caught_up, finality.grown
        several = [each for each in (ends_us, times_us) if each]
        stop_us = min(max(each.stop for each in several), before_us + 1)
        since_us = max(min(each.start for each in several), before_us - self._retain_us)
        for name, window in self._regimes.windows.items():
            least_us = since_us - self._longest_us(name)
            for first_us in range(least_us, stop_us, ROWS_AT_ONCE_US):  # not all in memory
                last_us = min(first_us + ROWS_AT_ONCE_US, stop_us) - 1
                for row in self._keeper.current(name, first_us, last_us):
                    is_touched = row.at.start_us < times_us.stop and times_us.start < row.end_us
                    if (is_touched or row.end_us in ends_us) and finality.renames(row, window):
                        yield row.at

    def _released(self, promised_us: int | None) -> Iterator[WindowStart]:
        """Yield the windows that were held, and that all have promised past, or that are due."""
        for span in self.held.spans:
            bounds_us = (promised_us, self._due_under_log_us(span.window))
            last_us = max((each for each in bounds_us if each is not None), default=None)
            if last_us is None or last_us < span.first_us:
                continue
            released = span._replace(last_us=min(span.last_us, last_us))
            yield from [row.at for row in self._keeper.current(*released)]
            yield from [at for at, _ in self._with_panes(released)]

    def _due_under_log_us(self, window: str) -> int | None:
        """Return the end up to which held windows are revised whoever is missing."""
        wait_us = self._waits[window]
        return self._waiting_under_log.due_us(wait_us) if wait_us else None

    def _is_due_under_log(self, window: str, end_us: int) -> bool:
        due_us = self._due_under_log_us(window)
        return due_us is not None and end_us <= due_us

    def _is_held(self, at: WindowStart, end_us: int, promised_us: int | None) -> bool:
        """Return whether a window waits until all have promised past its end under the log."""
        if promised_us is not None and end_us <= promised_us:
            return False
        return (at.window, at.start_us) in self.held

    def panes_below(self, frontier_us: int) -> dict[int, int]:
        """Return stream -> below which start its panes are of no use any more."""
        kept_us = frontier_us - self._retain_us
        return {
            piece.stream: self.held.least_us(kept_us - self._longest_us(name))
            for name in self._regimes.windows
            for scope in self._regimes.scopes(name)
            for piece in self._regimes.of(name, scope).pieces
        }

    def _revision(
        self, name: str, key: str, total: WindowTotal, finality: TurnFinality
    ) -> FleetRow | None:
        """Return the next row of a window; None where nothing differs, or it waits."""
        start_us, end_us, combined, devices_in = total
        at, unfinished = WindowStart(name, key, start_us), self.unfinished
        window = self._regimes.windows[name]
        current = unfinished.rows.get(at) or self._keeper.row(at)
        if not devices_in and (current is None or current.stream != window.stream):
            unfinished.waiting.pop(at, None)
            return None
        coverage = finality.coverage
        made = FleetRow(
            at,
            end_us,
            combined,
            devices_in,
            len(coverage.expected),
            (),
            TENTATIVE,
            0 if current is None else current.revision + 1,
            coverage.frontier,
            window.stream,
        )
        before = None if current is None or current.stream != window.stream else current.status
        is_final = before is not None and before != TENTATIVE  # it may be longer now, and not over
        passed = made.was_over
        held = (passed or is_final) and self._is_held(at, end_us, finality.promised_us)
        if held and before != TENTATIVE and not self._is_due_under_log(name, end_us):
            return None
        wait_us, is_open = self._waits[name], not is_final and (held or not passed)
        named = partial(finality.named, window, made, wait_us, is_open=is_open, is_held=held)
        differs = current is None or finality.differs(current, made, window, named)
        status = status_after(before, passed=passed and (is_final or not held), differs=differs)
        if not differs and status == before:
            return None
        if status == TENTATIVE and before is None and not finality.waiting.is_due(wait_us, end_us):
            unfinished.wait(at, end_us)
            return None
        return made._replace(status=status, excluded=named())

    def _computed(self, name: str, key: str, starts: list[int]) -> Iterator[WindowTotal]:
        """Yield the totals of windows that start then; zero for one that holds no pane.

        Windows of one form that overlap are made together, so that a pane enters and leaves a total
        once.
        """
        for form in self._regimes.of(name).forms:
            reach_us = form.size_us - form.span_us
            first, end = bisect_left(starts, form.from_us), bisect_left(starts, form.until_us)
            run: list[int] = []
            for start_us in starts[first:end]:
                if start_us % form.slide_us:
                    yield start_us, start_us + form.size_us, form.fold.zero, 0
                    continue
                if run and start_us > run[-1] + reach_us:
                    yield from slid_totals(form, run, self._totals(name, key, form, run))
                    run = []
                run.append(start_us)
            if run:
                yield from slid_totals(form, run, self._totals(name, key, form, run))

    def _totals(
        self, name: str, key: str, form: WindowForm, run: list[int]
    ) -> list[tuple[int, PaneTotal]]:
        """Return start and total of the panes of some windows, of each scope, in order."""
        found, end_us = [], run[-1] + form.size_us
        for scope in self._regimes.scopes(name):
            for piece in self._regimes.of(name, scope).pieces_of(form, run[0], end_us):
                first_us = max(piece.first_us, run[0])
                panes_us = range(first_us, min(piece.end_us, end_us), form.span_us)
                found += self._panes.totals(piece.stream, (key, scope), panes_us)
        return sorted(found, key=itemgetter(0))
