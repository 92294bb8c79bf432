"""A device's own windows are what Spark gives for a fleet of this device alone."""

import argparse
import json
from random import Random

import pytest

from device_agent.console.command import status
from device_agent.console.own_windows import own_windows
from lasp_edge.errors import UsageError
from lasp_edge.examples.greenhouse import program
from lasp_edge.units import SECOND_US
from simulations import oracle
from simulations.oracle import Reading
from tests.device_agent.agent.rebuilding.test_missing import Fleet, wander
from tests.device_agent.agents import NOW_US, Device, greenhouse

ROOMS = ("attic", "", "kitchen")


def some_readings(device, seed, *, minutes=4):
    """Let a device read over some minutes, late and repeated readings and a restart among them."""
    drawn = Random(seed)
    found = []
    for step in range(minutes * 6):
        now_us = NOW_US + step * 10 * SECOND_US
        for _ in range(drawn.randint(0, 3)):
            room = drawn.choice(ROOMS)
            reading = Reading(
                "pi-1",
                "temperature",
                drawn.randint(-500, 3000) / 100,
                now_us - drawn.randint(0, 60) * SECOND_US,
                {"room": room},
            )
            for _ in range(drawn.randint(1, 2)):
                device.take([reading.value], [reading.time_us], [dict(reading.tags)])
            found.append(reading)
        device.tick(10)
        if drawn.random() < 0.1:
            device.restart()
    return found


def newest(truth, slide_us, last):
    """Return the windows of the last starts before the newest reading."""
    starts = sorted({start_us for _, start_us in truth})[-last:]
    first_us = starts[-1] - (last - 1) * slide_us
    return {at: each.partial for at, each in truth.items() if at[1] >= first_us}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("size_s", "slide_s"), [(60, 10), (50, 20), (30, 30)])
def test_own_windows_equal_the_recomputation(tmp_path, seed, size_s, slide_s):
    plan = greenhouse(size_s=size_s, slide_s=slide_s, keyed=True)
    device = Device(tmp_path, plan)
    readings = some_readings(device, seed)
    truth = oracle.windows(plan, "by_room", readings)
    window = plan.windows["by_room"]
    for last in (1, 3, 1_000):
        made = own_windows(device.store, plan, window, last)
        found = {(each.key, each.start_us): each.partial for each in made}
        assert found == newest(truth, window.slide_us, last), f"replay with seed={seed}"


def test_a_window_is_closed_once_a_later_reading_has_come(tmp_path):
    plan = greenhouse(size_s=20, slide_s=20)
    device = Device(tmp_path, plan)
    start_us = NOW_US // (20 * SECOND_US) * 20 * SECOND_US
    device.read([1.0], [start_us])
    device.tick(1)
    (first,) = own_windows(device.store, plan, plan.windows["by_room"], 5)
    assert not first.closed
    device.read([1.0], [start_us + 21 * SECOND_US])
    device.tick(20)
    device.core.handle_stop()
    device.tick(20)
    first, second = own_windows(device.store, plan, plan.windows["by_room"], 5)
    assert (first.closed, second.closed) == (True, False)


def run(capsys, *words):
    parser = argparse.ArgumentParser()
    status.add_arguments(parser)
    assert status.run(parser.parse_args(list(map(str, words)))) == 0
    return capsys.readouterr().out


def test_status_prints_the_last_windows(tmp_path, capsys):
    device = Device(tmp_path, program.plan())
    words = ("lasp_edge.examples.greenhouse:program", "--data-dir", tmp_path, "--windows", 2)
    assert "window temperature_by_room: no readings yet" in run(capsys, *words)
    device.read([21.5, 22.5], [NOW_US, NOW_US], tags={"room": "attic"})
    device.tick(10)
    printed = run(capsys, *words)
    assert "window temperature_by_room, over this device's own readings:" in printed
    rows = [line.split() for line in printed.splitlines() if line.startswith("  attic")]
    assert [row[-3] for row in rows] == ["22.00", "22.00"]
    told = json.loads(run(capsys, *words, "--json"))["windows"]["temperature_by_room"]
    assert [(each["key"], each["count"], each["total_q"]) for each in told] == [
        ("attic", 2, 4400)
    ] * 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--windows"], "--windows needs the program"),
        (["lasp_edge.examples.greenhouse:program", "--windows", "0"], "a number from 1"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, words, said):
    parser = argparse.ArgumentParser()
    status.add_arguments(parser)
    with pytest.raises(UsageError, match=said):
        status.run(parser.parse_args([*words, "--data-dir", str(tmp_path)]))


# With parameters


@pytest.mark.parametrize("seed", range(4))
def test_own_windows_are_those_of_the_regimes(tmp_path, seed):
    fleet = Fleet(tmp_path)
    device = fleet.device
    wander(fleet, Random(100 + seed), steps=25)
    for parameter, scope in fleet.log.lanes():
        fleet.tell(parameter, scope)
    device.read(
        [float(n % 7) for n in range(60)],
        [device.now_us - n * 5 * SECOND_US for n in range(60)],
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


def test_status_prints_windows_with_parameters(tmp_path, capsys):
    fleet = Fleet(tmp_path)
    words = argparse.ArgumentParser()
    status.add_arguments(words)
    program = "tests.device_agent.console.command.support_parameters:program"
    asked = words.parse_args([program, "--data-dir", str(tmp_path), "--windows", "1", "--json"])
    fleet.device.read([20.0], [NOW_US], {"room": "hall"})
    fleet.say("offset", "cellar", NOW_US - 60 * SECOND_US, "3")
    fleet.build()
    assert status.run(asked) == 0
    told = json.loads(capsys.readouterr().out)["windows"]
    assert [(each["key"], each["parts"]) for each in told["by_room"]] == [("hall", {"mean": 23.0})]
    assert [each["parts"] for each in told["sums"]] == [{"sum": 23.0}]
