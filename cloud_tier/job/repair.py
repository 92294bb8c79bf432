"""Recomputing every window above the floor from its panes.

Nothing needs it in the ordinary run: a step recomputes whatever it may have changed. It is for a
window whose size or slide was changed over panes that are there, and for operators who want to be
sure. What comes out the same is not appended.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from pyspark.sql import SparkSession

from cloud_tier.job.control import promised_under_log
from cloud_tier.job.dynamic import touched
from cloud_tier.job.finality import finality_of
from cloud_tier.job.formed import StepWindows
from cloud_tier.job.job import Job
from cloud_tier.job.starts import all_starts
from cloud_tier.job.step import MergedState, append_globals, append_windows, recalled
from cloud_tier.lake.definitions import note_made, outdated_windows
from cloud_tier.lake.deletion import DAY_US, kept_days, recomputed
from lasp_edge.protocol.spans import EVERYTHING

_ALWAYS_US: Final = 10**17
"""In microseconds: three thousand years, longer than any lake is kept."""


def repair(
    spark: SparkSession, job: Job, known: MergedState, windows: Collection[str] | None = None
) -> int:
    """Append what differs, and return how many window rows that was.

    Args:
        spark: a session.
        job: the program over the lake.
        known: what `step.recalled` returns.
        windows: only these; None for all, and the fleet-wide values.
    """
    finality = finality_of(job, known.frontier, known.liveness, known.waiting, known.lives)
    # A window that F has passed is made final with the F that was recorded, not a newer one.
    if windows is None:
        everything = touched(job.folds, {}, everything=True)
        append_globals(spark, job, known.liveness.membership, known, everything)
    coverage = finality.coverage._replace(frontier=known.frontier)
    recorded = finality._replace(coverage=coverage)
    promised_us = promised_under_log(job, known.control, known.liveness)
    starts = all_starts(job, known.control.regimes, known.frontier)
    if windows is not None:
        # Of a window that begins before, `lake retain` may have taken panes: it was shorter then.
        least_us = EVERYTHING.first if known.frontier is None else known.frontier - job.retain_us
        starts = [
            each._replace(first_us=max(each.first_us, least_us))
            for each in starts
            if each.window in windows
        ]
    return append_windows(spark, StepWindows(job, known.control, starts, promised_us), recorded)


def repair_all(spark: SparkSession, job: Job) -> None:
    """Make all windows again for which there are panes, however old: some were deleted."""
    wide = _wide(job)
    repair(spark, wide, recalled(wide))
    recomputed(job.lake)


def make_outdated(spark: SparkSession, job: Job) -> int:
    """Make the windows that are defined otherwise than their rows; return how many rows that was.

    They are made of all panes that are there, however old: no row of them is shown before.
    """
    windows = outdated_windows(job.plan, job.lake)
    if not windows:
        return 0
    wide = _wide(job)
    found = repair(spark, wide, recalled(wide), windows)
    note_made(job.plan, job.lake)
    return found


def _wide(job: Job) -> Job:
    """Return a job that recomputes all windows of which the panes are kept."""
    kept = kept_days(job.lake)
    return replace(job, retain_us=_ALWAYS_US if kept is None else kept * DAY_US)
