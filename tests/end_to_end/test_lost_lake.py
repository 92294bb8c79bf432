"""The lake is lost while the agents live on: they fill another one with all that they hold."""

import shutil

import pytest

from tests.end_to_end import tables, truth
from tests.end_to_end.processes import STARTS_S, Site, until

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.broker]
DEVICES = ["iot-device-01", "iot-device-02", "iot-device-03"]
LINES = 2_000
LASTS_S = 12.0
SOME_ROWS = 500


def test_a_lost_lake_is_filled_again(tmp_path, lines):
    some = lines[:LINES]
    speed = truth.speed(some, LASTS_S)

    def some_landed() -> bool:
        return tables.count(site.lake, "landing") > SOME_ROWS

    with Site(tmp_path / "site", truth.written(tmp_path, some), DEVICES, *speed) as site:
        site.start_cloud()
        site.start_agents()
        until(some_landed, STARTS_S, site.standing)
        site.cloud.kill()
        shutil.rmtree(site.lake)
        site.start_cloud()
        site.settle()
        site.finish_cloud()
        assert not tables.wrong(site.lake, some), "lost while there were readings to come"

        shutil.rmtree(site.lake)
        site.start_cloud()
        until(some_landed, STARTS_S, site.standing)
        site.settle()
        site.finish_cloud()
        assert not tables.wrong(site.lake, some), "lost when everything had been read"
        site.stop()
