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

import json
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cloud_tier.job import control, dynamic, merge, sifting, windows
from cloud_tier.job.batch import TELLING, append, append_joined
from cloud_tier.job.control import ControlState
from cloud_tier.job.finality import StepFinality, become_due, clock_us, finality_of
from cloud_tier.job.formed import StepWindows
from cloud_tier.job.frames import frames, most_rows
from cloud_tier.job.job import Job
from cloud_tier.job.results import Frontiers, append_results
from cloud_tier.job.starts import StepBounds, starts_of_step, too_late
from cloud_tier.lake.coverage import (
    liveness_of,
    passed_frontiers,
    promised_steps,
    recorded_frontier,
)
from cloud_tier.lake.sqltext import identifier, one_of, standard_identifier
from cloud_tier.lake.tables import CONTROL, MEMBER, PANE, VARIABLE
from crdts import Membership
from lasp_edge.protocol import spans
from lasp_edge.protocol.frontier import Coverage, Liveness
from lasp_edge.protocol.lake_columns import LANDED, REPLACED
from lasp_edge.protocol.waiting import WindowWaiting

_ENTRY: Final = (*merge.ENTRY_IDENTITY, "seq", *REPLACED)
_MOST_REPEATED: Final = 4
"""Times that a row is there on average, up to which repeats are read and left out by the driver."""
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
    steps = promised_steps(summary.told, known.liveness.promises.entries)
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
    job, starts = step_windows.job, step_windows.starts_by_window
    frontier, needed = finality.coverage.frontier, step_windows.needed
    panes, written = _read_windows(job, starts, needed)
    is_few = panes is not None and panes.num_rows * step_windows.slides <= _MOST_PLACED
    few = is_few and written is not None
    with frames(spark, few=few) as made:
        if few:
            stored, before = made.rows(panes), made.rows(written)
        else:
            stored = read(spark, job.lake.lattice).where(needed)
            before = read(spark, job.lake.windows).where(windows.written(starts, standard=False))
        rows = windows.recomputed(made, stored, before, step_windows, finality)
        if not few:
            return append(rows, job.lake.windows, json.dumps({"frontier": frontier}))
        revised = rows.toArrow()
    job.tables.append(job.lake.windows, revised, frontier)
    return int(revised.num_rows)


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
    entries = _newest(job, columns, touched.where(), merge.SHARD, ("incarnation", "nonce", "seq"))
    before = known.current_rows
    if not known.complete:
        keys = None if entries is None else set(entries["key"].to_pylist()) - {None}
        before = {**_looked_up(job, before, keys), **before}
    current = touched.rows(job.folds, before)
    if entries is not None:
        entries, current = sifting.changed_keys(entries, job.folds, membership, current)
        if not entries.num_rows and not current:
            return {}
    with frames(spark, few=entries is not None) as made:
        if entries is not None:
            stored = made.rows(entries)
        else:
            stored = read(spark, job.lake.lattice).where(touched.where())
        standing = merge.standing(stored.select(*_ENTRY, *map(identifier, job.names)))
        newest = merge.newest(standing, job.names, merge.ENTRY_IDENTITY, ("seq", "changed"))
        values = dynamic.values(newest, job.folds, membership)
        rows = made.rows(dynamic.table_of(current))
        revised = dynamic.revisions(values, rows, job.folds, membership).toArrow()
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
    told = told_of_devices(job)
    log = control.stored_control(job, told)
    liveness = liveness_of(told, log.control)
    waiting = WindowWaiting.of(job.waits.values()).joined(promised_steps(told), None)
    frontier = recorded_frontier(job.lake)
    known = passed_frontiers(job.lake)
    less = {name: known.get(name) for name in job.plan.windows if known.get(name) != frontier}
    passed = spans.PassedFrontier(frontier, less) if less else None
    state = MergedState(frontier, liveness, waiting=waiting, control=log, passed=passed)
    return _state(state.frontier, liveness, state, rows)


def told_of_devices(job: Job) -> list[dict[str, Any]]:
    """Return the merged rows that tell which devices there are and how far they have come."""
    found: list[dict[str, Any]]
    found = _select(job, job.lake.lattice, LANDED, one_of("kind", TELLING)).to_pylist()
    return found


def read(spark: SparkSession, path: str) -> DataFrame:
    """Return a table of the lake."""
    return spark.read.format("delta").load(path)


def _read_windows(
    job: Job, starts: spans.Starts, needed: str
) -> tuple[pa.Table | None, pa.Table | None]:
    """Return the panes of windows and the rows that they have, None where there are many."""
    columns = [*merge.PANE_IDENTITY, "seq", *REPLACED, *job.names]
    panes = _newest(job, columns, needed, merge.PANE_IDENTITY, ["seq"])
    if panes is None:
        return None, None
    columns = windows.read_columns(job.columns)
    written = windows.written(starts, standard=True)
    rows = _select(job, job.lake.windows, columns, f"{written} LIMIT {most_rows() + 1}")
    return panes, None if rows.num_rows > most_rows() else rows


def _newest(
    job: Job, columns: Iterable[str], where: str, entry: Sequence[str], order: Sequence[str]
) -> pa.Table | None:
    """Return rows of `lattice` without those that a newer one replaces, None if there are many."""
    most = _MOST_REPEATED * most_rows()
    found = _select(job, job.lake.lattice, columns, f"{where} LIMIT {most + 1}")
    if found.num_rows > most:
        return None
    kept = sifting.newest(found, entry, order)
    return None if kept.num_rows > most_rows() else kept


def _select(job: Job, path: str, columns: Iterable[str], where: str) -> pa.Table:
    named = ", ".join(map(standard_identifier, columns))
    return job.tables.select(path, f"SELECT {named} FROM source WHERE {where}")  # noqa: S608
