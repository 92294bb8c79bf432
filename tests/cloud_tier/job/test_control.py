"""Parameters change: the lake's windows are the gateway's, and those that the definition says."""

import pytest

from crdts import Replica
from lasp_edge.protocol.status import FINAL, REVISED
from tests.cloud_tier.job.support_control import S, LandedWorld, differing, lake_and_gateway

pytestmark = pytest.mark.spark


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
            world.say(parameter, scope, world.now_us + lead_s * S, value)
        world.live()
    world.settle()
    assert world.lake_found() == world.found() == world.truth()
    lake, gateway = lake_and_gateway(world)
    assert lake == gateway, differing(world)
    assert {FINAL, REVISED} <= {row[6] for row in lake}
    assert 0 in {row[3] for row in lake}, "windows that are no more have a row that says so"
    world.end()


def test_what_a_late_entry_touches_is_held_over_restarts_and_compaction(spark, tmp_path):
    world = LandedWorld(spark, tmp_path, 2, rough=False)
    for step in range(48):
        if step == 24:
            world.deaf.add("pi-2")
            world.say("offset", "", world.now_us - 100 * S, "10")
            final = {(row[0]) for row in lake_and_gateway(world)[0] if row[6] == FINAL}
        if step in {27, 35}:
            world.restart(Replica(1, step, "gateway"))
        if step == 31:
            world.maintain()
        if step == 40:
            assert not [row for row in lake_and_gateway(world)[0] if row[6] == REVISED]
            world.deaf.clear()
        world.live()
    world.settle()
    assert world.lake_found() == world.truth()
    lake, gateway = lake_and_gateway(world)
    assert lake == gateway, differing(world)
    revised = [row[0] for row in lake if row[6] == REVISED]
    assert len(revised) == len(set(revised)) > 5
    assert set(revised) <= final
    assert world.repaired() == 0
    world.end()
