"""The lake is lost, or put back, while the agents live on: they fill it with all that they hold."""

import shutil

import pytest

from tests.end_to_end import support_recorded, tables, truth
from tests.end_to_end.support_site import Site, until

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.broker]
DEVICES = ["iot-device-01", "iot-device-02", "iot-device-03"]
LINES = 2_000
LASTS_S = 8.0
SOME_ROWS = 500


def go_on(site, landed, put_back=None):
    """Let the lander end, its lake be lost or put back, and another one fill that."""
    site.lander.kill()
    shutil.rmtree(site.lake)
    if put_back is not None:
        shutil.move(put_back, site.lake)  # with its log
    site.start_lander()
    until(landed, site.standing)


def test_a_lake_that_was_lost_or_put_back_is_filled_again(tmp_path, lines, spark):
    some, image = lines[:LINES], tmp_path / "image"
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
        shutil.copytree(site.lake, image)
        site.start_lander()
        until(site.landed, site.standing)
        go_on(site, all_landed, image)
        go_on(site, all_landed)  # when all have read, sent and landed everything
        site.settle()
        site.merge(spark)
        site.stop()
    assert not tables.wrong(site.lake, some)
