"""Windows with parameters at a gateway: what they hold, and which of them wait.

Of each device counts what its regimes name (`lasp_edge.language.fleet_regimes`); entries of another
meaning are kept and count for nothing.

When operators say something late, panes are made anew on devices, and come one after the other. So
what an entry touches below the frontier is **held**: its rows stay as they are until all devices
that are waited for have promised past it anew, under the new log. Then each row that differs is
revised once. G says how far they have promised: the least low watermark, which goes back, and never
F, which does not. Where windows wait for devices no longer than X (`lasp_edge.protocol.waiting`),
rows are held no longer either: X after the first device has promised past them anew they are
revised, and say who is missing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from device_agent.gateway.held import HeldStarts
from device_agent.gateway.kept import (
    FleetKeeper,
    FleetRow,
    KeptEntry,
    WindowStart,
    WriterOfPanes,
)
from device_agent.gateway.unfinished import UnfinishedWindows
from device_agent.gateway.windows import FinalWindows, TurnFinality, count_failure
from lasp_edge.folds.columns import Partial
from lasp_edge.language.fleet_regimes import FleetRegimes, StartSpan
from lasp_edge.language.forms import WindowForm
from lasp_edge.protocol.acceptance import PaneRows
from lasp_edge.protocol.frontier import Coverage
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.protocol.spans import floor_us
from lasp_edge.protocol.status import TENTATIVE, status_after
from lasp_edge.protocol.waiting import Step, WindowWaiting

Place = tuple[int, int]
"""Stream and start of a pane."""
EntryAt = tuple[str, WriterOfPanes]
"""Key and writer of an entry in its pane."""


class ControlledFleet:
    """The windows of a fleet that parameters change.

    Args:
        regimes: what panes mean.
        keeper: keeps entries and rows.
        held: the starts that wait.
        final: how far windows are final.
        retain_us: for how long after its end a window still takes late readings.
        waits: window -> X, for how long it waits for devices before it has a row.

    Attributes:
        held: the starts that wait for devices to promise anew.
        unfinished: those that are not final.
        failed: how often a fold of the user's own raised something, by reason.
    """

    def __init__(
        self,
        regimes: FleetRegimes,
        keeper: FleetKeeper,
        held: Iterable[StartSpan],
        final: FinalWindows,
        retain_us: int,
        waits: Mapping[str, int],
    ) -> None:
        self._regimes, self._keeper, self._retain_us = regimes, keeper, retain_us
        self._waits, self._anew = waits, WindowWaiting.of(waits.values())
        self.held = HeldStarts(held)
        self.unfinished = UnfinishedWindows(waits)
        self._fresh: dict[Place, dict[EntryAt, KeptEntry]] = {}
        self.failed: Counter[str] = Counter()
        for name in regimes.changing:
            for row in keeper.tentative(name, None):
                self.unfinished.note(row)
            if waits[name]:
                self._wait_again(name, final)

    def _wait_again(self, window: str, final: FinalWindows) -> None:
        """Find the windows that have panes and no row, and that are not final."""
        for scope in self._regimes.scopes(window):
            regimes = self._regimes.of(window, scope)
            since_us = final.since_us(window, regimes.longest_us, self._retain_us)
            since_us = EARLIEST_PANE_US if since_us is None else since_us
            for piece in regimes.pieces:
                for pane_us, key in self._keeper.places(piece.stream, since_us):
                    for start_us, form in regimes.starts_over(piece, pane_us):
                        at, end_us = WindowStart(window, key, start_us), start_us + form.size_us
                        if at in self.unfinished.rows:
                            continue
                        if final.is_open(at, end_us, self._keeper):
                            self.unfinished.without_row[at] = end_us

    def promised_anew(self, steps: Iterable[Step], now_us: int | None) -> None:
        """Take what promises bring that were made under the present log; see `WindowWaiting`."""
        self._anew = self._anew.joined(steps, now_us)

    def join(self, rows: PaneRows, frontier_us: int | None) -> tuple[list[KeptEntry], int]:
        """Join accepted entries.

        Args:
            rows: the entries.
            frontier_us: how far results were final before them.

        Returns:
            Those that were not known yet; and how many came too late for a window of theirs.
        """
        block, late, found = rows.block, 0, []
        writer = WriterOfPanes(rows.device, block.incarnation, block.nonce)
        partials = zip(*block.columns, strict=True)
        for key, pane_us, seq, partial in zip(
            block.keys, block.panes_us, block.seqs, partials, strict=True
        ):
            known = self._pane(block.stream, pane_us).get((key, writer))
            if known is not None and known.seq >= seq:
                continue
            entry = KeptEntry(block.stream, pane_us, key, writer, seq, partial)
            if frontier_us is None or pane_us >= frontier_us - self._retain_us:
                is_taken = True  # as is so most often: no window of it is below the floor
            else:
                every, taken = (list(self._touched([entry], at)) for at in (None, frontier_us))
                late += len(taken) < len(every)
                is_taken = bool(taken) or not every
            if is_taken:
                self._fresh.setdefault((block.stream, pane_us), {})[key, writer] = entry
                found.append(entry)
        return found, late

    def _pane(self, stream: int, pane_us: int) -> dict[EntryAt, KeptEntry]:
        """Return the entries of a pane, with those that are not kept yet."""
        kept = self._keeper.entries(stream, pane_us, pane_us)
        found = {(entry.key, entry.writer): entry for entry in kept}
        return found | self._fresh.get((stream, pane_us), {})

    def hear(self, touched: Iterable[StartSpan], frontier_us: int | None) -> None:
        """Hold what was touched below the frontier: all devices have to promise anew."""
        self._anew = WindowWaiting.of(self._waits.values())
        for at in self.unfinished.without_row:
            form = self._regimes.of(at.window).form_at(at.start_us)
            self.unfinished.without_row[at] = at.start_us + form.size_us
        if frontier_us is not None:
            for span in touched:
                least_us = frontier_us - self._retain_us - self._longest_us(span.window)
                self.held.hold(span, least_us, frontier_us)

    def _longest_us(self, window: str) -> int:
        """Return how long windows of a name are, at most; all devices have the same forms."""
        return self._regimes.of(window).longest_us

    def revisions(
        self,
        entries: Iterable[KeptEntry],
        before_us: int | None,
        finality: TurnFinality,
        promised_us: int | None,
    ) -> Iterator[FleetRow]:
        """Yield the rows that differ from the current ones, and may be written.

        Args:
            entries: those that came or grew.
            before_us: the frontier before them; None for nothing yet.
            finality: how sure it is that a window is whole.
            promised_us: how far all have promised under the present log; None: nothing.
        """
        frontier_us = finality.coverage.frontier
        wanted = set(self._touched(entries, before_us))
        wanted |= set(self.unfinished.passed(frontier_us))
        wanted |= set(self.unfinished.due(finality.waiting)) | set(self._released(promised_us))
        for at in sorted(wanted):
            with count_failure(self.failed, at.window):
                row = self._revision(at, finality, promised_us)
                if row is not None:
                    self.unfinished.note(row)
                    yield row
        self._fresh.clear()
        if promised_us is not None:
            self.held.let_go(promised_us, self._longest_us)

    def _touched(
        self, entries: Iterable[KeptEntry], frontier_us: int | None
    ) -> Iterator[WindowStart]:
        """Yield the windows that hold an entry's pane, where it means something.

        Args:
            entries: the entries.
            frontier_us: what lies below its floor is left out, but for what waits.
        """
        for entry in entries:
            window = self._regimes.window_of(entry.stream)
            piece = self._regimes.piece_of(entry.writer.device, entry.stream, entry.pane_us)
            if window is not None and piece is not None:
                regimes = self._regimes.of(window.name, entry.writer.device)
                for start_us, form in regimes.starts_over(piece, entry.pane_us):
                    least_us = floor_us(form, frontier_us, self._retain_us)
                    is_open = least_us is None or start_us >= least_us
                    if is_open or (window.name, start_us) in self.held:
                        yield WindowStart(window.name, entry.key, start_us)

    def _released(self, promised_us: int | None) -> Iterator[WindowStart]:
        """Yield the windows that were held, and that all have promised past, or that are due."""
        for span in self.held.spans:
            bounds_us = (promised_us, self._due_anew_us(span.window))
            last_us = max((each for each in bounds_us if each is not None), default=None)
            if last_us is None or last_us < span.first_us:
                continue
            last_us = min(span.last_us, last_us)
            rows = self._keeper.current(span.window, span.first_us, last_us)
            yield from [row.at for row in rows]
            yield from self._with_entries(span._replace(last_us=last_us))

    def _with_entries(self, span: StartSpan) -> Iterator[WindowStart]:
        for scope in self._regimes.scopes(span.window):
            regimes = self._regimes.of(span.window, scope)
            longest_us = regimes.longest_us
            for piece in regimes.pieces:
                first_us = max(piece.first_us, span.first_us)
                last_us = min(piece.end_us - 1, span.last_us + longest_us)
                if first_us <= last_us:
                    entries = self._keeper.entries(piece.stream, first_us, last_us)
                    for at in self._touched(entries, None):
                        if span.first_us <= at.start_us <= span.last_us:
                            yield at

    def _due_anew_us(self, window: str) -> int | None:
        """Return the end up to which held windows are revised whoever is missing."""
        wait_us = self._waits[window]
        return self._anew.due_us(wait_us) if wait_us else None

    def _is_due_anew(self, window: str, end_us: int) -> bool:
        due_us = self._due_anew_us(window)
        return due_us is not None and end_us <= due_us

    def _is_held(self, at: WindowStart, end_us: int, promised_us: int | None) -> bool:
        """Return whether a window waits until all have promised past its end anew."""
        if promised_us is not None and end_us <= promised_us:
            return False
        return (at.window, at.start_us) in self.held

    def panes_below(self, frontier_us: int) -> dict[int, int]:
        """Return stream -> below which start its panes are of no use any more."""
        return {
            piece.stream: self.held.least_us(frontier_us - self._retain_us - self._longest_us(name))
            for name in self._regimes.changing
            for scope in self._regimes.scopes(name)
            for piece in self._regimes.of(name, scope).pieces
        }

    def _revision(
        self, at: WindowStart, finality: TurnFinality, promised_us: int | None
    ) -> FleetRow | None:
        """Return the next row of a window; None where nothing differs, or it waits."""
        current = self.unfinished.rows.get(at) or self._keeper.row(at)
        made, before = self._computed(at, finality.coverage), None
        if current is None and not made.devices_in:
            return None
        if current is not None:
            before, made = current.status, made._replace(revision=current.revision + 1)
        frontier_us, end_us = finality.coverage.frontier, made.end_us
        passed = frontier_us is not None and end_us <= frontier_us
        is_final = before is not None and before != TENTATIVE  # it may be longer now, and not over
        held = (passed or is_final) and self._is_held(at, end_us, promised_us)
        if held and before != TENTATIVE and not self._is_due_anew(at.window, end_us):
            return None
        differs = current is None or current.result() != made.result()
        status = status_after(before, passed=passed and (is_final or not held), differs=differs)
        if not differs and status == before:
            return None
        is_due = finality.waiting.is_due(self._waits[at.window], end_us)
        if status == TENTATIVE and current is None and not is_due:
            self.unfinished.without_row[at] = end_us
            return None
        if status == TENTATIVE or held:
            made = made._replace(excluded=finality.missing(self._waits[at.window], end_us))
        return made._replace(status=status)

    def _computed(self, at: WindowStart, coverage: Coverage) -> FleetRow:
        """Return a window's first row, as it would be if it were tentative."""
        regimes = self._regimes.of(at.window)
        form = regimes.form_at(at.start_us)
        partial, devices = form.fold.zero, frozenset[str]()
        if regimes.exists(at.start_us):
            partial, devices = self._held_by(at, form)
        return FleetRow(
            at,
            at.start_us + form.size_us,
            partial,
            len(devices),
            len(coverage.expected),
            coverage.excluded,
            TENTATIVE,
            0,
            coverage.frontier,
            regimes.window.stream,
        )

    def _held_by(self, at: WindowStart, form: WindowForm) -> tuple[Partial, frozenset[str]]:
        """Return what a window holds, and whose panes those are."""
        found: dict[str, list[Partial]] = defaultdict(list)
        scopes = self._regimes.scopes(at.window)
        last_us = at.start_us + form.size_us - form.span_us
        for scope in scopes:
            regimes = self._regimes.of(at.window, scope)
            for piece in regimes.pieces_of(form, at.start_us, last_us + form.span_us):
                first_us = max(piece.first_us, at.start_us, EARLIEST_PANE_US)
                until_us = min(piece.end_us - piece.span_us, last_us)
                for entry in self._entries(piece.stream, first_us, until_us):
                    device = entry.writer.device
                    own = device if device in scopes else ""
                    if entry.key == at.key and own == scope:
                        found[device].append(entry.partial)
        every = [partial for partials in found.values() for partial in partials]
        return reduce(form.fold.combine, every, form.fold.zero), frozenset(found)

    def _entries(self, stream: int, first_us: int, last_us: int) -> Iterable[KeptEntry]:
        """Return the entries of some panes, with those that are not kept yet."""
        kept = {
            (entry.pane_us, entry.key, entry.writer): entry
            for entry in self._keeper.entries(stream, first_us, last_us)
        }
        for (of, pane_us), fresh in self._fresh.items():
            if of == stream and first_us <= pane_us <= last_us:
                kept |= {(pane_us, *at): entry for at, entry in fresh.items()}
        return kept.values()
