"""Who holds the frontier of a lake: of whom a table tells what, and for whom it waits."""

import pytest

from cloud_tier import Lake
from cloud_tier.lake.coverage import DeviceState, fleet_coverage
from tests.cloud_tier.lake.support_promises import MINUTE_US, NOW_US, ROWS, merge
from tests.cloud_tier.support_devices import BEGIN_US, tick
from tests.cloud_tier.written_lakes import written


@pytest.fixture
def tables(tmp_path):
    return written(tmp_path / "lake")


def test_coverage_names_the_device_that_holds_the_frontier(tables):
    merge(tables, ROWS)
    found = Lake(tables.root).coverage()
    assert found.select(["device", "state", "holds"]).to_pylist() == [
        {"device": device, "state": state, "holds": device == "slow"}
        for device, state in (
            ("dead", "not waited for"),
            ("done", "done"),
            ("fast", "live"),
            ("no clock", "not waited for"),
            ("slow", "live"),
            ("sold", "retired"),
        )
    ]
    coverage = fleet_coverage(tables)
    assert (coverage.frontier_us, coverage.lag_us) == (NOW_US - MINUTE_US, MINUTE_US)


def test_a_device_that_was_never_heard_holds_the_frontier_before_all_others(tables):
    merge(tables, [*ROWS[:2], tick(1, BEGIN_US + MINUTE_US)])
    found = fleet_coverage(tables, roster=["fast", "slow", "new"])
    assert [(each.device, each.state) for each in found.devices if each.holds] == [
        ("new", DeviceState.AWAITED)
    ]
    assert found.frontier_us is None
    assert fleet_coverage(tables, roster=["fast", "slow", "new"], dead_after_us=1).frontier_us


def test_coverage_of_a_lake_that_has_heard_nobody_is_empty_and_typed(tables):
    found = Lake(tables.root).coverage()
    assert found.num_rows == 0
    assert str(found.schema.field("low_us").type) == "int64"
