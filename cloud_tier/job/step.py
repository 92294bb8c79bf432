"""One micro-batch: join, frontier, windows, globals. Each part is a join or appends what differs.

    1 append the batch to `lattice`                                  one commit
    2 the frontier, from all promises, ticks and member commands
      that were merged
    3 rows of results: touched ones and those that F has passed    a commit for some thousand rows
    4 windows: touched ones, due ones and those that F has passed;
      what differs is appended, with F in the same commit           at most one commit
    5 globals, where variables or member commands came in          at most one commit

So a batch that dies between two commits is simply done again: what was appended to `lattice`
joins to the same, touched are the panes of all input rows, new or not, and F is recorded by the
commit that made windows final, after those of the results. Nothing here reads a clock or draws a
random number. What a step must know of earlier ones is in the tables; `MergedState` is the small
part of it that the driver keeps between steps, replaced only after the commits returned, and read
back at every start of a query.
"""

from types import MappingProxyType
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from cloud_tier.job import control, dynamic, merge, prefilter, stored, windows
from cloud_tier.job.batch import append_joined
from cloud_tier.job.control import ControlState
from cloud_tier.job.finality import StepFinality, become_due, clock_us, finality_of
from cloud_tier.job.formed import StepWindows
from cloud_tier.job.frames import frames
from cloud_tier.job.job import Job
from cloud_tier.job.results import Frontiers, append_results
from cloud_tier.job.starts import StepBounds, starts_of_step, too_late
from cloud_tier.lake.coverage import (
    liveness_of,
    passed_frontiers,
    promised_steps,
    recorded_frontier,
)
from cloud_tier.lake.sqltext import identifier
from cloud_tier.lake.tables import CONTROL, MEMBER, PANE, VARIABLE
from crdts import Membership
from lasp_edge.protocol import spans
from lasp_edge.protocol.frontier import Coverage, Liveness
from lasp_edge.protocol.lake_columns import REPLACED
from lasp_edge.protocol.waiting import WindowWaiting

_ENTRY: Final = (*merge.ENTRY_IDENTITY, "seq", *REPLACED)
_MOST_PLACED: Final = 500_000
"""Panes times windows that hold one, up to which one task without generated code computes them."""


class MergedState(NamedTuple):
    """What is merged already, as far as the driver needs it.

    Attributes:
        frontier: F; None is bottom.
        liveness: every promise and tick, and who was retired.
        current_rows: the newest rows of `globals`.
        complete: whether these are all of them (`dynamic.remembered`).
        rows_frontier: F of the last step of this process, which has made all rows of results before
            it final; None at its start.
        control: the log of parameters, and the starts that wait for it; None before any.
        waiting: since when windows wait, and which were due in the last step of this process; at
            its start none was, so the first step looks at all that are not final.
        passed: at a start, which windows the frontier has passed, as a job of a former program may
            have moved it; None later.
    """

    frontier: int | None
    liveness: Liveness
    current_rows: dynamic.CurrentRows = MappingProxyType({})
    complete: bool = True
    rows_frontier: int | None = None
    control: ControlState | None = None
    waiting: WindowWaiting | None = None
    passed: spans.PassedFrontier | None = None

    @property
    def before(self) -> spans.PassedFrontier:
        """Which windows the frontier has passed so far."""
        return self.passed or spans.PassedFrontier(self.frontier)


class Outcome(NamedTuple):
    """What a step did.

    Attributes:
        known: what the next step is given.
        coverage: the frontier now, and over whom.
        rows: how many rows came in, after the join inside the batch.
        panes: how many of them are pane rows.
        variables: how many of them are rows of variables, or what operators said.
        windows: how many window rows were appended.
        globals: how many rows of dynamic folds were appended.
        too_late: how many rows of panes came so late that a window of theirs stays as it is.
        results: how many rows of results were appended.
    """

    known: MergedState
    coverage: Coverage
    rows: int = 0
    panes: int = 0
    variables: int = 0
    windows: int = 0
    globals: int = 0
    too_late: int = 0
    results: int = 0


def step(batch: DataFrame, batch_id: int, job: Job, known: MergedState) -> Outcome:
    """Merge a batch of landing rows into the lake.

    Args:
        batch: rows of `landing`, perhaps none, perhaps rows that were merged before.
        batch_id: the streaming query's number for it; it changes nothing.
        job: the program over the lake.
        known: what the last step returned, or `recalled` at a start.
    """
    del batch_id
    log = known.control or ControlState.of(job)
    summary = append_joined(batch, job, log, known.frontier)
    kept = control.liveness_under(log, summary.control, known.liveness)
    liveness = kept.joined(summary.liveness)
    before = known.waiting or WindowWaiting.of(job.waits.values())
    steps = promised_steps(summary.device_rows, known.liveness.promises.entries)
    now_us = clock_us(job, known.frontier, liveness)
    waiting = before.joined(steps, now_us)
    state = control.joined_promises(summary.control, steps, now_us)
    finality = finality_of(job, known.frontier, liveness, waiting)
    coverage = finality.coverage
    rows = append_results(job, summary.panes_us, Frontiers(known.rows_frontier, coverage.frontier))
    promised_us = control.promised_under_log(job, state, liveness)
    due = become_due(job, before, waiting)
    bounds = StepBounds(known.before, coverage.frontier, promised_us, due)
    starts = starts_of_step(job, state, summary.panes_us, summary.sent, bounds)
    step_windows = StepWindows(job, state, starts, promised_us)
    appended = append_windows(batch.sparkSession, step_windows, finality)
    members = summary.rows.get(MEMBER, 0)
    touched = dynamic.touched(job.folds, summary.shards, everything=members > 0)
    news = append_globals(batch.sparkSession, job, liveness.membership, known, touched)
    return Outcome(
        _state(coverage.frontier, liveness, known, news)._replace(
            rows_frontier=coverage.frontier if job.results else None,
            waiting=waiting,
            passed=None,
            control=control.released(state, promised_us),
        ),
        coverage,
        sum(summary.rows.values()),
        summary.rows.get(PANE, 0),
        summary.rows.get(VARIABLE, 0) + members + summary.rows.get(CONTROL, 0),
        appended,
        len(news),
        too_late(job, state.regimes, summary.panes_us, known.frontier),
        rows,
    )


