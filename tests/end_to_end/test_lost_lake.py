"""The lake is lost while the agents live on: they fill another one with all that they hold."""

import shutil

import pytest

from tests.end_to_end import tables, truth
from tests.end_to_end.processes import SETTLES_S, STARTS_S, Site, until

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.broker]
DEVICES = ["iot-device-01", "iot-device-02", "iot-device-03"]
LINES = 2_000
LASTS_S = 12.0


def test_a_lost_lake_is_filled_again(tmp_path, lines):
    some = lines[:LINES]
    path = tmp_path / "some.jsonl"
    path.write_text("".join(some), encoding="utf-8")
    speed = truth.lasts_s(some) / LASTS_S
    truths = {name: tables.expected(truth.windows(some, name), name) for name in truth.WINDOWS}

    def wrong() -> list[str]:
        pairs = ((tables.held(site.lake, name), truths[name]) for name in truths)
        return [text for found, given in pairs if (text := tables.difference(found, given))]

    with Site(tmp_path / "site", path, DEVICES, "--speed", f"{speed:.3f}") as site:
        site.start_cloud()
        site.start_agents()
        until(lambda: tables.count(site.lake, "landing") > 500, STARTS_S, site.standing)
        site.cloud.kill()
        shutil.rmtree(site.lake)
        site.start_cloud()
        site.settle()
        site.finish_cloud()
        assert not wrong(), "lost while there were readings to come"

        shutil.rmtree(site.lake)
        site.start_cloud()
        until(lambda: tables.count(site.lake, "landing") > 500, SETTLES_S, site.standing)
        site.settle()
        site.finish_cloud()
        assert not wrong(), "lost when everything had been read"
        site.stop()
