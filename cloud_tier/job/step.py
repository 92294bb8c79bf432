"""One micro-batch: join, frontier, windows, globals. Each part is a join or appends what differs.

    1 append the batch to `lattice`                                  one commit
    2 the frontier, from all promises, ticks and member commands
      that were merged
    3 rows of results: touched ones and those that F has passed    a commit for some thousand rows
      and those of streams over the fleet; then, perhaps, a cut    one commit
    4 windows: touched ones, due ones and those that F has passed;
      what differs is appended, with F in the same commit           at most one commit
    5 globals, where variables or member commands came in          at most one commit

So a batch that dies between two commits is simply done again: what was appended to `lattice`
joins to the same, touched are the panes of all input rows, new or not, and F is recorded by the
commit that made windows final, after those of the results. Nothing here draws a random number, and
a clock is read only to doubt a lander's that is ahead of it. What a step must know of earlier ones
is in the tables; `MergedState` is the small part of it that the driver keeps between steps,
replaced only after the commits returned, and read back at every start of a query.
"""

from types import MappingProxyType
from typing import Final, NamedTuple, Self

from pyspark.sql import DataFrame, SparkSession

from cloud_tier.job import control, dynamic, merge, prefilter, stored, windows
from cloud_tier.job.batch import BatchSummary, BeforeBatch, append_joined
from cloud_tier.job.bookmark import Bookmark, known_values, stored_bookmark
from cloud_tier.job.control import ControlState
from cloud_tier.job.finality import StepFinality, become_due, clock_us, finality_of
from cloud_tier.job.formed import StepWindows
from cloud_tier.job.frames import frames
from cloud_tier.job.job import Job
from cloud_tier.job.lives import DeviceLives
from cloud_tier.job.renamed import renamed_windows
from cloud_tier.job.results import Frontiers, append_results
from cloud_tier.job.starts import StepBounds, starts_of_step, too_late
from cloud_tier.job.streams import LakeStreams, StepFrontier, streams_of
from cloud_tier.lake.coverage import (
    liveness_of,
    passed_frontiers,
    promised_steps,
    recorded_frontier,
)
from cloud_tier.lake.sqltext import identifier
from cloud_tier.lake.tables import CONTROL, MEMBER, PANE, VARIABLE
from crdts import Membership
from lasp_edge.evaluation.fleet import is_over
from lasp_edge.evaluation.parted import promises_of
from lasp_edge.protocol import spans
from lasp_edge.protocol.frontier import NOTHING_HEARD, Coverage, Liveness, caught_up
from lasp_edge.protocol.lake_columns import REPLACED
from lasp_edge.protocol.limits import EARLIEST_PANE_US, LATEST_PANE_US
from lasp_edge.protocol.lost_stores import grown, made_since, unvoided
from lasp_edge.protocol.waiting import WindowWaiting

_ENTRY: Final = (*merge.ENTRY_IDENTITY, "seq", *REPLACED)
_MOST_PLACED: Final = 500_000
"""Panes times windows that hold one, up to which one task without generated code computes them."""


class MergedState(NamedTuple):
    """The merged state, as far as the driver needs it.

    Attributes:
        frontier: F; None is bottom.
        liveness: every promise and tick, and the member commands.
        control: the log of parameters, and the starts that wait for promises under it.
        lives: of devices, before their present ones.
        waiting: since when windows wait, and which were due in the last step of this process; at
            its start none was, so the first step looks at all that are not final.
        current_rows: the newest rows of `globals`.
        complete: whether these are all of them (`dynamic.remembered`).
        rows_frontier: F of the last step of this process, which has made all rows of results before
            it final; None at its start.
        passed: at a start, which windows the frontier has passed, as a job of a former program may
            have moved it; None later.
        streams: those over the fleet, as this process has evaluated them; None without any.
        is_first: nothing was merged by this process: one before may have died in a step.
    """

    frontier: int | None
    liveness: Liveness
    control: ControlState
    lives: DeviceLives
    waiting: WindowWaiting
    current_rows: dynamic.CurrentRows = MappingProxyType({})
    complete: bool = True
    rows_frontier: int | None = None
    passed: spans.PassedFrontier | None = None
    streams: LakeStreams | None = None
    is_first: bool = True

    @classmethod
    def of(cls, job: Job) -> Self:
        """Return the state of a lake into which nothing was merged."""
        waiting = WindowWaiting.of(job.waits_us)
        state = (None, NOTHING_HEARD, ControlState.of(job), DeviceLives(), waiting)
        return cls(*state, streams=streams_of(job))

    @property
    def before(self) -> spans.PassedFrontier:
        """Which windows the frontier has passed so far."""
        return self.passed or spans.PassedFrontier(self.frontier)


