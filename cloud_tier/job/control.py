"""What the job knows of parameters, and which windows with parameters a step looks at.

A batch that brings entries of the control log plans the windows anew. What an entry touches below
the frontier is held, as at a gateway: rows stay as they are until all devices that are waited for
have promised past it under the new log, and then each row that differs is revised once. G says how
far they have promised; it goes back, and F does not.

What is held is written to `lattice` before the entries that it is about. So a job that dies between
the two holds more than it must, for as long as nobody promises, and never less.

Programs without parameters have nothing of this.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from typing import Any, Final, NamedTuple

import pyarrow as pa

from cloud_tier.job.job import Job
from cloud_tier.lake.controls import log_of, stored_log
from cloud_tier.lake.coverage import promised_steps
from cloud_tier.lake.tables import ABSENT, HELD, arrow_schema
from crdts import ControlLog
from crdts.frontier import BOTTOM_US
from lasp_edge.errors import UsageError
from lasp_edge.language.fleet_regimes import FleetRegimes, StartSpan
from lasp_edge.language.plan import Plan
from lasp_edge.protocol import spans
from lasp_edge.protocol.frontier import Coverage, Liveness, advance
from lasp_edge.protocol.lake_columns import LANDED, PANE_DATE
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.protocol.spans import Span
from lasp_edge.protocol.waiting import Step, WindowWaiting

ALWAYS: Final = 0
"""A row is made if it differs."""
IF_OPEN: Final = 1
"""A row is made only in place of a tentative one whose end the frontier has passed."""
IF_HELD_BY_SOME: Final = 2
"""A row is made only where some device has a pane of the window."""
IF_NEW: Final = 3
"""A row is made only where the window has no row yet, and some device has a pane of it."""
_MOST_SPANS: Final = 1_000
"""Spans of one key and window, at most, until those with the smallest gaps are joined."""

SentPanes = Mapping[int, Collection[tuple[str, str, int]]]
"""Key, device and start of the panes that came, by stream."""


class LookedStarts(NamedTuple):
    """Starts of a window that a step looks at.

    Attributes:
        window: its name.
        key: None for all keys.
        first_us, last_us: both included.
        needs: `ALWAYS`, `IF_OPEN`, `IF_HELD_BY_SOME` or `IF_NEW`.
    """

    window: str
    key: str | None
    first_us: int
    last_us: int
    needs: int = ALWAYS

    @property
    def span(self) -> Span:
        """The starts."""
        return Span(self.first_us, self.last_us)


class ControlState(NamedTuple):
    """What is merged of parameters.

    Attributes:
        regimes: what panes mean under what operators said.
        held: the starts that wait.
        generation: how often something was held.
        anew: since when windows wait for promises under the present log.
    """

    regimes: FleetRegimes
    held: tuple[StartSpan, ...] = ()
    generation: int = 0
    anew: WindowWaiting = WindowWaiting.of(())


def check_functions(plan: Plan, *, steps_run_here: bool) -> None:
    """Check that whoever runs the steps has the functions that say which folds windows have.

    Only devices ask the other functions of a window with parameters. A plan that goes to a server
    of Spark Connect leaves all functions behind.

    Raises:
        UsageError: it has not.
    """
    windows = plan.windows.values()
    lacking = [window.name for window in windows if window.controls.fold]
    if lacking and not steps_run_here:
        raise UsageError(
            f"parameters change the fold of {', '.join(lacking)}, and the function that says how "
            "is not at a server of Spark Connect: give --master a cluster, and not sc://"
        )


def recalled_control(job: Job, told: Iterable[Mapping[str, Any]]) -> ControlState | None:
    """Return what the lake knows of parameters; None without parameters.

    Args:
        job: the program over the lake.
        told: the merged rows that tell how far devices have come.
    """
    if not job.plan.parameters:
        return None
    log = stored_log(job.tables.table(job.lake.lattice)) or ControlLog()
    query = f"SELECT key, pane_us, now_us, seq FROM source WHERE kind = '{HELD}'"  # noqa: S608
    rows = job.tables.select(job.lake.lattice, query).to_pylist()
    newest = max((row["seq"] for row in rows), default=0)
    held = {
        StartSpan(row["key"], row["pane_us"], row["now_us"]) for row in rows if row["seq"] == newest
    }
    regimes = FleetRegimes(job.plan, log)
    steps = promised_steps(row for row in told if row["changed"] == regimes.control)
    return ControlState(regimes, tuple(sorted(held)), newest, _waiting(job).joined(steps, None))


def heard(
    job: Job, known: ControlState | None, frontier_us: int | None, telling: pa.Table
) -> ControlState | None:
    """Return the state after the entries of a batch; what they touch is held, and written.

    Args:
        job: the program over the lake.
        known: the state before; None before any, or without parameters.
        frontier_us: before the batch.
        telling: rows of the batch, at least those of the kind `control`.
    """
    if not job.plan.parameters:
        return None
    known = known or ControlState(FleetRegimes(job.plan), anew=_waiting(job))
    said = log_of(telling.to_pylist())
    if said <= known.regimes.log:
        return known
    regimes = FleetRegimes(job.plan, known.regimes.log.copy())
    regimes.hear(said)
    touched = _below(regimes.take_touched(), frontier_us, job.retain_us)
    held = tuple(sorted({*known.held, *touched}))
    made = ControlState(regimes, held, known.generation + 1, _waiting(job))
    job.tables.append(job.lake.lattice, _held_rows(made))
    return made


def liveness_under(
    before: ControlState | None, after: ControlState | None, liveness: Liveness
) -> Liveness:
    """Return what is known of devices once the log has changed: promises are void then."""
    digest = before.regimes.control if before else 0
    if after is None or after.regimes.control == digest:
        return liveness
    return liveness.voided()


def promised_anew(state: ControlState, steps: Iterable[Step], now_us: int | None) -> ControlState:
    """Return the state after promises that came with its entries or since."""
    return state._replace(anew=state.anew.joined(steps, now_us))


def promised(job: Job, liveness: Liveness) -> int | None:
    """Return G: how far all that are waited for have promised; None for nothing."""
    terms = (liveness, job.roster, job.dead_after_us, job.listen_us)
    return advance(BOTTOM_US, *terms).frontier


def due_anew_us(job: Job, state: ControlState, window: str) -> int | None:
    """Return the end up to which held windows are revised whoever is missing."""
    wait_us = job.waits[window]
    return state.anew.due_us(wait_us) if wait_us else None


def _waiting(job: Job) -> WindowWaiting:
    return WindowWaiting.of(job.waits.values())


def let_go(state: ControlState, promised_us: int | None) -> ControlState:
    """Return the state in which nothing is held that all have promised past."""
    if promised_us is None or not state.held:
        return state
    kept = []
    for span in state.held:
        first_us = max(span.first_us, promised_us - longest_us(state.regimes, span.window))
        if first_us <= span.last_us:
            kept.append(span._replace(first_us=first_us))
    return state._replace(held=tuple(kept))


def longest_us(regimes: FleetRegimes, window: str) -> int:
    """Return the length of the longest windows of a name."""
    return max(form.size_us for form in regimes.of(window).forms)


def looks(
    job: Job,
    state: ControlState,
    sent: SentPanes,
    plain: spans.Starts,
    before: spans.PassedFrontier,
    coverage: Coverage,
    promised_us: int | None,
    due: Mapping[str, tuple[int | None, int | None]],
) -> list[LookedStarts]:
    """Return which starts a step looks at.

    Args:
        job: the program over the lake.
        state: with what the batch made to be held.
        sent: the panes that came.
        plain: the starts of the windows without parameters.
        before: the frontier before the batch.
        coverage: the frontier now.
        promised_us: G.
        due: window -> up to which end it was due before, and is now, where it waits at all.
    """
    found = [
        LookedStarts(name, None, *span)
        for name, several in sorted(plain.items())
        for span in several
    ]
    wanted = [*_touched(state.regimes, sent)]
    wanted += _passed(job, state.regimes, before, coverage.frontier)
    wanted += [LookedStarts(*_all_keys(span), IF_OPEN) for span in state.held]
    wanted += _due(state.regimes, due)
    wanted += _released(job, state, promised_us)
    for look in wanted:
        least_us = floor_us(job, state.regimes, look.window, before.frontier_us)
        if look.last_us >= least_us:
            found.append(look._replace(first_us=max(look.first_us, least_us)))
    return found


def starts_of(looked: Iterable[LookedStarts]) -> spans.Starts:
    """Return the starts that are looked at, by window."""
    found: dict[str, list[Span]] = defaultdict(list)
    for look in looked:
        found[look.window].append(look.span)
    return {name: spans.joined(several) for name, several in found.items()}


def floor_us(job: Job, regimes: FleetRegimes, window: str, frontier_us: int | None) -> int:
    """Return the least start of a window with parameters that is recomputed."""
    if frontier_us is None:
        return EARLIEST_PANE_US
    return frontier_us - job.retain_us - longest_us(regimes, window)


def _below(
    touched: Iterable[StartSpan], frontier_us: int | None, retain_us: int
) -> Iterator[StartSpan]:
    """Yield what was touched below the frontier."""
    if frontier_us is None:
        return
    least_us = frontier_us - retain_us
    for span in touched:
        if span.first_us <= frontier_us and span.last_us >= least_us:
            yield span._replace(
                first_us=max(span.first_us, least_us), last_us=min(span.last_us, frontier_us)
            )


def _touched(regimes: FleetRegimes, sent: SentPanes) -> Iterator[LookedStarts]:
    """Yield the starts of the windows that a pane is part of, where it means something."""
    found: dict[tuple[str, str], set[Span]] = defaultdict(set)
    for stream, entries in sent.items():
        window = regimes.window_of(stream)
        for key, device, pane_us in entries if window is not None else ():
            piece = regimes.piece_of(device, stream, pane_us)
            if window is None or piece is None or window.is_fixed:
                continue
            for form in regimes.of(window.name).forms:
                reach_us = form.size_us - form.span_us
                first_us = max(pane_us - reach_us, form.from_us)
                last_us = min(pane_us, form.until_us - 1)
                alike = (form.span_us, form.meant) == (piece.span_us, piece.meant)
                if alike and first_us <= last_us:
                    found[window.name, key].add(Span(first_us, last_us))
    for (name, key), several in sorted(found.items()):
        for span in spans.joined(several, most=_MOST_SPANS):
            yield LookedStarts(name, key, *span, IF_HELD_BY_SOME)


def _passed(
    job: Job, regimes: FleetRegimes, before: spans.PassedFrontier, after_us: int | None
) -> Iterator[LookedStarts]:
    """Yield the starts of the windows that the frontier has passed.

    Those that were not due yet have no row so far, where windows wait at all.
    """
    for name in regimes.changing:
        before_us = before.of(name)
        if after_us is None or after_us == before_us:
            continue
        first_us = EARLIEST_PANE_US
        if before_us is not None:
            first_us = before_us - longest_us(regimes, name)
        for needs in (IF_OPEN, IF_NEW) if job.waits[name] else (IF_OPEN,):
            yield LookedStarts(name, None, first_us, after_us, needs)


def _due(
    regimes: FleetRegimes, due: Mapping[str, tuple[int | None, int | None]]
) -> Iterator[LookedStarts]:
    for name, (before_us, after_us) in due.items():
        if name not in regimes.changing or after_us is None or after_us == before_us:
            continue
        first_us = EARLIEST_PANE_US
        if before_us is not None:
            first_us = before_us - longest_us(regimes, name)
        yield LookedStarts(name, None, first_us, after_us, IF_NEW)


def _released(job: Job, state: ControlState, promised_us: int | None) -> Iterator[LookedStarts]:
    for span in state.held:
        bounds_us = (promised_us, due_anew_us(job, state, span.window))
        known_us = [each for each in bounds_us if each is not None]
        if not known_us:
            continue
        last_us = min(span.last_us, max(known_us))
        if span.first_us <= last_us:
            yield LookedStarts(*_all_keys(span._replace(last_us=last_us)))
            beside_us = longest_us(state.regimes, span.window)
            wide = StartSpan(span.window, span.first_us - beside_us, last_us + beside_us)
            yield LookedStarts(*_all_keys(wide), IF_HELD_BY_SOME)


def _all_keys(span: StartSpan) -> tuple[str, None, int, int]:
    return span.window, None, span.first_us, span.last_us


def _held_rows(state: ControlState) -> pa.Table:
    """Return rows of `lattice`: what is held, so that a job that starts anew knows it."""
    absent = dict.fromkeys(LANDED) | dict(ABSENT)
    rows = [
        absent
        | {
            "kind": HELD,
            "key": span.window,
            "pane_us": span.first_us,
            "now_us": span.last_us,
            "seq": state.generation,
            "received_us": 0,
        }
        for span in state.held
    ]
    schema = arrow_schema(LANDED).append(pa.field(PANE_DATE, pa.date32()))
    return pa.Table.from_pylist([row | {PANE_DATE: date(1970, 1, 1)} for row in rows], schema)
