"""All that is seen of a program before it runs as a whole."""

import io
from contextlib import redirect_stdout
from typing import NamedTuple

from lasp_edge.checking.alerts import (
    between_levels,
    empty_bins,
    small_shares,
    unreachable,
    unreached_levels,
)
from lasp_edge.checking.arguments import unnamed_arguments
from lasp_edge.checking.comparisons import always_true, compared
from lasp_edge.checking.determinism import files_of, risks_of
from lasp_edge.checking.fields import coarse_fields
from lasp_edge.checking.handled import misread
from lasp_edge.checking.handlers import (
    doubled,
    feeding,
    fleet_readers,
    mapped_beside,
    recounting,
    times_as_values,
    unfilled,
    unread,
    unstepped,
    unused,
    valueless,
)
from lasp_edge.checking.keys import keyless, long_keys, restless, whole_tags
from lasp_edge.checking.loops import captured, rebound
from lasp_edge.checking.memory import memories_of
from lasp_edge.checking.meters import summed_meters
from lasp_edge.checking.part_names import exchanged
from lasp_edge.checking.rates import flat_rates, rates_of_changes
from lasp_edge.checking.reach import short_reaches
from lasp_edge.checking.room import room_of
from lasp_edge.checking.spans import odd_spans
from lasp_edge.checking.steps import coarse_means, forgotten, in_steps, rounded_away
from lasp_edge.checking.unasked import unasked
from lasp_edge.checking.unlike import half_pairs, unlike_texts
from lasp_edge.language.plan import Plan


class Seen(NamedTuple):
    """What is seen of a program that does not run."""

    wrong: list[str]
    doubts: list[str]
    lines: list[str]


def looked_at(plan: Plan) -> Seen:
    """Return what is seen of a program without running it."""
    (remembering, memos), room = memories_of(plan), room_of(plan)
    doubts = unfilled(plan) + fleet_readers(plan) + recounting(plan) + risks_of(plan)
    doubts += feeding(plan) + doubled(plan) + half_pairs(plan) + unlike_texts(plan)
    doubts += compared(plan) + exchanged(plan) + empty_bins(plan) + whole_tags(plan)
    doubts += memos + unreachable(plan) + unreached_levels(plan) + small_shares(plan)
    doubts += unread(plan) + unused(plan) + valueless(plan)
    doubts += unasked(plan) + in_steps(plan) + coarse_means(plan) + keyless(plan) + rebound(plan)
    doubts += odd_spans(plan) + forgotten(plan) + flat_rates(plan) + summed_meters(plan)
    doubts += rates_of_changes(plan) + times_as_values(plan) + mapped_beside(plan)
    lines = [f"ROUND {line}" for line in unstepped(plan)]
    lines += [f"FILE  {line}" for line in files_of(plan)]
    lines += [f"REACH {line}" for line in short_reaches(plan)]
    lines += [f"ROOM  {line}" for line in room.notes]
    lines += [f"ALERT {line}" for line in between_levels(plan)]
    wrong = remembering + captured(plan) + unnamed_arguments(plan) + room.wrong
    return Seen(wrong, doubts + room.doubts, lines)


def odd_values(plan: Plan) -> list[str]:
    """Return a line for each function whose values look odd; what it prints is not shown."""
    with redirect_stdout(io.StringIO()):
        found = restless(plan) + long_keys(plan) + rounded_away(plan) + always_true(plan)
        return found + coarse_fields(plan) + misread(plan)
