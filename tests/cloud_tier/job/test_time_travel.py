"""What a lake held while the frontier stood elsewhere, against what was read after each step."""

import pytest

from cloud_tier import Lake
from cloud_tier.lake.definitions import prepare
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    SECOND_US,
    Device,
    readings_of,
    rooms,
    tick,
)

pytestmark = pytest.mark.spark

PROGRAM = rooms()


def test_table_as_of_each_frontier_is_what_was_read_after_its_last_step(spark, tmp_path):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path, roster=["pi-0"])
    prepare(PROGRAM, lake.lake)
    device, readings = Device(PROGRAM, "pi-0"), readings_of(5, devices=1, each=10)
    known = {}
    appended = [0]
    for step, low_s in enumerate((None, 40, 40, 90, 130)):
        rows = device.accept(readings[2 * step : 2 * step + 2])
        if low_s is not None:
            rows.append(device.promise(BEGIN_US + low_s * SECOND_US, BEGIN_US, done=False))
        lake.step([*rows, tick(step + 1, BEGIN_US + step)])
        known[lake.known.frontier] = lake.current()
        appended.append(len(lake.rows(lake.lake.windows)))
    reader = Lake(tmp_path)
    assert reader.frontiers() == [BEGIN_US + low_s * SECOND_US for low_s in (40, 90, 130)]
    for frontier_us, expected in known.items():
        asked = BEGIN_US - 10**9 if frontier_us is None else frontier_us
        found = reader.table_as_of(asked).to_pylist()
        assert {
            (row["window"], row["key"], row["start_us"]): (
                tuple(
                    map(
                        int,
                        (row[name] for name in PROGRAM.windows[row["window"]].fold.columns_named),
                    )
                ),
                row["devices_in"],
            )
            for row in found
        } == expected
        final = [row for row in found if row["status"] != "tentative"]
        assert all(row["end_us"] <= asked for row in final)
        assert bool(final) == (frontier_us is not None)
    feeds = [reader.windows(name).changes(0) for name in PROGRAM.windows]
    assert sum(feed.rows.num_rows for feed in feeds) == appended[-1]
    frame = reader.windows("by_room").spark_frame(spark)
    table = reader.windows("by_room").current(columns=frame.columns)
    assert frame.orderBy("key", "start_us").toArrow().to_pylist() == table.to_pylist()
