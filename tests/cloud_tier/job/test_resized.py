"""Windows of another size or slide over the same panes replace those of the former definition."""

import random

import pytest
from deltalake import DeltaTable

from cloud_tier import Lake
from cloud_tier.job.repair import make_outdated
from cloud_tier.lake.current import write_current
from cloud_tier.lake.definitions import record
from device_agent.gateway.core import WaitingTerms
from lasp_edge import Program, folds
from lasp_edge.tool.times import microseconds
from simulations.oracle import Reading
from tests.cloud_tier.job.test_gateway import check_counted, lake_rows
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, Device, tick, true_windows
from tests.device_agent.gateway.support_gateway import GatewayUnderTest
from tests.device_agent.gateway.test_changed_programs import FOUR, grown

pytestmark = pytest.mark.spark

START_US = BEGIN_US + 20 * SECOND_US  # a multiple of every slide


def test_windows_of_other_sizes_and_slides_are_made_of_the_panes_that_are_there(spark, tmp_path):
    """Greater, smaller, and without gaps of one size; and as they were, with a late reading."""

    def program(size_s, slide_s):
        made = Program("p")
        event = made.event("temperature", resolution="0.01")
        made.window("w", source=event, fold=folds.sum(), size_s=size_s, slide_s=slide_s)
        return made.plan()

    lake = LakeUnderTest(spark, program(30, 10), tmp_path, roster=["pi-0"], retain_us=0)
    draw = random.Random(1)
    device = Device(lake.program, "pi-0")
    device.variable = dict
    readings = [
        Reading("pi-0", "temperature", draw.randrange(100), START_US + n * 7 * SECOND_US, {})
        for n in range(12)
    ]
    record(lake.program, lake.lake)
    rows = [*filter(None, device.accept(readings)), tick(1, BEGIN_US)]
    lake.step([*rows, device.promise(START_US + 120 * SECOND_US, BEGIN_US)])
    assert _served(lake) == _true_rows(lake.program, readings)
    for sizes in ((50, 10), (20, 10), (50, 20)):
        other = LakeUnderTest(spark, program(*sizes), tmp_path, roster=["pi-0"], retain_us=0)
        record(other.program, other.lake)  # as a lander does that starts before the job
        assert make_outdated(spark, other.job) > 0
        assert make_outdated(spark, other.job) == 0
        assert _served(other) == _true_rows(other.program, readings)
    other.restart()
    late = Reading("pi-0", "temperature", 7, START_US + 11 * SECOND_US, {})
    assert other.step(filter(None, device.accept([late]))).too_late > 0
    record(lake.program, lake.lake)
    assert make_outdated(spark, lake.job) > 0
    assert _served(lake) == _true_rows(lake.program, [*readings, late])


def _served(lake):
    """Return the current rows of a window by all that reads them, which have to be equal."""
    rows, columns = Lake(lake.lake.root).windows("w"), ["start_us", "end_us", "total_q"]
    found = rows.current(columns=columns).to_pylist()
    assert {row["status"] for row in rows.current().to_pylist()} <= {"final", "revised"}
    newest = {row["start_us"]: row for row in rows.changes().rows.to_pylist()}
    newest |= {row["start_us"]: row for row in rows.changes(0).rows.to_pylist()}
    by_frame = [row.asDict() for row in rows.spark_frame(lake.spark).select(*columns).collect()]
    assert sorted(by_frame, key=lambda row: row["start_us"]) == found
    assert [{name: row[name] for name in columns} for _, row in sorted(newest.items())] == found
    assert rows.newest_start_us() == found[-1]["start_us"]
    write_current(rows, f"{lake.lake.root}/table")
    starts = DeltaTable(f"{lake.lake.root}/table").to_pyarrow_table().column("start").to_pylist()
    assert sorted(map(microseconds, starts)) == [row["start_us"] for row in found]
    return found


def _true_rows(program, readings):
    size_us = program.windows["w"].size_us
    return [
        {"start_us": start_us, "end_us": start_us + size_us, "total_q": partial[0]}
        for (_, _, start_us), (partial, _) in sorted(true_windows(program, readings).items())
    ]


def test_rows_of_a_window_that_is_longer_now_name_whom_a_gateway_names(spark, tmp_path):
    gateway = None
    for plan, steps in grown():
        keeper = None if gateway is None else gateway.keeper
        gateway = GatewayUnderTest(plan, keeper, WaitingTerms(FOUR, 60 * SECOND_US))
        terms = {"roster": FOUR, "dead_after_us": 60 * SECOND_US}
        lake = LakeUnderTest(spark, plan, tmp_path, **terms)
        record(plan, lake.lake)
        if keeper is not None:
            assert make_outdated(spark, lake.job) > 0
            lake.restart()
        for rows in steps:
            gateway.step(rows)
            lake.step(rows)
    kept = [tuple(row) for rows in gateway.keeper.revisions.values() for row in rows]
    assert sorted(kept, key=lambda row: (row[0], row[-3])) == lake_rows(lake)
    check_counted(lake)
