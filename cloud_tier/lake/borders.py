"""Whether a deletion up to a time would take more than what was measured before then.

Of a pane a lake has one partial, which cannot be split. So a time counts only where no pane that
is wanted lies across it, and the error names the nearest such times.
"""

import json
from collections.abc import Iterator, Mapping
from math import gcd, lcm
from typing import NamedTuple

from deltalake import DeltaTable

from cloud_tier.lake.matching import Wanted
from cloud_tier.lake.query import selected
from cloud_tier.lake.tables import PANE, LakeTables
from lasp_edge.errors import UsageError
from lasp_edge.language.described import RESULT, WINDOW
from lasp_edge.ordered.cells import CELL_US
from lasp_edge.protocol.lake_columns import ITEMS
from lasp_edge.tool.times import shown_time


class _Panes(NamedTuple):
    """The wanted panes of a stream, before the time and behind it.

    Attributes:
        spans_us: their length; where the lake does not tell, all that it may be.
        first_us: start of the first one.
        before_us: start of the last one that begins before the time; None without any.
        last_us: start of the last one.
    """

    spans_us: tuple[int, ...]
    first_us: int
    before_us: int | None
    last_us: int

    def across(self, time_us: int) -> tuple[int, int] | None:
        """Return start and end of the pane that lies across a time; None without one."""
        for span_us in self.spans_us:
            start_us = time_us // span_us * span_us
            if self.before_us is not None and start_us <= self.before_us and start_us < time_us:
                return start_us, start_us + span_us
        return None

    @property
    def end_us(self) -> int:
        """The end of the last one."""
        return max(self.last_us // span_us * span_us + span_us for span_us in self.spans_us)


def check_border(tables: LakeTables, wanted: Wanted) -> None:
    """Check that no pane that is wanted lies across the time up to which all is to go.

    Raises:
        UsageError: one does; the line names the nearest times that cut none.
    """
    time_us = wanted.before_us
    if time_us is None:
        return
    panes = list(_wanted_panes(tables, wanted, time_us))
    cut = [found for each in panes if (found := each.across(time_us))]
    if not cut:
        return
    step_us = lcm(*(span_us for each in panes for span_us in each.spans_us))
    earlier_us = time_us // step_us * step_us
    times_us = [min(earlier_us + step_us, max(each.end_us for each in panes))]
    if earlier_us > min(each.first_us for each in panes):
        times_us.insert(0, earlier_us)
    start_us, end_us = min(cut)
    nearest = " or ".join(f"'{shown_time(each)} UTC'" for each in times_us)
    raise UsageError(
        f"--before {shown_time(time_us)} UTC: the lake keeps the readings from "
        f"{shown_time(start_us)} to {shown_time(end_us)} as one pane, which goes as a whole or not "
        f"at all; type --before with the nearest time that cuts none: {nearest}"
    )


def has_items(lattice: DeltaTable) -> bool:
    """Return whether `lattice` can hold cells of items: the program has an order over the fleet."""
    return ITEMS in {field.name for field in lattice.schema().fields}


def _wanted_panes(tables: LakeTables, wanted: Wanted, time_us: int) -> Iterator[_Panes]:
    spans, unknown = _spans(tables), _possible_spans(tables)
    where = wanted._replace(before_us=None).rows(f"kind = '{PANE}'", "pane_us")
    for path in (tables.lattice, tables.landing):
        table = tables.table(path)
        is_cell = f"{ITEMS} IS NOT NULL" if has_items(table) else "false"
        query = (
            f"SELECT stream, {is_cell} AS is_cell, min(pane_us) AS first_us, "  # noqa: S608 - quoted
            f"max(CASE WHEN pane_us < {time_us} THEN pane_us END) AS before_us, "
            f"max(pane_us) AS last_us FROM source WHERE {where} GROUP BY stream, {is_cell}"
        )
        for row in selected(table, query).to_pylist():
            made = (CELL_US,) if row["is_cell"] else spans.get(row["stream"], unknown)
            yield _Panes(made, row["first_us"], row["before_us"], row["last_us"])


def _spans(tables: LakeTables) -> Mapping[int, tuple[int, ...]]:
    """Return the length of a pane of each stream that the lake has ever had a definition of."""
    found: dict[int, tuple[int, ...]] = {}
    query = f"SELECT kind, description FROM source WHERE kind IN ('{WINDOW}', '{RESULT}')"  # noqa: S608 - ours
    for row in selected(tables.table(tables.programs), query).to_pylist():
        text = json.loads(row["description"])
        # A row of a result is a pane of its own.
        span_us = gcd(text["size_us"], text["slide_us"]) if row["kind"] == WINDOW else 1
        found[text["stream"]] = (span_us,)
    return found


def _possible_spans(tables: LakeTables) -> tuple[int, ...]:
    """Return a multiple of each length that a pane may have where parameters change its window."""
    lengths: set[int] = set()
    query = "SELECT DISTINCT end_us - start_us AS size_us FROM source"
    if DeltaTable.is_deltatable(tables.windows):
        rows = selected(tables.table(tables.windows), query).to_pylist()
        lengths.update(row["size_us"] for row in rows)
    return tuple(sorted(lengths)) or (1,)
