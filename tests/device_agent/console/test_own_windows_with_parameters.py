"""A device's own windows with parameters are those of the oracle for this device alone."""

import argparse
import json
from random import Random

import pytest

from device_agent.console.command import status
from device_agent.console.own_windows import own_windows
from lasp_edge.units import SECOND_US as S
from tests.device_agent.agent.rebuilding.test_missing import Fleet, wander
from tests.device_agent.agents import NOW_US


def starts_of(truth, last):
    """Return the windows of the last starts of a truth, of which each start has a window."""
    starts = sorted({start_us for _, start_us in truth})
    return {at: each for at, each in truth.items() if at[1] in starts[-last:]}


@pytest.mark.parametrize("seed", range(4))
def test_own_windows_are_those_of_the_regimes(tmp_path, seed):
    fleet = Fleet(tmp_path)
    device = fleet.device
    wander(fleet, Random(100 + seed), steps=25)
    for parameter, scope in fleet.log.lanes():
        fleet.tell(parameter, scope)
    device.read(
        [float(n % 7) for n in range(60)],
        [device.now_us - n * 5 * S for n in range(60)],
        {"room": "hall"},
    )
    fleet.build()
    for name, window in fleet.plan.windows.items():
        truth = fleet.truth(name)
        made = own_windows(device.store, fleet.plan, window, 10_000)
        assert {(each.key, each.start_us): each.partial for each in made} == truth
        few = own_windows(device.store, fleet.plan, window, 2)
        first_us = min(each.start_us for each in few)
        assert {(each.key, each.start_us): each.partial for each in few} == {
            at: partial for at, partial in truth.items() if at[1] >= first_us
        }
        assert len({each.start_us for each in few}) <= 2
    device.kill()


def test_status_prints_windows_with_parameters(tmp_path, capsys):
    fleet = Fleet(tmp_path)
    words = argparse.ArgumentParser()
    status.add_arguments(words)
    program = "tests.device_agent.console.command.support_parameters:program"
    asked = words.parse_args([program, "--data-dir", str(tmp_path), "--windows", "1", "--json"])
    fleet.device.read([20.0], [NOW_US], {"room": "hall"})
    fleet.say("offset", "cellar", NOW_US - 60 * S, "3")
    fleet.build()
    assert status.run(asked) == 0
    told = json.loads(capsys.readouterr().out)["windows"]
    assert [(each["key"], each["parts"]) for each in told["by_room"]] == [("hall", {"mean": 23.0})]
    assert [each["parts"] for each in told["sums"]] == [{"sum": 23.0}]
    fleet.device.kill()
