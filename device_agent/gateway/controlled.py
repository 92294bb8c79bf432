"""Windows with parameters at a gateway: what they hold, and which of them wait.

Of each device counts what its regimes name (`lasp_edge.language.fleet_regimes`); entries of another
meaning are kept and count for nothing.

When operators say something late, panes are made anew on devices, and come one after the other. So
what an entry touches below the frontier is **held**: its rows stay as they are until all devices
that are waited for have promised past it anew, under the new log. Then each row that differs is
revised once. G says how far they have promised: the least low watermark, which goes back, and never
F, which does not.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import reduce

from device_agent.gateway.kept import (
    FleetChanges,
    FleetKeeper,
    FleetRow,
    KeptEntry,
    WindowStart,
    WriterOfPanes,
)
from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.columns import Partial
from lasp_edge.language.fleet_regimes import FleetRegimes, StartSpan
from lasp_edge.language.forms import WindowForm
from lasp_edge.protocol.acceptance import PaneRows
from lasp_edge.protocol.frontier import Coverage
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.protocol.status import TENTATIVE, status_after

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
        frontier_us: how far results are final; None for nothing yet.
        retain_us: for how long after its end a window still takes late readings.
    """

    def __init__(
        self,
        regimes: FleetRegimes,
        keeper: FleetKeeper,
        held: Iterable[StartSpan],
        frontier_us: int | None,
        retain_us: int,
    ) -> None:
        self._regimes, self._keeper, self._retain_us = regimes, keeper, retain_us
        self._held = list(held)
        self._open: dict[WindowStart, FleetRow] = {}
        self._fresh: dict[Place, dict[EntryAt, KeptEntry]] = {}
        for name in regimes.windows:
            for row in keeper.tentative(name, None):
                self._open[row.at] = row
        del frontier_us

    def join(self, rows: PaneRows) -> Iterator[KeptEntry]:
        """Join accepted entries, and yield those that were not known yet."""
        block = rows.block
        writer = WriterOfPanes(rows.device, block.incarnation, block.nonce)
        partials = zip(*block.columns, strict=True)
        for key, pane_us, seq, partial in zip(
            block.keys, block.panes_us, block.seqs, partials, strict=True
        ):
            known = self._pane(block.stream, pane_us).get((key, writer))
            if known is None or known.seq < seq:
                entry = KeptEntry(block.stream, pane_us, key, writer, seq, partial)
                self._fresh.setdefault((block.stream, pane_us), {})[key, writer] = entry
                yield entry

    def _pane(self, stream: int, pane_us: int) -> dict[EntryAt, KeptEntry]:
        """Return the entries of a pane, with those that are not kept yet."""
        kept = self._keeper.entries(stream, pane_us, pane_us)
        found = {(entry.key, entry.writer): entry for entry in kept}
        return found | self._fresh.get((stream, pane_us), {})

    def hear(self, touched: Iterable[StartSpan], frontier_us: int | None) -> None:
        """Hold what was touched below the frontier: all devices have to promise anew."""
        if frontier_us is not None:
            least_us = frontier_us - self._retain_us
            self._held += [
                span._replace(
                    first_us=max(span.first_us, least_us), last_us=min(span.last_us, frontier_us)
                )
                for span in touched
                if span.first_us <= frontier_us and span.last_us >= least_us
            ]

    @property
    def held(self) -> tuple[StartSpan, ...]:
        """The starts that wait."""
        return tuple(self._held)

    def revisions(
        self, entries: Iterable[KeptEntry], coverage: Coverage, promised_us: int | None
    ) -> Iterator[FleetRow]:
        """Yield the rows that differ from the current ones, and may be written.

        Args:
            entries: those that came or grew.
            coverage: how far results are final, and over whom.
            promised_us: how far all have promised under the present log; None: nothing.
        """
        wanted = set(self._touched(entries)) | set(self._passed(coverage.frontier))
        wanted |= set(self._released(promised_us))
        for at in sorted(wanted):
            try:
                row = self._revision(at, coverage, promised_us)
            except BaseException as error:  # noqa: BLE001 - a user's fold may raise anything
                pass_interrupt(error)
                continue
            if row is not None:
                self._note(row)
                yield row
        self._fresh.clear()
        self._let_go(promised_us)

    def _note(self, row: FleetRow) -> None:
        if row.status == TENTATIVE:
            self._open[row.at] = row
        else:
            self._open.pop(row.at, None)

    def _touched(self, entries: Iterable[KeptEntry]) -> Iterator[WindowStart]:
        """Yield the windows that hold an entry's pane, where it means something."""
        for entry in entries:
            window = self._regimes.window_of(entry.stream)
            piece = self._regimes.piece_of(entry.writer.device, entry.stream, entry.pane_us)
            if window is not None and piece is not None:
                regimes = self._regimes.of(window.name, entry.writer.device)
                for start_us, _ in regimes.starts_over(piece, entry.pane_us):
                    yield WindowStart(window.name, entry.key, start_us)

    def _passed(self, frontier_us: int | None) -> Iterator[WindowStart]:
        """Yield the open windows that the frontier has passed."""
        if frontier_us is not None:
            yield from [at for at, row in self._open.items() if row.end_us <= frontier_us]

    def _released(self, promised_us: int | None) -> Iterator[WindowStart]:
        """Yield the windows that were held, and that all have promised past by now."""
        for span in self._held if promised_us is not None else ():
            last_us = min(span.last_us, promised_us or 0)
            rows = self._keeper.current(span.window, span.first_us, last_us)
            yield from [row.at for row in rows]
            yield from self._with_entries(span._replace(last_us=last_us))

    def _with_entries(self, span: StartSpan) -> Iterator[WindowStart]:
        for scope in self._regimes.scopes(span.window):
            regimes = self._regimes.of(span.window, scope)
            longest_us = max(form.size_us for form in regimes.forms)
            for piece in regimes.pieces:
                first_us = max(piece.first_us, span.first_us)
                last_us = min(piece.end_us - 1, span.last_us + longest_us)
                if first_us <= last_us:
                    yield from self._touched(self._keeper.entries(piece.stream, first_us, last_us))

    def _let_go(self, promised_us: int | None) -> None:
        """Hold no longer what all have promised past."""
        if promised_us is None:
            return
        kept = []
        for span in self._held:
            regimes = self._regimes.of(span.window)
            longest_us = max(form.size_us for form in regimes.forms)
            first_us = max(span.first_us, promised_us - longest_us)
            if first_us <= span.last_us and promised_us - longest_us < span.last_us:
                kept.append(span._replace(first_us=first_us))
        self._held = kept

    def _is_held(self, at: WindowStart, end_us: int, promised_us: int | None) -> bool:
        """Return whether a window waits until all have promised past its end anew."""
        if promised_us is not None and end_us <= promised_us:
            return False
        return any(
            span.window == at.window and span.first_us <= at.start_us <= span.last_us
            for span in self._held
        )

    def _revision(
        self, at: WindowStart, coverage: Coverage, promised_us: int | None
    ) -> FleetRow | None:
        """Return the next row of a window; None where nothing differs, or it is held."""
        regimes = self._regimes.of(at.window)
        window, form = regimes.window, regimes.form_at(at.start_us)
        current = self._open.get(at) or self._keeper.row(at)
        partial, devices = form.fold.zero, frozenset[str]()
        if regimes.exists(at.start_us):
            partial, devices = self._held_by(at, form)
        if current is None and not devices:
            return None
        end_us = at.start_us + form.size_us
        passed = coverage.frontier is not None and end_us <= coverage.frontier
        if passed and self._is_held(at, end_us, promised_us):
            if current is None or current.status != TENTATIVE:
                return None
            passed = False
        made = FleetRow(
            at,
            end_us,
            partial,
            len(devices),
            len(coverage.expected),
            coverage.excluded,
            TENTATIVE,
            0,
            coverage.frontier,
            window.stream,
        )
        before = None if current is None else current.status
        differs = current is None or current.result() != made.result()
        status = status_after(before, passed=passed, differs=differs)
        if not differs and status == before:
            return None
        revision = 0 if current is None else current.revision + 1
        return made._replace(status=status, revision=revision)

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


def add_held(changes: FleetChanges, fleet: ControlledFleet, before: tuple[StartSpan, ...]) -> None:
    """Note in a turn's changes what waits, if that has changed."""
    if fleet.held != before:
        changes.held = fleet.held
