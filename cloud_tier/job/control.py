"""The log of parameters, as a job has merged it, and the starts of windows that wait for it.

A batch that brings entries of the control log plans the windows again. The starts that an entry
touches below the frontier are held, as at a gateway: rows stay as they are until all devices that
are waited for have promised past them under the new log, and then each row that differs is revised
once. G is how far they have promised; it goes back, and F does not.

The held starts are written to `lattice` before the entries that they are about. So a job that dies
between the two holds more than it must, for as long as nobody promises, and never less.

Nobody can change the windows of a program without parameters: its log stays empty.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import partial
from typing import Any, NamedTuple, Self

import pyarrow as pa

from cloud_tier.job.job import Job
from cloud_tier.lake import promises
from cloud_tier.lake.controls import log_of, stored_log
from cloud_tier.lake.tables import ABSENT, HELD, arrow_schema
from crdts import ControlLog
from crdts.frontier import BOTTOM_US
from lasp_edge.errors import UsageError
from lasp_edge.language.fleet_regimes import FleetRegimes, StartSpan
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.frontier import Liveness, advance
from lasp_edge.protocol.lake_columns import LANDED, PANE_DATE
from lasp_edge.protocol.waiting import Step, WindowWaiting


class ControlState(NamedTuple):
    """The log of the parameters, and the starts that wait for it.

    Attributes:
        regimes: the meaning of panes under the log.
        held: the starts that wait.
        generation: how often starts were held.
        waiting: since when windows wait for promises under the present log.
    """

    regimes: FleetRegimes
    held: tuple[StartSpan, ...] = ()
    generation: int = 0
    waiting: WindowWaiting = WindowWaiting.of(())

    @classmethod
    def of(cls, job: Job) -> Self:
        """Return the state before any entry."""
        return cls(FleetRegimes(job.plan), waiting=_waiting(job))

    @property
    def digest(self) -> int | None:
        """The digest of the log; None where nobody can change anything."""
        return self.regimes.control if self.regimes.parameters else None


def check_functions(plan: Plan, *, steps_run_here: bool) -> None:
    """Check that the process of the steps has the functions that it asks.

    They choose the folds of windows, and make the rows of an order over the fleet. Only devices ask
    the others. A plan that goes to a server of Spark Connect leaves all functions behind.

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
    if plan.fleet_results and not steps_run_here:
        raise UsageError(
            f"{', '.join(plan.fleet_results)} is in one order over the fleet, and the functions "
            "of its scan are not at a server of Spark Connect: give --master a cluster, not sc://"
        )


def stored_control(job: Job) -> ControlState:
    """Return the state that a lake has stored."""
    if not job.has_parameters:
        return ControlState.of(job)
    log = stored_log(job.tables.table(job.lake.lattice)) or ControlLog()
    query = f"SELECT key, pane_us, now_us, seq FROM source WHERE kind = '{HELD}'"  # noqa: S608
    rows = job.tables.select(job.lake.lattice, query).to_pylist()
    newest = max((row["seq"] for row in rows), default=0)
    held = {
        StartSpan(row["key"], row["pane_us"], row["now_us"]) for row in rows if row["seq"] == newest
    }
    regimes = FleetRegimes(job.plan, log)
    steps = promises.steps(
        partial(job.tables.select, job.lake.lattice), job.waits.values(), regimes.control
    )
    return ControlState(regimes, tuple(sorted(held)), newest, _waiting(job).joined(steps, None))


def joined_log(
    job: Job,
    known: ControlState,
    frontier_us: int | None,
    rows: Iterable[Mapping[str, Any]],
) -> ControlState:
    """Return the state after the entries of a batch, whose touched starts are held, and written.

    Args:
        job: the program over the lake.
        known: the state before.
        frontier_us: before the batch.
        rows: of the batch, at least those of the kind `control`.
    """
    entries = log_of(rows)
    if entries <= known.regimes.log:
        return known
    regimes = FleetRegimes(job.plan, known.regimes.log.copy())
    regimes.hear(entries)
    touched = _below(regimes, frontier_us, job.retain_us)
    held = tuple(sorted({*known.held, *touched}))
    made = ControlState(regimes, held, known.generation + 1, _waiting(job))
    job.tables.append(job.lake.lattice, _held_rows(made))
    return made


def liveness_under(before: ControlState, after: ControlState, liveness: Liveness) -> Liveness:
    """Return how far devices have come once the log has changed: their promises are void then."""
    return liveness if after.digest == before.digest else liveness.voided()


def joined_promises(state: ControlState, steps: Iterable[Step], now_us: int | None) -> ControlState:
    """Return the state after promises under its log."""
    return state._replace(waiting=state.waiting.joined(steps, now_us))


def promised_under_log(job: Job, state: ControlState, liveness: Liveness) -> int | None:
    """Return G: how far all that are waited for have promised.

    None where that is nowhere, and where no start is held until then.
    """
    if not state.held:
        return None
    terms = (liveness, job.roster, job.dead_after_us, job.listen_us)
    return advance(BOTTOM_US, *terms).frontier


def due_under_log_us(job: Job, state: ControlState, window: str) -> int | None:
    """Return the end up to which held windows are revised, with devices missing or not."""
    wait_us = job.waits[window]
    return state.waiting.due_us(wait_us) if wait_us else None


def _waiting(job: Job) -> WindowWaiting:
    return WindowWaiting.of(job.waits.values())


def released(state: ControlState, promised_us: int | None) -> ControlState:
    """Return the state in which nothing is held that all have promised past."""
    if promised_us is None:
        return state
    kept = []
    for span in state.held:
        first_us = max(span.first_us, promised_us - state.regimes.of(span.window).longest_us)
        if first_us <= span.last_us:
            kept.append(span._replace(first_us=first_us))
    return state._replace(held=tuple(kept))


def _below(regimes: FleetRegimes, frontier_us: int | None, retain_us: int) -> Iterator[StartSpan]:
    """Yield the touched starts below the frontier, from the least one that is recomputed."""
    touched = regimes.take_touched()
    if frontier_us is None:
        return
    for span in touched:
        least_us = frontier_us - retain_us - regimes.of(span.window).longest_us
        if span.first_us <= frontier_us and span.last_us >= least_us:
            yield span._replace(
                first_us=max(span.first_us, least_us), last_us=min(span.last_us, frontier_us)
            )


def _held_rows(state: ControlState) -> pa.Table:
    """Return rows of `lattice`: the held starts, for a job that starts again."""
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