class Outcome(NamedTuple):
    """The outcome of a step.

    Attributes:
        known: the merged state, for the next step.
        coverage: the frontier now, and over whom.
        rows: how many rows came in, after the join inside the batch.
        panes: how many of them are pane rows.
        variables: how many of them are rows of variables, or operators' commands and entries.
        windows: how many window rows were appended.
        globals: how many rows of dynamic folds were appended.
        too_late: how many rows of panes came so late that a window of theirs stays as it is.
        results: how many rows of results were appended.
        seconds: how long it took.
        unanswered: scans with local events of whose events in order devices have answered none.
        stalls: scans with local events that stand, or go on without a part that is refused.
        holding: who holds the frontier while another device has promised more.
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
    seconds: float = 0.0
    unanswered: tuple[str, ...] = ()
    stalls: tuple[str, ...] = ()
    holding: tuple[str, ...] = ()


def step(batch: DataFrame, batch_id: int, job: Job, known: MergedState) -> Outcome:
    """Merge a batch of landing rows into the lake.

    Args:
        batch: rows of `landing`, perhaps none, perhaps rows that were merged before.
        batch_id: the streaming query's number for it; it changes nothing.
        job: the program over the lake.
        known: what the last step returned, or `recalled` at a start.
    """
    del batch_id
    spark = batch.sparkSession
    summary = append_joined(
        batch, job, BeforeBatch(known.frontier, known.liveness, known.control, known.lives)
    )
    now = _joined(job, known, summary)
    before = {} if known.is_first else known.lives.lost  # else all that was known is written
    terms = (now.liveness, now.waiting, now.lives, before)
    finality = finality_of(job, known.frontier, *terms)
    frontiers = Frontiers(known.rows_frontier, finality.coverage.frontier)
    results = append_results(job, summary.panes_us, frontiers)
    results += _append_streamed(job, known, now, summary, finality)
    recomputed = _recomputed(job, known, now, summary, finality)
    appended = append_windows(spark, recomputed, finality)
    members = summary.rows.get(MEMBER, 0)
    touched = dynamic.touched(job.folds, summary.shards, everything=members > 0)
    news = append_globals(spark, job, now.liveness.membership, known, touched)
    after = now._replace(
        frontier=finality.coverage.frontier,
        rows_frontier=finality.coverage.frontier if job.results else None,
        passed=None,
        is_first=False,
        control=control.released(now.control, recomputed.promised_us),
    )
    return Outcome(
        _with_rows(after, news),
        finality.coverage,
        rows=sum(summary.rows.values()),
        panes=summary.rows.get(PANE, 0),
        variables=summary.rows.get(VARIABLE, 0) + members + summary.rows.get(CONTROL, 0),
        windows=appended,
        globals=len(news),
        too_late=_too_late(job, known, now, summary),
        results=results,
        unanswered=() if known.streams is None else known.streams.unanswered,
        stalls=() if known.streams is None else tuple(known.streams.stalls.words()),
        holding=finality.awaited.far_behind,
    )


def _append_streamed(
    job: Job, known: MergedState, now: MergedState, summary: BatchSummary, finality: StepFinality
) -> int:
    """Evaluate the streams over the fleet, and append the rows that differ; return how many did."""
    if known.streams is None:
        return 0
    due_us, coverage = now.waiting.due_us(job.tentative_after_us), finality.coverage
    frontier = StepFrontier(
        known.frontier,
        coverage.frontier,
        due_us,
        is_over(now.liveness.promises.entries, coverage),
        promises_of(now.liveness.promises.entries, coverage),
        due_us if job.tentative_after_us else None,
        finality.awaited,
        unvoided(now.liveness),
        _caught_up(job, known, now, known.streams.frontier_us),
        0 if now.liveness.listening is None else now.liveness.listening.now_us,
        finality.lacking,
    )
    return known.streams.advance(summary.panes_us, frontier)


def _too_late(job: Job, known: MergedState, now: MergedState, summary: BatchSummary) -> int:
    """Return how many rows of panes came too late for what is made of them."""
    of_streams = 0 if known.streams is None else known.streams.too_late
    return of_streams + too_late(job, now.control.regimes, summary.panes_us, known.frontier)


def _joined(job: Job, known: MergedState, summary: BatchSummary) -> MergedState:
    """Return the state after a batch's promises, ticks, member commands and control entries."""
    kept = control.liveness_under(known.control, summary.control, known.liveness)
    liveness = kept.joined(summary.liveness)
    before = kept._replace(furthest_us=liveness.furthest_us)  # with those of the batch
    furthest_us = before.furthest_with(liveness.promises, summary.liveness.promises.entries)
    liveness = liveness._replace(furthest_us=furthest_us)
    steps = promised_steps(summary.device_rows, known.liveness.promises.entries)
    now_us = clock_us(job, known.frontier, liveness)
    return known._replace(
        liveness=liveness,
        lives=summary.lives,
        waiting=known.waiting.joined(steps, now_us),
        control=control.joined_promises(summary.control, steps, now_us),
    )


