"""Derived sets on devices: made from what was heard of the fleet, equal where as much was heard."""

import json
from random import Random

import pytest

from crdts import GCounter, GSet, MVRegister, ORMap, ORSet
from device_agent.agent.settings import Settings
from lasp_edge import Program
from lasp_edge.dataflow import Definition, Oracle, at_least, cardinality
from lasp_edge.protocol.sharing import SharedFrame
from lasp_edge.units import SECOND_US
from simulations.fleet import ROUGH, Fleet
from tests.device_agent.agents import Device


def house():
    """Return a program in which doors are opened (+) and closed (-), and alarms go off."""
    program = Program("house")
    door = program.event("temperature")
    opened = program.declare(ORSet(), "open")
    seen = program.declare(GSet(), "seen")
    alarms = program.declare(GSet(), "alarms")
    moves = program.declare(GCounter(), "moves")

    @program.on_event(door)
    def moved(event, update):
        number = int(event.value)
        update(opened, "add" if number > 0 else "remove", abs(number))
        update(seen, "add", abs(number))
        update(moves, "increment", 1)

    upstairs = program.filter(opened, lambda number: number >= 100, "upstairs")
    program.map(upstairs, lambda number: number // 100, "floors")
    program.map(seen, lambda number: 100 // (number - 7), "all but seven")
    program.bind_to("all moves", moves)

    @program.on_threshold(moves, at_least(3))
    def often(value, update):
        update(alarms, "add", ("moves", value))

    @program.on_threshold(alarms, cardinality(1))
    def alarmed(value, update):
        update(alarms, "add", "somebody moves")

    return program.plan()


@pytest.fixture
def device(tmp_path):
    return Device(tmp_path, house())


def derived(device):
    return {name: device.core.results.plain()[name] for name in ("upstairs", "floors", "all moves")}


def test_derived_sets_stand_among_the_results(device):
    device.read([101, 102, 5, 201, -201])
    device.tick()
    assert derived(device) == {
        "upstairs": {"parts": {"size": 2}, "elements": [101, 102]},
        "floors": {"parts": {"size": 1}, "elements": [1]},
        "all moves": {"parts": {"value": 5}},
    }
    assert json.loads(json.dumps(device.core.report()))["values"]["floors"]["elements"] == [1]


def test_what_was_derived_is_made_again_from_the_store(device):
    device.read([101, 102, -101])
    device.tick()
    before = derived(device)
    device.restart()
    assert derived(device) == before
    device.read([-102])
    device.tick()
    assert derived(device)["upstairs"] == {"parts": {"size": 0}, "elements": []}


def test_a_change_is_published_once_among_the_results(tmp_path):
    device = Device(tmp_path, house(), settings=Settings(results_us=SECOND_US))
    topic = device.core.agent.topics.result("upstairs", device.name)
    device.read([101])
    device.tick(2)
    device.sent.clear()
    device.tick(2)
    assert topic not in [publication.topic for publication in device.sent]
    device.read([-101])
    device.tick(2)
    (said,) = [publication.payload for publication in device.sent if publication.topic == topic]
    assert json.loads(said) == {"parts": {"size": 0}, "elements": []}


def test_a_function_that_fails_is_counted(device):
    device.read([7, 8])
    device.tick(20)
    device.tick(20)
    assert device.core.results.plain()["all but seven"]["elements"] == [100]
    (reason,) = device.core.agent.guard.reasons
    assert reason.startswith("failed: all but seven: ")
    assert "test_derived.py:" in reason
    assert device.core.counters.totals[reason] == 1


def test_handlers_run_once_when_their_thresholds_are_reached(device):
    device.read([1, 2])
    device.tick()
    assert device.core.variables.shared()["alarms"] == frozenset()
    device.read([3, 4])
    device.tick()
    found = {("moves", 4), "somebody moves"}
    assert device.core.variables.shared()["alarms"] in (found, {("moves", 3), "somebody moves"})
    before = device.core.variables.shared()["alarms"]
    device.read([5])
    device.tick()
    assert device.core.variables.shared()["alarms"] == before
    device.restart()
    assert device.core.variables.shared()["alarms"] == before, "what they asked for is durable"


def test_a_handler_that_fails_changes_nothing_and_is_counted(tmp_path):
    program = Program("p")
    event = program.event("temperature")
    count = program.declare(GCounter(), "count")
    seen = program.declare(GSet(), "seen")

    @program.on_event(event)
    def counted(event, update):
        update(count, "increment", 1)

    @program.on_threshold(count, at_least(1))
    def broken(value, update):
        update(seen, "add", value)
        raise RuntimeError("not today")

    @program.on_threshold(count, at_least(1))
    def unfit(value, update):
        update(seen, "add", value)
        update(seen, "add", 1.5)

    device = Device(tmp_path, program.plan())
    device.read([1])
    device.tick(20)
    assert device.core.variables.shared() == {"count": 1, "seen": frozenset()}
    totals = device.core.counters.totals
    reasons = [reason.partition(" (")[0] for reason in device.core.agent.guard.reasons]
    assert "failed: on_threshold of count: RuntimeError: not today" in reasons
    assert [totals[reason] for reason in device.core.agent.guard.reasons] == [1, 1]
    assert sum(n for name, n in totals.items() if "an element needs" in name) == 1


def test_values_of_every_kind_are_plain_among_the_results(tmp_path):
    program = Program("p")
    event = program.event("temperature")
    rooms = program.declare(ORMap(ORSet()), "rooms")
    setpoint = program.declare(MVRegister(), "setpoint")
    seen = program.declare(GSet(), "seen")
    program.bind_to("rooms again", rooms)
    program.bind_to("setpoint again", setpoint)
    program.product(seen, seen, "pairs")

    @program.on_event(event)
    def handled(event, update):
        update(rooms, ORMap.update, "attic", ORSet.add, b"\x01")
        update(setpoint, "write", "warm")
        update(seen, "add", b"\xff")

    device = Device(tmp_path, program.plan())
    device.read([1])
    device.tick()
    found = json.loads(json.dumps(device.core.results.plain()))
    assert found == {
        "rooms again": {"parts": {}, "value": {"attic": ["01"]}},
        "setpoint again": {"parts": {}, "value": ["warm"]},
        "pairs": {"parts": {"size": 1}, "elements": [["ff", "ff"]]},
    }


def test_two_devices_derive_the_same_from_each_others_entries(tmp_path):
    a, b = (Device(tmp_path / name, house(), name=name) for name in "ab")
    a.read([101, 5])
    b.read([202, 301, -301])
    for device in (a, b):
        device.tick()
    for here, there in ((a, b), (b, a), (a, b)):
        for frame in here.frames(SharedFrame):
            there.hear(frame)
    assert derived(a) == derived(b)
    assert derived(a)["upstairs"]["elements"] == [101, 202]


def test_a_device_removes_what_another_one_added(tmp_path):
    a, b = (Device(tmp_path / name, house(), name=name) for name in "ab")
    a.read([101, 102, 201])
    a.tick()
    for frame in a.frames(SharedFrame):
        b.hear(frame)
    b.read([-101, 5, -102])
    b.tick()
    assert derived(b)["upstairs"]["elements"] == [201]
    assert derived(b)["all moves"]["parts"]["value"] == 6
    b.restart()
    b.tick()
    assert derived(b)["upstairs"]["elements"] == [201], "b's store has what it heard of a"
    for frame in b.frames(SharedFrame):
        a.hear(frame)
    assert derived(a)["upstairs"]["elements"] == [201]
    for frame in a.frames(SharedFrame):
        b.hear(frame)
    assert derived(b) == derived(a), "and b knows still what it removed"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_rough_fleet_derives_the_same_everywhere_as_the_oracle_from_what_is_shared(seed):
    fleet, random = Fleet(house(), size=4, seed=seed, faults=ROUGH), Random(seed)
    for _ in range(25):
        for device in fleet.devices:
            number = random.choice([5, 101, 102, 201, 202, 301])
            fleet.read(device, "temperature", random.choice([number, number, -number]))
        fleet.step()
    fleet.settle()
    program = fleet.plan
    definitions = {
        name: Definition(made.operator, made.sources, program.functions.derived.get(name))
        for name, made in program.derivations.items()
    }
    told = []
    for agent in fleet.devices.values():
        variables = agent.core.variables
        shared = {name: state.whole for name, state in variables.shared_states.items()}
        oracle = Oracle(definitions, shared)
        told.append({name: agent.core.results.plain()[name] for name in definitions})
        for name in ("upstairs", "floors", "all but seven"):
            assert told[-1][name]["elements"] == sorted(oracle.value(name)), f"seed {seed}"
        assert told[-1]["all moves"]["parts"]["value"] == oracle.value("all moves")
        assert "somebody moves" in variables.shared()["alarms"]
    assert told == [told[0]] * 4, f"seed {seed}"
    assert told[0]["upstairs"]["elements"], "else this says little"
    fleet.close()
