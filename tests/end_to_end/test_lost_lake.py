"""The lake is lost while the agents live on: they fill another one with all that they hold."""

import shutil

import pytest

from tests.end_to_end import support_recorded, tables, truth
from tests.end_to_end.support_site import Site, until

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.broker]
DEVICES = ["iot-device-01", "iot-device-02", "iot-device-03"]
LINES = 2_000
LASTS_S = 8.0
SOME_ROWS = 500


def test_a_lost_lake_is_filled_again(tmp_path, lines, spark):
    some = lines[:LINES]
    speed = truth.speed(some, LASTS_S)

    def some_landed() -> bool:
        return tables.count(site.lake, "landing") > SOME_ROWS

    def all_landed() -> bool:
        rows = tables.count(site.lake, "landing")
        stream = support_recorded.reference.stream
        return rows > 0 and tables.landed_readings(site.lake, stream) == len(some)

    with Site(tmp_path / "site", truth.written(tmp_path, some), DEVICES, *speed) as site:
        site.start_lander()
        site.start_agents()
        until(some_landed, site.standing)
        site.lander.kill()
        shutil.rmtree(site.lake)  # while there are readings to come
        site.start_lander()
        until(site.landed, site.standing)
        site.lander.kill()
        assert all_landed()

        shutil.rmtree(site.lake)  # when all have read, sent and landed everything
        site.start_lander()
        until(all_landed, site.standing)
        site.settle()
        site.merge(spark)
        site.stop()
    assert not tables.wrong(site.lake, some)
