"""Scans whose arguments are parameters, and windows over them that parameters change."""

from dataclasses import replace
from random import Random

import pytest

from simulations.world.controlled import streamed
from tests.device_agent.agent.rebuilding.support_operated import SETTINGS, Fleet, wander

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
