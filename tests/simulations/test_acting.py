"""Devices of a rough fleet act on its value: never twice on one, and at last all on the same."""

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from simulations.fleet import ROUGH, Fleet
from simulations.world.process import AgentProcess


def house(moved):
    """Return a program with an alert on its mean, which tells `moved` of each value."""
    program = Program("house")
    temperature = program.event("temperature", resolution="0.1")
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.collect(temperature, into=samples)
    everywhere = program.fold_dynamic(program.fold(samples, folds.mean(), "here"), "everywhere")
    program.on_value(everywhere)(lambda value, update: moved(value))
    program.alert("too warm", everywhere, above=22, below=20)
    return program.plan()


@pytest.mark.parametrize("seed", range(3))
def test_no_device_acts_twice_on_one_inputs_whatever_happens(seed, monkeypatch):
    seen, at_work = [], [""]
    plan = house(lambda value: seen.append((at_work[0], value.inputs)))
    tick = AgentProcess.tick

    def noted(device, now_us):
        at_work[0] = device.name
        yield from tick(device, now_us)

    monkeypatch.setattr(AgentProcess, "tick", noted)
    fleet = Fleet(plan, size=4, seed=seed, faults=ROUGH)
    for step in range(60):
        fleet.read(f"pi-{step % 4}", "temperature", 15 + step % 11)
        fleet.step(2)
    fleet.settle()
    fleet.step(90)
    assert len(seen) == len(set(seen)), f"replay with seed {seed}"
    results = fleet.results("everywhere")
    last = dict(seen)
    assert {name: last[name] for name in results} == {
        name: by_key[""].inputs for name, by_key in results.items()
    }
    states = {device.report()["alerts"]["too warm"]["state"] for device in fleet.running()}
    assert len(states) == 1
    fleet.close()
