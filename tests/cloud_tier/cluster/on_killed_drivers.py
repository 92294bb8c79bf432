"""A driver that dies by `kill -9` at each point between two commits, and what its successor makes.

The tables are to equal the recomputation, with no revision twice and no window final twice. No
part of the suite: see `make test-cluster`.
"""

import sys

import pytest

from cloud_tier.lake.checkpoint import mend, merged
from tests.cloud_tier.cluster.support_cluster import until
from tests.cloud_tier.cluster.support_killed import POINTS, PROGRAM, READINGS, READY, TornLake
from tests.cloud_tier.lakes import QUICK, ReadLake
from tests.cloud_tier.support_devices import true_windows
from tests.end_to_end.support_site import Process

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a lake for each point, whose driver was killed there."""
    place = tmp_path_factory.mktemp("killed")
    driver = Process(place, "driver", [sys.executable, "-m", TornLake.__module__])
    driver.run([str(place)])
    try:
        until(lambda: READY in driver.printed.read_text(), driver)
        driver.kill()
    finally:
        driver.end()
    return place


@pytest.mark.parametrize("point", POINTS)
def test_killed_and_the_tables_are_the_same(point, folder, spark):
    torn = TornLake(folder / point)
    before = merged(torn.tables)
    assert (before.batch, before.unfinished) == (0, True)
    for name, value in QUICK.items():
        spark.conf.set(name, value)
    mend(torn.tables)
    query = torn.query(spark)
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    found = ReadLake(PROGRAM, torn.tables)
    assert found.current() == true_windows(PROGRAM, READINGS)
    assert max(each.count("final") for each in found.statuses().values()) == 1
    value = found.globals()["global_average", ""]
    assert value.devices_in == len({reading.device for reading in READINGS})
