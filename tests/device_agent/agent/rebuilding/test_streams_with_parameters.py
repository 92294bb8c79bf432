"""Scans whose arguments are parameters, and windows over them that parameters change."""

from dataclasses import replace
from random import Random

import pytest

from lasp_edge.units import SECOND_US as S
from simulations.world.controlled import streamed
from tests.device_agent.agent.rebuilding.support_operated import SETTINGS, Fleet, wander
from tests.device_agent.agents import NOW_US

PLAN = streamed(scale=5).plan()


@pytest.mark.parametrize("seed", range(8))
def test_panes_equal_the_truth_whatever_was_said_and_when(tmp_path, seed):
    # Every second one packs most of its items away, so an entry changes what is behind the cuts.
    fleet = Fleet(tmp_path, PLAN, replace(SETTINGS, live_items=8 if seed % 2 else 10_000))
    wander(fleet, Random(seed), takes_back=True)
    for parameter, scope in fleet.log.lanes():
        fleet.tell(parameter, scope)
    fleet.build()
    fleet.check()
    assert any(fleet.windows(name) for name in PLAN.windows)


def test_an_entry_behind_the_cuts_changes_all_since(tmp_path):
    fleet = Fleet(tmp_path, PLAN, replace(SETTINGS, live_items=8))
    device = fleet.device
    for n in range(60):
        device.read([n / 10, -n / 10], [NOW_US + 7 * n * S, NOW_US + 7 * n * S + 3], {"room": "a"})
        device.tick()
    assert device.core.streams.engine.since_us > NOW_US + 60 * S
    for parameter, value in (("offset", "10"), ("span_s", "60")):
        before = {name: fleet.windows(name) for name in PLAN.windows}
        fleet.say(parameter, "", NOW_US + 9 * S, value)
        fleet.build()
        fleet.check()
        assert before != {name: fleet.windows(name) for name in PLAN.windows}, parameter
        device.restart()
