"""A job goes on with the lake of an earlier release; its windows are those of all readings."""

import pytest

from cloud_tier.job.repair import repair
from cloud_tier.lake.tables import LakeTables
from cloud_tier.lake.upgrade import upgrade
from lasp_edge import Op
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    history,
    readings_of,
    rooms,
    tick,
    true_windows,
)
from tests.cloud_tier.support_former import FormerLake

pytestmark = pytest.mark.spark

PROGRAM = rooms()
READINGS = readings_of(13, each=4)
TRUTH = true_windows(PROGRAM, READINGS)


def former_rows():
    """Yield a row for each window, from when nothing was known of it but that it would come."""
    sums = {name for name, column in PROGRAM.columns.items() if column.op is Op.SUM}
    for name, key, start_us in TRUTH:
        window = PROGRAM.windows[name]
        yield {
            "window": name,
            "key": key,
            "start_us": start_us,
            "end_us": start_us + window.size_us,
            **{column: 0 for column in window.fold.columns_named if column in sums},
            "devices_in": 0,
            "devices_expected": 3,
            "excluded": "pi-0,pi-1,pi-2",
            "status": "tentative",
            "revision": 0,
            "frontier": None,
            "stream": window.stream,
        }


@pytest.mark.parametrize("number", ["1", "2"])
def test_windows_of_a_former_lake_are_those_of_all_readings(spark, tmp_path, number):
    former = FormerLake(LakeTables(tmp_path), PROGRAM, number)
    rows = history(PROGRAM, READINGS)
    former.land([*rows[::2], tick(1, BEGIN_US)])
    former.write_windows(former_rows())
    assert (upgrade(former.tables) > 0) == (number == "1")
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    lake.restart()
    lake.step([*rows[1::2], tick(2, BEGIN_US)])
    repair(spark, lake.job, lake.known)
    assert lake.current() == TRUTH
    assert {each[0] for each in lake.statuses().values()} == {"tentative"}
    lake.restart()
    assert {*lake.known.liveness.clocks} == {"lander"}
    assert {*lake.known.liveness.promises.entries} == {"pi-0", "pi-1", "pi-2"}
