"""Recomputing every window above the floor from its panes.

Nothing needs it in the ordinary run: a step recomputes whatever it may have changed. It is for a
window whose size or slide was changed over panes that are there, and for operators who want to be
sure. What comes out the same is not appended.
"""

from pyspark.sql import SparkSession

from cloud_tier.job.control import LookedStarts, promised
from cloud_tier.job.control import floor_us as floor_us_of
from cloud_tier.job.controlled import ControlledStep
from cloud_tier.job.dynamic import touched
from cloud_tier.job.finality import finality_of
from cloud_tier.job.job import Job
from cloud_tier.job.step import MergedState, append_globals, append_windows
from lasp_edge.protocol.spans import EVERYTHING, Starts, above, floor_us
from lasp_edge.protocol.waiting import WindowWaiting


def repair(spark: SparkSession, job: Job, known: MergedState) -> int:
    """Append what differs, and return how many window rows that was.

    Args:
        spark: a session.
        job: the program over the lake.
        known: what `step.recalled` returns.
    """
    starts = {
        window.name: above([EVERYTHING], floor_us(window, known.frontier, job.retain_us))
        for window in job.plain_windows
    }
    waiting = known.waiting or WindowWaiting.of(job.waits.values())
    finality = finality_of(job, known.frontier, known.liveness, waiting)
    # A window that F has passed is made final with the F that was recorded, not a newer one.
    everything = touched(job.folds, {}, everything=True)
    append_globals(spark, job, known.liveness.membership, known, everything)
    coverage = finality.coverage._replace(frontier=known.frontier)
    recorded = finality._replace(coverage=coverage)
    return append_windows(spark, job, starts, recorded, _controlled(job, known, starts))


def _controlled(job: Job, known: MergedState, starts: Starts) -> ControlledStep | None:
    """Return all windows of a program with parameters; None without any."""
    state = known.control
    if state is None:
        return None
    looks = [
        LookedStarts(name, None, *span) for name, several in starts.items() for span in several
    ]
    for name in state.regimes.windows:
        least_us = floor_us_of(job, state.regimes, name, known.frontier)
        looks.append(LookedStarts(name, None, least_us, EVERYTHING.last))
    return ControlledStep(job, state, looks, promised(job, known.liveness))
