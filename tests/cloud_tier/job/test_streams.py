"""Streams over the fleet in steps of the job, over tables in memory: which items count."""

from types import SimpleNamespace

import pytest

from cloud_tier.job.streams import LakeStreams, StepFrontier
from lasp_edge import Program, scans
from lasp_edge.ordered.cells import PRESENT, Item
from lasp_edge.units import SECOND_US
from simulations.lake_order import LandedCell, MemoryTables, lattice_row

FIRST_US = 1_700_000_000 * SECOND_US
RETAIN_S = 60


class StreamedLake:
    """Readings of one device in a lake, and the process of its job."""

    def __init__(self):
        program = Program("doors")
        door = program.event("door", resolution="1")
        program.result(program.scan("made", source=door, scan=scans.differences()))
        self.plan = program.plan()
        self.tables, self.landed, self.frontier_us = MemoryTables(self.plan), 0, None
        self.restart()

    def restart(self):
        self.streams = LakeStreams(
            SimpleNamespace(
                plan=self.plan,
                lake=self.tables.lake,
                tables=self.tables,
                retain_us=RETAIN_S * SECOND_US,
                tentative_after_us=0,
            )
        )

    def step(self, times_s, frontier_s, due_s):
        """Let a reading of each time land, each in a cell of its own, and do the step."""
        stream, touched = self.plan.item_streams["door"].stream, {}
        for at_s in times_s:
            self.landed += 1
            item = Item(FIRST_US + at_s * SECOND_US, self.landed, "{}")
            cell = LandedCell("pi-0", 1, self.landed, {item: PRESENT})
            self.tables.put("lattice", [lattice_row(cell, stream)])
            touched[cell.at_us] = 1
        now_us, due_us = (FIRST_US + each * SECOND_US for each in (frontier_s, due_s))
        frontier = StepFrontier(self.frontier_us, now_us, due_us, is_over=False)
        self.streams.advance({stream: touched}, frontier)
        self.frontier_us = now_us

    @property
    def rows_s(self):
        """The times of the rows that are there."""
        query = "SELECT * FROM source ORDER BY revision"
        rows = self.tables.select("results", query).to_pylist()
        current = {row["time_us"]: row["present"] for row in rows}
        return [
            (at_us - FIRST_US) // SECOND_US for at_us, there in sorted(current.items()) if there
        ]


@pytest.fixture
def lake():
    return StreamedLake()


@pytest.mark.parametrize(("at_s", "is_late"), [(89, True), (90, False), (91, False), (100, False)])
def test_a_reading_counts_in_the_cell_in_which_the_time_for_late_ones_begins(lake, at_s, is_late):
    lake.step([20, 120], frontier_s=90 + RETAIN_S, due_s=90 + RETAIN_S)
    lake.step([at_s], frontier_s=160, due_s=160)
    assert lake.streams.too_late == is_late
    assert lake.rows_s == [*([] if is_late else [at_s]), 120]


def test_what_has_a_row_keeps_it_where_the_next_process_waits_for_longer(lake):
    lake.step([20, 100, 130], frontier_s=10, due_s=110)
    assert lake.rows_s == [100]
    lake.restart()
    lake.step([60], frontier_s=10, due_s=30)
    assert lake.rows_s == [60, 100]
    lake.step([], frontier_s=140, due_s=140)
    assert lake.rows_s == [60, 100, 130]
