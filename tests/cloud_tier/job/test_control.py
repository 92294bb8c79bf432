"""Parameters change: the lake's windows are the gateway's, and those that the definition says."""

import pytest

from lasp_edge.protocol.status import FINAL, REVISED
from tests.cloud_tier.job.support_control import LandedWorld
from tests.cloud_tier.job.test_gateway import lake_rows

pytestmark = pytest.mark.spark


def gateway_rows(world):
    rows = [tuple(row) for rows in world.gateway.revisions.values() for row in rows]
    return sorted(rows, key=lambda row: (row[0], row[7]))


def test_five_entries_give_the_rows_of_the_gateway(spark, tmp_path):
    world = LandedWorld(spark, tmp_path, 3, rough=False)
    entries = {
        6: ("offset", "", 60, "10"),
        12: ("offset", "pi-1", -40, "-1.5"),
        18: ("above", "", -50, "0"),
        26: ("span_s", "", -70, "60"),
        34: ("step_s", "", -90, "30"),
    }
    for step in range(48):
        if step in entries:
            parameter, scope, lead_s, value = entries[step]
            world.say(parameter, scope, world.now_us + lead_s * 1_000_000, value)
        world.live()
    world.settle()
    world.merge()
    assert world.found() == world.truth()
    assert world.lake_found() == world.truth()
    assert lake_rows(world.lake) == gateway_rows(world)
    statuses = {row[6] for row in lake_rows(world.lake)}
    assert {FINAL, REVISED} <= statuses
    world.end()
