"""The world knows what devices may do with values, and who counts: bugs in that are found."""

from dataclasses import replace

import pytest

from simulations.planted import of_acting
from simulations.planted.bug import BUGS
from simulations.world.faults import Fault
from simulations.world.run import run
from simulations.world.scenario import Scenario

assert of_acting, "it fills the table"

SILENT = Scenario(seed=3, size=2, steps=12, acting=True)
IDLE = replace(SILENT, size=3)
AT_WORK = Scenario(seed=3, size=2, steps=60, schedule=(Fault(50, "kill", "pi-0", 1),), acting=True)


@pytest.mark.parametrize("scenario", [SILENT, IDLE, AT_WORK], ids=["silent", "idle", "at work"])
def test_a_world_that_acts_ends_with_the_truth(scenario):
    assert run(scenario).trouble == ()


@pytest.mark.parametrize(
    ("name", "scenario", "said"),
    [
        ("a_silent_device_is_never_noted", SILENT, "though pi-0 alone is silent"),
        ("a_note_on_a_silent_device_is_taken_back_at_once", SILENT, "though pi-0 alone is silent"),
        ("beats_tell_nothing_of_who_is_there", IDLE, "though pi-0 alone is silent"),
        (
            "a_handler_is_called_each_time_that_anything_moves",
            AT_WORK,
            "called twice for one inputs",
        ),
    ],
)
def test_a_bug_of_acting_is_found(name, scenario, said):
    with BUGS[name].plant():
        (trouble, *_) = run(scenario).trouble
    assert said in trouble
