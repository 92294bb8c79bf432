"""How sure windows are in a step: how far F has come, which of them are due, and who is missing.

The rules are those of `lasp_edge.protocol`, over all rows that were merged. What varies from step
to step is data: SQL compares a window's end with it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from cloud_tier.job.job import Job
from lasp_edge.protocol.frontier import (
    AwaitedDevices,
    Coverage,
    Liveness,
    advance,
    awaited,
    is_listening,
)
from lasp_edge.protocol.waiting import WindowWaiting


class StepFinality(NamedTuple):
    """How sure it is that a window is whole.

    Attributes:
        coverage: how far results are final, and over whom.
        due_us: window -> the end up to which it is due; None if no window is.
        awaited: window -> for whom it waits.
    """

    coverage: Coverage
    due_us: Mapping[str, int | None]
    awaited: Mapping[str, AwaitedDevices]


def finality_of(
    job: Job, frontier: int | None, liveness: Liveness, waiting: WindowWaiting
) -> StepFinality:
    """Return how sure windows are.

    Args:
        job: the program over the lake.
        frontier: F so far; None is bottom.
        liveness: every promise and tick, and who was retired.
        waiting: since when windows wait.
    """
    terms = (liveness, job.roster, job.dead_after_us)
    due_us = {name: waiting.due_us(wait_us) for name, wait_us in job.waits.items()}
    coverage = advance(frontier, *terms, job.listen_us)
    missing = awaited(*terms).led_by(coverage.frontier)
    led = {n: missing.led_by(waiting.ends_us.get(wait_us)) for n, wait_us in job.waits.items()}
    return StepFinality(coverage, due_us, led)


def clock_us(job: Job, frontier: int | None, liveness: Liveness) -> int | None:
    """Return the time by which windows become due; None while nobody is late yet."""
    listening = liveness.listening
    is_first = is_listening(frontier, liveness, job.roster, job.listen_us)
    return None if listening is None or is_first else listening.now_us


def become_due(
    job: Job, before: WindowWaiting, waiting: WindowWaiting
) -> dict[str, tuple[int | None, int | None]]:
    """Return up to which end windows were due, and are now; without X they have rows anyhow."""
    return {
        name: (before.due_us(wait_us), waiting.due_us(wait_us))
        for name, wait_us in job.waits.items()
        if wait_us
    }