def _recomputed(
    job: Job, known: MergedState, now: MergedState, summary: BatchSummary, finality: StepFinality
) -> StepWindows:
    """Return the windows that a batch may have changed, or that the time has."""
    promised_us = control.promised_under_log(job, now.control, now.liveness)
    due = become_due(job, known.waiting, now.waiting)
    bounds = StepBounds(known.before, finality.coverage.frontier, promised_us, due)
    starts = starts_of_step(job, now.control, summary.panes_us, summary.sent, bounds)
    liveness, lacking = now.liveness, finality.lacking
    terms = (job.roster, job.dead_after_us)
    ends_us = caught_up(known.liveness, liveness, *terms, known.frontier)
    if known.frontier is not None and (known.is_first or now.control.held):
        ends_us = range(EARLIEST_PANE_US, known.frontier + 1)
        lacking = lacking._replace(grown=grown({}, now.lives.lost, now.lives.earlier))
    regimes = now.control.regimes
    made_us = made_since(known.lives.begun, now.lives.begun).stop
    sure = finality._replace(lacking=lacking)
    renamed = renamed_windows(job, regimes, liveness, sure, (ends_us, made_us), known.frontier)
    return StepWindows(job, now.control, [*starts, *renamed.starts], promised_us, renamed)


def _caught_up(job: Job, known: MergedState, now: MergedState, rows_us: int | None) -> range:
    """Return the ends of windows that devices have promised past since F has passed them.

    At a start all of them: the process before may have died with such a promise.

    Args:
        job: the program over the lake.
        known: what was known before the step.
        now: what is known in it.
        rows_us: how far rows in order are final, which may be behind F once all are done.
    """
    if known.is_first:
        return range(EARLIEST_PANE_US, LATEST_PANE_US)
    passed_us = [each for each in (known.frontier, rows_us) if each is not None]
    terms = (job.roster, job.dead_after_us)
    return caught_up(known.liveness, now.liveness, *terms, max(passed_us, default=None))


def _with_rows(state: MergedState, news: dynamic.CurrentRows) -> MergedState:
    """Return the state with the rows that were appended to `globals`."""
    if not news:
        return state
    rows = {**state.current_rows, **news}
    kept = dynamic.remembered(rows)
    complete = state.complete and len(kept) == len(rows)
    return state._replace(current_rows=kept, complete=complete)


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
    if panes.are_none and written.are_none:
        return 0  # most steps of a fleet that measures nothing, of which Spark would make no row
    with frames(spark, few=written.few is not None) as made:
        rows = windows.recomputed(
            made, panes.rows(made), written.rows(made), step_windows, finality
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
        membership: the retired devices, among others.
        known: the merged state before.
        touched: the entries that may have changed.
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
        rows = entries.rows(made).select(*_ENTRY, *map(identifier, job.names))
        standing = merge.standing(rows)
        newest = merge.newest(standing, job.names, merge.ENTRY_IDENTITY, ("seq", "changed"))
        values = dynamic.values(made, newest, job.folds, membership)
        known_rows = made.rows(dynamic.table_of(current))
        revised = dynamic.revisions(values, known_rows, job.folds, membership).frame().toArrow()
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
    """Return what the tables know: what a query starts with. From now on they are this driver's."""
    job.tables.claim()
    bookmark = stored_bookmark(job)
    rows, complete = known_values(job, bookmark)
    rows_of_devices = stored.device_rows(job)
    log = control.stored_control(job)
    liveness = liveness_of(rows_of_devices, log.digest)
    waiting = WindowWaiting.of(job.waits_us).joined(stored.steps(job), None)
    frontier = recorded_frontier(job.lake)
    known_state = MergedState(
        frontier,
        liveness,
        log,
        DeviceLives.of(rows_of_devices),
        waiting,
        complete=complete,
        rows_frontier=_rows_frontier(job, bookmark),
        passed=_passed(job, bookmark, frontier),
        streams=streams_of(job),
    )
    return _with_rows(known_state, rows)


def _passed(job: Job, bookmark: Bookmark, frontier: int | None) -> spans.PassedFrontier | None:
    """Return which windows the frontier has passed, where that is less for some of them."""
    streams = {window.stream: name for name, window in job.plan.windows.items()}
    noted = bookmark.passed(job.lake.windows, streams)
    marked = {streams[stream]: at_us for stream, at_us in noted.items() if at_us is not None}
    known = passed_frontiers(job.lake, job.plan.windows, frontier, marked)
    less = {name: known.get(name) for name in job.plan.windows if known.get(name) != frontier}
    return spans.PassedFrontier(frontier, less) if less else None


def _rows_frontier(job: Job, bookmark: Bookmark) -> int | None:
    """Return up to where all rows of results are final; None where that is unknown."""
    streams = [result.stream for result in job.results]
    known = [*bookmark.passed(job.lake.results, streams).values()]
    passed_us = [at_us for at_us in known if at_us is not None]
    return min(passed_us) if streams and len(passed_us) == len(streams) else None
