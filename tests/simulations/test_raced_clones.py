"""Two clones outbid each other, one ends, and a gateway starts again: all that is left lands."""

import pytest

from lasp_edge.protocol.sinks import DEFAULT_SINK
from simulations.world.faults import Fault
from simulations.world.run import run
from simulations.world.scenario import Scenario

BEGINS, RACED = 40, 320
"""The first step in which both run, and how many until one has no further incarnation at once."""
ENDS = BEGINS + RACED


@pytest.mark.parametrize(
    "schedule",
    [
        (),
        (Fault(ENDS + 1, "power_lost", "", 0),),
        (Fault(ENDS - 40, "gateway_1970", "", 60), Fault(ENDS + 1, "power_lost", "", 0)),
    ],
    ids=["gateway goes on", "gateway starts again", "gateway starts in 1970"],
)
def test_the_clone_that_is_left_is_the_later_one_everywhere(schedule):
    race = Fault(BEGINS, "clone", "pi-0", RACED)
    steps, faults = ENDS + 30, tuple(sorted([race, *schedule]))
    outcome = run(Scenario(3, 2, steps, schedule=faults, gateways=(DEFAULT_SINK,)))
    assert outcome.seen["clone"]
    assert outcome.trouble == ()
