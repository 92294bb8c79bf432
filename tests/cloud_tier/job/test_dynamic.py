import pytest

from simulations.oracle import Reading
from tests.cloud_tier.lakes import LakeUnderTest, batches
from tests.cloud_tier.support_devices import BEGIN_US, Device, readings_of, rooms, true_global

pytestmark = pytest.mark.spark

PROGRAM = rooms()


def test_global_value_and_inputs_are_those_of_the_devices(spark, tmp_path):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    devices = [Device(PROGRAM, f"pi-{n}") for n in range(3)]
    rows = []
    for reading in readings_of(5):
        device = devices[int(reading.device[-1])]
        if len(device.readings) == 6:
            device.start()
        rows += device.accept([reading])
    for batch in batches(rows, 5, count=2):
        lake.step(batch)
    assert lake.globals_there() == {("global_average", ""): (*true_global(PROGRAM, devices), 3)}


def test_value_that_stays_with_new_inputs_is_a_new_row(spark, tmp_path):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    device = Device(PROGRAM, "pi-0")
    reading = Reading("pi-0", "temperature", 20.0, BEGIN_US, {"room": "attic"})
    lake.step(device.accept([reading]))
    device.start()
    again = [device.variable()]
    lake.step(again)
    lake.step(again)
    rows = lake.rows(lake.lake.globals)
    assert sorted(row["revision"] for row in rows) == [0, 1]
    assert len({row["inputs"] for row in rows}) == 2
    assert len({(row["count"], row["total_q"]) for row in rows}) == 1
