"""A changed program is released to a real fleet, one by one: each stage is right and stated."""

import importlib
import json
import sys
from collections import defaultdict

import pytest

from lasp_edge.units import SECOND_US
from tests.brokers import until_true
from tests.device_agent.gateway.test_process import Gateway
from tests.device_agent.support_stage import NAME, Stage, asked

pytestmark = [pytest.mark.slow, pytest.mark.broker]
FORMER = """
from crdts import BoundedLWWSet
from lasp_edge import Program, folds

program = Program("{name}")
temperature = program.event("temperature", resolution="0.01", unit="°C")
samples = program.declare_dynamic(BoundedLWWSet(bound=30), "samples")
program.collect(temperature, into=samples)
program.fold_dynamic(program.fold(samples, folds.mean(), "local_average"), "global_average")
program.window("warm", source=temperature, fold=folds.sum(), size_s=20)
"""
RELEASED = (
    FORMER.replace("°C", "K").replace("bound=30", "bound=20").replace("folds.sum()", "folds.max()")
    + 'program.window("cold", source=temperature, fold=folds.min(), size_s=30, slide_s=10)\n'
)


class Release:
    """Two agents and a gateway, of the former program at first."""

    def __init__(self, stage, monkeypatch):
        self.stage, self._monkeypatch = stage, monkeypatch
        self.recorded = {name: stage.record(name, 100) for name in "ab"}
        self.lines = {name: self._file(name).read_text().splitlines(keepends=True) for name in "ab"}
        self.read = {}
        self.gateway = Gateway(stage, "--roster", "a,b", "--dead-after", "600")
        self.agents = {}

    def _file(self, device):
        return self.stage.directory / f"{device}.jsonl"

    def start(self, device, count):
        """Let an agent read so many readings in all, by the program that is there now."""
        if device in self.agents:
            assert self.agents[device].end() == 0
        self._file(device).write_text("".join(self.lines[device][:count]))
        self.read[device] = [(each.time_us, each.value) for each in self.recorded[device][:count]]
        self.agents[device] = self.stage.replay(device)
        until_true(lambda: self.agents[device].newest()["accepted"] == count)

    def change(self, text):
        (self.stage.directory / f"{NAME}.py").write_text(text.format(name=NAME))
        self._monkeypatch.delitem(sys.modules, NAME, raising=False)
        importlib.invalidate_caches()

    def rows(self, window, part):
        """Return start in seconds -> what the gateway has, and whom it names as left out."""
        printed = asked("windows", window, "--gateway", self.gateway.data, "--json")
        found = map(json.loads, printed.splitlines())
        return {
            row["start_us"] // SECOND_US: (row.get(part), row["devices_in"], row["excluded"])
            for row in found
        }

    def truth(self, fold, size_s, slide_s, devices, excluded=""):
        """Return what the readings of some devices give in each window, in plain Python."""
        inside = defaultdict(list)
        for device in devices:
            for time_us, value in self.read[device]:
                for n in range(size_s // slide_s):
                    start_s = (time_us // SECOND_US // slide_s - n) * slide_s
                    inside[start_s].append((device, round(value * 100)))
        return {
            at: (fold(v for _, v in each) / 100, len({d for d, _ in each}), excluded)
            for at, each in inside.items()
        }

    def value(self, device):
        """Return (total, count, settled) of the fleet's value as a device has it."""
        found = self.agents[device].newest()["values"].get("global_average", {})
        return found.get("total_q"), found.get("count"), found.get("settled")

    def fleet_value(self, **bounds):
        """Return the sum of the last readings of each device, and how many these are."""
        last = [
            round(v * 100) for name, bound in bounds.items() for _, v in self.read[name][-bound:]
        ]
        return sum(last), len(last), True

    def alarms(self):
        return [" ".join(self.agents[name].newest().get("alarms", ())) for name in "ab"]


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # a program of the same second and length
    stage = Stage(tmp_path, monkeypatch, FORMER)
    stage.lander.link.stop(0.0)
    release = Release(stage, monkeypatch)
    yield release
    release.gateway.kill()
    stage.close()


def is_foretold(fleet):
    """Assert that `check` tells beforehand what becomes of all, from what each place runs."""
    for place in (fleet.stage.directory / "a", fleet.gateway.data):
        words = ("check", f"{NAME}:program", "--against", place, "--no-run")
        found = asked(*words)
        assert "window warm begins again" in found
        assert "devices of the new one sent, and a gateway names the others in excluded." in found
        assert "window cold is new: each device makes it again of the readings" in found
        assert "temperature has another unit, K after °C: what is stored is not" in found
        assert "variable samples keeps other samples: the last 30 before, the last 20" in found
        assert "kept as it is: value global_average" in found


def are_stated(fleet):
    """Return whether each of two devices of different programs names the other's terms."""
    of_a, of_b = fleet.alarms()
    return (
        "b measures temperature in °C, here in K and keeps the last 30 of samples, here" in of_a
        and "a measures temperature in K, here in °C and keeps the last 20 of samples, her" in of_b
    )


def test_each_stage_of_a_release_is_right_and_is_what_check_said_before(fleet):
    for name in "ab":
        fleet.start(name, 50)
    before = fleet.truth(sum, 20, 20, "ab")
    until_true(lambda: fleet.rows("warm", "sum") == before)
    until_true(lambda: {fleet.value(name) for name in "ab"} == {fleet.fleet_value(a=30, b=30)})
    assert fleet.alarms() == ["", ""]
    fleet.change(RELEASED)
    is_foretold(fleet)

    # One device of two: the values mix, and both say so. The gateway keeps what it has.
    fleet.start("a", 75)
    until_true(lambda: {fleet.value(name) for name in "ab"} == {fleet.fleet_value(a=20, b=30)})
    until_true(lambda: are_stated(fleet))
    assert {at: row[:2] for at, row in fleet.rows("warm", "sum").items()} == {
        at: row[:2] for at, row in before.items()
    }

    # The gateway, too: rows are of the device that runs the new one, and name the other.
    fleet.gateway.kill()
    fleet.gateway.start()
    until_true(lambda: fleet.rows("warm", "max") == fleet.truth(max, 20, 20, "a", "b"))
    until_true(lambda: fleet.rows("cold", "min") == fleet.truth(min, 30, 10, "a", "b"))

    # All: every row is that of all readings, those of before included.
    for name in "ba":
        fleet.start(name, 100)
    until_true(lambda: fleet.rows("warm", "max") == fleet.truth(max, 20, 20, "ab"))
    until_true(lambda: fleet.rows("cold", "min") == fleet.truth(min, 30, 10, "ab"))
    until_true(lambda: {fleet.value(name) for name in "ab"} == {fleet.fleet_value(a=20, b=20)})
    until_true(lambda: fleet.alarms() == ["", ""])
