"""Scans whose arguments are parameters, and windows over them that parameters change."""

from random import Random

import pytest

from simulations.world.controlled import streamed
from tests.device_agent.agent.rebuilding.support_operated import Fleet, wander

PLAN = streamed(scale=5).plan()


@pytest.mark.parametrize("seed", range(8))
def test_panes_equal_the_truth_whatever_was_said_and_when(tmp_path, seed):
    fleet = Fleet(tmp_path, PLAN)
    wander(fleet, Random(seed), takes_back=True)
    for parameter, scope in fleet.log.lanes():
        fleet.tell(parameter, scope)
    fleet.build()
    fleet.check()
    assert any(fleet.windows(name) for name in PLAN.windows)
