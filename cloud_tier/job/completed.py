"""Windows that F has passed without a device, and of which that device has sent everything since.

Their newest row names the device in `excluded`, and a further row names it no more. Which rows do
so is asked of the table, and only in a step in which a device catches up: see
`lasp_edge.protocol.frontier.caught_up`, by which a gateway goes, too.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from cloud_tier.job.job import Job
from cloud_tier.job.starts import RecomputedStarts, floor_us
from cloud_tier.lake.sqltext import literal, newest_of, standard_identifier, standard_literal
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.protocol.frontier import Liveness, reach_us
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import names_in, names_text

_COLUMNS = ("window", "key", "start_us", "end_us", "excluded", "status")


class CompletedWindows(NamedTuple):
    """Windows whose rows name a device that has sent all of them since.

    Attributes:
        starts: of these windows.
        reached_us: device -> up to which time it has promised, of the devices that are named.
    """

    starts: tuple[RecomputedStarts, ...] = ()
    reached_us: Mapping[str, int] = MappingProxyType({})

    @property
    def condition(self) -> str:
        """Whether a newest row, whose names are `_named`, is one of them, as Spark's SQL text."""
        several = [
            f"(instr(concat(',', _named, ','), {literal(f',{names_text([device])},')}) > 0 "
            f"AND _now_end_us <= {at_us})"
            for device, at_us in sorted(self.reached_us.items())
        ]
        return f"coalesce({' OR '.join(several)}, false)" if several else "false"


NOTHING_COMPLETED: Final = CompletedWindows()


def completed_windows(
    job: Job, regimes: FleetRegimes, liveness: Liveness, ends_us: range, frontier_us: int | None
) -> CompletedWindows:
    """Return the windows whose rows name a device that has sent all of them since.

    Args:
        job: the program over the lake.
        regimes: what panes mean.
        liveness: every promise.
        ends_us: of the windows, as `caught_up` gives them.
        frontier_us: F before the step; None is bottom.
    """
    if not ends_us or not regimes.windows:
        return NOTHING_COMPLETED
    least_us = min(floor_us(job, regimes, name, frontier_us) for name in regimes.windows)
    bounds = f"end_us BETWEEN {ends_us.start} AND {ends_us.stop - 1} AND start_us >= {least_us}"
    columns = ", ".join(map(standard_identifier, _COLUMNS))
    entry = ", ".join(map(standard_identifier, _COLUMNS[:3]))
    query = newest_of("source", columns, bounds, entry)
    named = f"{query} AND excluded <> '' AND status <> {standard_literal(TENTATIVE)}"
    starts, reached_us = [], dict[str, int]()
    for row in job.tables.select(job.lake.windows, named).to_pylist():
        for device in names_in(row["excluded"]):
            at_us = reach_us(liveness.promises.entries.get(device))
            if row["end_us"] <= at_us and row["window"] in regimes.windows:
                reached_us[device] = at_us
                starts.append(RecomputedStarts(row["window"], row["key"], *[row["start_us"]] * 2))
    return CompletedWindows(tuple(sorted(set(starts))), reached_us)