def _state(
    frontier: int | None, liveness: Liveness, before: MergedState, news: dynamic.CurrentRows
) -> MergedState:
    if not news:
        return before._replace(frontier=frontier, liveness=liveness)
    rows = {**before.current_rows, **news}
    kept = dynamic.remembered(rows)
    complete = before.complete and len(kept) == len(rows)
    return before._replace(
        frontier=frontier, liveness=liveness, current_rows=kept, complete=complete
    )


def append_windows(spark: SparkSession, step_windows: StepWindows, finality: StepFinality) -> int:
    """Recompute windows, append the rows that differ, and return how many did.

    Args:
        spark: a session.
        step_windows: the windows.
        finality: how sure they are.
    """
    if not step_windows.starts:
        return 0
    job, frontier = step_windows.job, finality.coverage.frontier
    panes = stored.panes(job, step_windows.needed)
    placed = None if panes.few is None else panes.few.num_rows * step_windows.slides
    is_small = placed is not None and placed <= _MOST_PLACED
    written = stored.window_rows(job, step_windows.starts_by_window, may_be_few=is_small)
    with frames(spark, few=written.few is not None) as made:
        rows = windows.recomputed(
            made, panes.frame(made), written.frame(made), step_windows, finality
        )
        return stored.append_windows(made, job, rows, frontier)


def append_globals(
    spark: SparkSession,
    job: Job,
    membership: Membership,
    known: MergedState,
    touched: dynamic.Touched,
) -> dynamic.CurrentRows:
    """Recompute the dynamic folds, append what differs, and return what was appended.

    Args:
        spark: a session.
        job: the program over the lake.
        membership: who was retired.
        known: what is merged already.
        touched: the entries that are looked at.
    """
    if not touched.shards:
        return {}
    columns = [*_ENTRY, *job.names]
    version = ("incarnation", "nonce", "seq")
    entries = stored.newest(job, columns, touched.where(), merge.SHARD, version)
    before = known.current_rows
    if not known.complete:
        keys = None if entries.few is None else set(entries.few["key"].to_pylist()) - {None}
        before = {**_looked_up(job, before, keys), **before}
    current = touched.rows(job.folds, before)
    if entries.few is not None:
        few, current = prefilter.changed_keys(entries.few, job.folds, membership, current)
        if not few.num_rows and not current:
            return {}
        entries = entries._replace(few=few)
    with frames(spark, few=entries.few is not None) as made:
        rows = entries.frame(made).select(*_ENTRY, *map(identifier, job.names))
        standing = merge.standing(rows)
        newest = merge.newest(standing, job.names, merge.ENTRY_IDENTITY, ("seq", "changed"))
        values = dynamic.values(newest, job.folds, membership)
        known_rows = made.rows(dynamic.table_of(current))
        revised = dynamic.revisions(values, known_rows, job.folds, membership).toArrow()
    job.tables.append(job.lake.globals, revised)
    return dynamic.current_rows(revised)


def _looked_up(job: Job, known: dynamic.CurrentRows, keys: set[str] | None) -> dynamic.CurrentRows:
    """Return the newest rows of keys, None for all, of which some are not known."""
    missing = None if keys is None else keys - {key for _, key in known}
    if missing is not None and not missing:
        return {}
    return dynamic.current_rows(
        job.tables.select(job.lake.globals, dynamic.current(job.folds, missing))
    )


def recalled(job: Job) -> MergedState:
    """Return what the tables know: what a query starts with."""
    rows: dynamic.CurrentRows = {}
    if job.folds:
        newest = job.tables.select(job.lake.globals, dynamic.current(job.folds))
        rows = dynamic.current_rows(newest)
    rows_of_devices = stored.device_rows(job)
    log = control.stored_control(job, rows_of_devices)
    liveness = liveness_of(rows_of_devices, log.control)
    waiting = WindowWaiting.of(job.waits.values()).joined(promised_steps(rows_of_devices), None)
    frontier = recorded_frontier(job.lake)
    known = passed_frontiers(job.lake)
    less = {name: known.get(name) for name in job.plan.windows if known.get(name) != frontier}
    passed = spans.PassedFrontier(frontier, less) if less else None
    state = MergedState(frontier, liveness, waiting=waiting, control=log, passed=passed)
    return _state(state.frontier, liveness, state, rows)
