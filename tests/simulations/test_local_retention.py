"""A scan with local events where devices retain less than the time for which a gateway was away."""

from random import Random
from types import SimpleNamespace

import pytest

from device_agent.agent.intake import intake
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.units import SECOND_US
from simulations.lake_parted import LakeBeside
from simulations.world.local_events import synced
from simulations.world.narrow import narrowed
from simulations.world.run import run
from simulations.world.scenario import scenario_of
from tests.simulations.test_local_absences import rows
from tests.simulations.test_local_events import PLAN, fleet_of
from tests.simulations.test_local_lost_stores import slices

PRUNES_OFTEN = [(intake, "PRUNE_US", 5 * SECOND_US)]
ALL = ("pi-0", "pi-1", "pi-2")


def away_for(fleet, steps):
    """Cut the gateways off, and let devices read on; each event in order ends a slice."""
    for sink in fleet.sinks:
        sink.cut_until = fleet.step_number + steps
    slices(fleet, steps // 8)


@pytest.mark.parametrize("restarts", [False, True])
def test_events_in_order_older_than_what_devices_retain_are_passed_and_name_them(restarts):
    """Each device states that it has nothing more to give there; the lake has the same rows."""
    with narrowed(PRUNES_OFTEN), fleet_of(DEFAULT_SINK, retain_s=30) as fleet:
        lake = LakeBeside(SimpleNamespace(world=fleet, plan=PLAN), Random(1), result="found")
        slices(fleet, 2)
        fleet.pass_steps(20)
        away_for(fleet, 80)
        if restarts:
            for name in ALL:
                fleet.end(name, fleet.devices[name], 1)
        lake.batch()
        fleet.pass_steps(300)
        slices(fleet, 3)
        for device in fleet.running():
            device.durable.core.handle_end()
        fleet.pass_steps(30)
        lake.batch()
        assert not list(lake.wrong(is_settled=True))
        found = rows(fleet)
        assert len(found) == len(fleet.content["b"]) == 15
        assert TENTATIVE not in {status for _, _, status, _ in found}
        passed = [(value[1], set(names)) for value, names, *_ in found]
        assert passed[:3] == [(2, set())] * 3
        assert passed[9:] == [(2, set())] * 6, "they retain these"
        lacking = [names for count, names in passed[3:9] if count < 2]
        assert lacking
        assert all(names >= {"pi-0", "pi-1"} for names in lacking)
        assert all(value[2] == value[0] * value[1] for value, *_ in found), "of one share each"


@pytest.mark.parametrize("seed", [116, 1120])
def test_a_world_settles_whose_devices_retain_less_than_a_sink_was_away(seed):
    """Seed 1120: of an event in order that is gone they learn once it is older than that."""
    assert not run(synced(scenario_of(seed))).trouble
