"""Windows that F has passed and whose rows are to name others, as devices have spoken.

Their newest row names a device in `excluded` that has sent everything since, or it may lack
readings of one that it does not name, as is known now: its store was lost. Which rows do so is
asked of the table, and only in a step in which a device catches up or states that: see
`lasp_edge.protocol.frontier.caught_up` and `lasp_edge.protocol.lost_stores`, by which a gateway
goes, too.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa

from cloud_tier.job.finality import StepFinality
from cloud_tier.job.job import Job
from cloud_tier.job.starts import RecomputedStarts, floor_us
from cloud_tier.lake.sqltext import any_of, newest_of, standard_identifier, standard_literal
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.protocol.frontier import Liveness
from lasp_edge.protocol.lost_stores import is_renamed, touching, unvoided
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import names_in

_COLUMNS = ("window", "key", "start_us", "end_us", "revision", "excluded", "status")
_RENAMED: Final = pa.schema(
    {
        "_at_window": pa.string(),
        "_at_key": pa.string(),
        "_at_us": pa.int64(),
        "_at_revision": pa.int32(),
    }
)
IS_RENAMED: Final = (
    "window = _at_window AND key = _at_key AND start_us = _at_us AND _revision = _at_revision"
)
"""Whether the newest row of a window is one of `RenamedWindows.rows`, as Spark's SQL text."""


class RenamedWindows(NamedTuple):
    """Windows whose newest rows are to name others.

    Attributes:
        starts: of these windows.
        rows: which rows these are; None without any.
    """

    starts: tuple[RecomputedStarts, ...] = ()
    rows: pa.Table | None = None


NOTHING_RENAMED: Final = RenamedWindows()


def renamed_windows(
    job: Job,
    regimes: FleetRegimes,
    liveness: Liveness,
    finality: StepFinality,
    news_us: tuple[range, int],
    frontier_us: int | None,
) -> RenamedWindows:
    """Return the windows that F had passed and whose rows are to name others.

    Args:
        job: the program over the lake.
        regimes: what panes mean.
        liveness: every promise.
        finality: of which devices readings may be missing, and in which times since now.
        news_us: the ends of windows that somebody has caught up with, as `caught_up` gives them;
            and up to which start devices have made since which readings of a window they lacked.
        frontier_us: F before the step; None is bottom.
    """
    found, promises, lacking = [], unvoided(liveness), finality.lacking
    begun = {name: finality.begun_of(each.stream) for name, each in job.plan.windows.items()}
    for row in _candidates(job, regimes, lacking.grown, news_us, frontier_us):
        at_us = (row["start_us"], row["end_us"])
        several = (lacking.lost, [*lacking.lacking, *begun.get(row["window"], ())])
        lost, lacks = (touching(each, *at_us) for each in several)
        names = names_in(row["excluded"] or "")
        if is_renamed(names, row["end_us"], promises, lost, lacks):
            found.append((row["window"], row["key"], row["start_us"], row["revision"]))
    if not found:
        return NOTHING_RENAMED
    starts = sorted({RecomputedStarts(*each[:2], *[each[2]] * 2) for each in found})
    columns = dict(zip(_RENAMED.names, zip(*found, strict=True), strict=True))
    return RenamedWindows(tuple(starts), pa.table(columns, schema=_RENAMED))


def _candidates(
    job: Job,
    regimes: FleetRegimes,
    times_us: range,
    news_us: tuple[range, int],
    frontier_us: int | None,
) -> Iterator[dict[str, Any]]:
    """Yield the rows that may be to name others: with a caught-up end, or of times that lack.

    Or of which a device has made what it lacked.
    """
    ends_us, made_us = news_us
    if frontier_us is None or not (ends_us or times_us or made_us):
        return
    caught_up = f"end_us BETWEEN {ends_us.start} AND {ends_us.stop - 1}"
    lacking = f"(start_us < {times_us.stop} AND end_us > {times_us.start})"
    floor = partial(floor_us, job, regimes, frontier_us=frontier_us)
    floors_us = {name: floor(window=name) for name in regimes.windows}
    columns, entry = (", ".join(map(standard_identifier, _COLUMNS[:n])) for n in (None, 3))
    made = f"start_us < {made_us}"
    asked = [(caught_up, ends_us), (lacking, times_us), (made, made_us)]
    read = any_of([text for text, is_asked in asked if is_asked])
    passed = f"end_us <= {frontier_us} AND start_us >= {min(floors_us.values(), default=0)}"
    query = newest_of("source", columns, f"{passed} AND {read}", entry)
    wanted = f"(excluded <> '' OR {lacking if times_us else 'false'})"
    query += f" AND status <> {standard_literal(TENTATIVE)} AND {wanted}"
    for row in job.tables.select(job.lake.windows, query).to_pylist():
        if row["start_us"] >= floors_us.get(row["window"], frontier_us):
            yield row
