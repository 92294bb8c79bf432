"""What is stored means what it meant when it was stored, whatever the program says now."""

import json
from dataclasses import replace

import pytest

from crdts import BoundedLWWSet, Counter, Replica, Version
from device_agent.agent.fleet.programs import bounds_of, units_of
from device_agent.console.command.line import write_plainly
from device_agent.console.command.status import plainly, status_of
from lasp_edge import Program, folds
from lasp_edge.protocol.frames import PresenceFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.release import RELEASE
from simulations.fleet import Fleet
from tests.device_agent.agents import Device
from tests.support_commands import member_command


def house(
    *,
    event="temperature",
    resolution="0.01",
    unit="",
    keyed=False,
    version=1,
    handler=False,
    declares=True,
    bound=10,
):
    """Return a program whose samples are of one event."""
    program = Program("house")
    events = {
        name: program.event(name, resolution=resolution, unit=unit)
        for name in ("temperature", "humidity")
    }
    if not declares:
        return program.plan()
    key = (lambda event: event.tags["room"]) if keyed else None
    samples = program.declare_dynamic(
        BoundedLWWSet(bound=bound), "samples", key=key, version=version
    )
    if handler:

        @program.on_event(events[event])
        def sampled(event, update):
            update(samples, BoundedLWWSet.add, event.value, event.time_us)

    else:
        program.collect(events[event], into=samples)
    program.fold_dynamic(program.fold(samples, folds.mean(), "here"), "everywhere")
    return program.plan()


@pytest.fixture
def device(tmp_path):
    return Device(tmp_path, house())


def run(device, **declared):
    device.program = house(**declared)
    device.restart()


def read(device, *values, event="temperature", room="attic"):
    for value in values:
        device.take([value], [None], [{"room": room}], name=event)


def mean(device):
    device.tick()
    return device.core.results.plain()["here"]["parts"].get("mean")


def set_aside(device):
    return device.core.report()["set_aside"]


def stored_bytes(device):
    """Return the bytes of all variables that the store holds, of whatever meaning."""
    variables = device.store.restored().variables.values()
    return sum(len(part) for keys in variables for parts in keys.values() for part in parts)


def test_a_finer_step_multiplies_what_is_stored(device):
    run(device, resolution="0.1")
    read(device, 30.0, 31.0)
    run(device, resolution="0.01")
    assert mean(device) == 30.5
    read(device, 30.02)
    assert device.core.results.local()["here"][""].partial == (2, 6100)
    device.tick()
    assert device.core.results.local()["here"][""].partial == (3, 9102)
    run(device, resolution="0.01")
    assert mean(device) == 91.02 / 3
    assert set_aside(device) == []


def test_a_coarser_step_divides_what_is_stored_if_every_value_is_one_of_its_steps(device):
    read(device, 30.0, 30.5)
    run(device, resolution="0.1")
    device.tick()
    assert device.core.results.local()["here"][""].partial == (2, 605)


def test_a_value_between_the_new_steps_sets_all_aside_and_the_former_program_finds_it(device):
    read(device, 30.0, 30.54)
    run(device, resolution="0.1")
    assert mean(device) is None
    (line,) = set_aside(device)
    assert line == (
        f"samples: samples of temperature in steps of 0.01, {stored_bytes(device)} bytes kept in "
        "the store and not used, since the program now declares samples of temperature in steps of "
        "0.1; to use it again, run a program that declares it as it was; to delete it, start the "
        "agent with --drop-set-aside"
    )
    read(device, 18.0)
    run(device, resolution="0.1")
    assert mean(device) == 18.0
    run(device)
    assert mean(device) == 30.27
    assert len(set_aside(device)) == 1  # what the other program stored waits as well


@pytest.mark.parametrize("handler", [False, True])
def test_samples_of_another_event_are_set_aside(device, handler):
    run(device, handler=handler)
    read(device, 30.0)
    run(device, event="humidity", handler=handler)
    assert mean(device) is None
    read(device, 60.0, event="humidity")
    assert mean(device) == 60.0
    run(device, handler=handler)
    assert mean(device) == 30.0


def test_what_a_program_does_not_declare_any_more_is_named(device):
    read(device, 30.0)
    run(device, declares=False)
    (line,) = set_aside(device)
    assert "since the program declares no such variable" in line
    run(device)
    assert mean(device) == 30.0


def test_values_that_would_leave_the_range_are_set_aside(device):
    run(device, resolution="1")
    read(device, 2**31 - 1)
    run(device, resolution="0.1")
    assert mean(device) is None
    assert len(set_aside(device)) == 1


def test_sets_with_keys_are_converted_all_or_none(device):
    run(device, keyed=True)
    read(device, 30.0, room="attic")
    read(device, 18.55, room="hall")
    run(device, keyed=True, resolution="0.1")
    device.tick()
    assert device.core.results.local()["here"] == {}
    run(device, keyed=True, resolution="0.001")
    device.tick()
    assert device.core.results.local()["here"] == {}  # it was not these that ran before
    run(device, keyed=True)
    run(device, keyed=True, resolution="0.001")
    device.tick()
    keys = device.core.results.local()["here"]
    assert {key: result.partial for key, result in keys.items()} == {
        "attic": (1, 30_000),
        "hall": (1, 18_550),
    }


def test_what_is_set_aside_is_deleted_where_that_is_asked_for(device):
    read(device, 30.0, 30.54)
    run(device, resolution="0.1")
    read(device, 18.0)
    device.tick()
    kept = stored_bytes(device)
    device.settings = replace(device.settings, drop_set_aside=True)
    device.restart()
    assert set_aside(device) == []
    assert 0 < stored_bytes(device) < kept
    assert mean(device) == pytest.approx(18.0)
    device.settings = replace(device.settings, drop_set_aside=False)
    run(device)
    assert mean(device) == pytest.approx(18.0), "30.0 and 30.54 are gone"


def test_status_and_the_line_of_the_agent_say_what_is_set_aside_and_who_runs_another_program(
    device, capsys
):
    read(device, 30.55)
    run(device, resolution="0.1")
    peers = {"pi-2": ("0123456789abcdef", RELEASE), "pi-3": (device.program.digest, "0.0.9")}
    peers["pi-4"] = (device.program.digest, RELEASE)
    for name, runs in peers.items():
        device.hear(
            PresenceFrame(Replica(1, 7, name), 1, online=True, program=runs[0], release=runs[1])
        )
    device.tick(20)
    status = status_of(device.store)
    assert status["set_aside"] == set_aside(device)
    assert status["other_programs"] == {name: peers[name] for name in ("pi-2", "pi-3")}
    text = plainly(status)
    assert "SET ASIDE      samples: samples of temperature in steps of 0.01" in text
    assert "OTHER PROGRAM  pi-2 runs program 0123456789abcdef, release 0.1.0" in text
    write_plainly(device.core.report() | {"trouble": ""})
    said = capsys.readouterr().out
    assert "ANOTHER PROGRAM OR RELEASE: pi-2, pi-3" in said
    assert "SET ASIDE: samples" in said
    assert json.loads(json.dumps(device.core.report()))["other_programs"]["pi-3"] == (
        f"the same program ({device.program.digest}), release 0.0.9"
    )
    device.restart()
    assert set(device.core.report()["other_programs"]) == {"pi-2", "pi-3"}
    same = {"program": device.program.digest, "release": RELEASE}
    device.hear(PresenceFrame(Replica(2, 8, "pi-2"), 1, online=True, **same))
    assert set(device.core.report()["other_programs"]) == {"pi-3"}


def presence_of(plan, name="pi-2"):
    states = {"units": units_of(plan), "bounds": bounds_of(plan)}
    frame = PresenceFrame(Replica(1, 7, name), 1, online=True, program=plan.digest, **states)
    return decode(frame.encode())


def test_a_device_that_keeps_other_samples_is_an_alarm_until_it_is_corrected(device, capsys):
    run(device)
    device.hear(presence_of(house(bound=50)))
    (alarm,) = device.core.report()["alarms"]
    words = "pi-2 keeps the last 50 of samples, here the last 10: their values are mixed up"
    assert alarm.startswith(words)
    write_plainly(device.core.report() | {"trouble": ""})
    assert f"ALARM: {alarm}" in capsys.readouterr().out
    device.hear(presence_of(house()))
    assert device.core.report()["alarms"] == []


def test_a_device_that_measures_in_another_unit_is_an_alarm_until_it_is_corrected(device, capsys):
    run(device, unit="°C")
    device.hear(presence_of(house(unit="°F")))
    (alarm,) = device.core.report()["alarms"]
    assert alarm.startswith(
        "pi-2 measures humidity in °F, here in °C, temperature in °F, here in °C: their values are"
    )
    write_plainly(device.core.report() | {"trouble": ""})
    assert f"ALARM: {alarm}" in capsys.readouterr().out
    device.hear(presence_of(house(unit="°C", version=2)))
    assert device.core.report()["alarms"] == []


def test_devices_that_measure_in_another_unit_alike_are_one_alarm_and_status_has_it(device):
    run(device, unit="°C")
    for name in ("pi-2", "pi-3", "pi-4", "pi-5"):
        device.hear(presence_of(house(unit="°F"), name))
    device.tick(20)
    (alarm,) = device.core.report()["alarms"]
    assert alarm.startswith("pi-2, pi-3, pi-4 and 1 more measure humidity in °F, here in °C, ")
    assert alarm.endswith("give all devices one program, or retire those")
    assert f"  ALARM          {alarm}" in plainly(status_of(device.store))
    for name in ("pi-2", "pi-3", "pi-4", "pi-5"):
        device.hear(presence_of(house(unit="°C", version=2), name))
    device.tick(20)
    assert "ALARM" not in plainly(status_of(device.store))


def test_a_retired_device_that_measured_in_another_unit_is_no_alarm(device):
    run(device, unit="°C")
    device.hear(presence_of(house(unit="°F")))
    retired = True, Version.of(Replica(1, 7, "pi-2"), 60)
    device.hear(member_command(Replica(1, 5, "operator"), 1, "pi-2", 1, *retired))
    assert device.core.report()["alarms"] == []


def test_a_program_without_units_states_none(device):
    frames = [device.core.beats.presence(online=True)]
    (presence,) = device.frames(PresenceFrame, frames)
    assert presence.units == {}
    assert "units" not in presence.extra()
    assert presence.bounds == {"samples": "the last 10"}
    run(device, unit="°C")
    (presence,) = device.frames(PresenceFrame, [device.core.beats.presence(online=True)])
    assert presence.units == {"humidity": "°C", "temperature": "°C"}


def test_a_mixed_fleet_never_adds_up_samples_of_different_events():
    new = house(event="humidity", handler=True)
    fleet = Fleet(house(handler=True), size=2, seed=5)
    fleet.devices["pi-1"].plan = new
    fleet.kill("pi-1")
    fleet.read("pi-0", "temperature", 20.0)
    fleet.read("pi-1", "humidity", 60.0)
    fleet.step(30)
    assert fleet.values("everywhere") == {"pi-0": {"": (1, 2000)}, "pi-1": {"": (1, 6000)}}
    for name, other in (("pi-0", "pi-1"), ("pi-1", "pi-0")):
        report = fleet.devices[name].report()
        assert list(report["other_programs"]) == [other]
    fleet.devices["pi-0"].plan = new
    fleet.kill("pi-0")
    fleet.step(30)
    assert fleet.values("everywhere") == {"pi-0": {"": (1, 6000)}, "pi-1": {"": (1, 6000)}}
    assert [device.report()["other_programs"] for device in fleet.running()] == [{}, {}]
    fleet.close()


def test_a_shared_variable_that_becomes_each_devices_own_is_another(tmp_path):
    def counting(*, shared):
        program = Program("house")
        temperature = program.event("temperature")
        declare = program.declare if shared else program.declare_dynamic
        total = declare(Counter(), "total")

        @program.on_event(temperature)
        def counted(_event, update):
            update(total, Counter.increment, 1)

        return program.plan()

    device = Device(tmp_path, counting(shared=False))
    read(device, 1.0)
    device.program = counting(shared=True)
    device.restart()
    assert device.core.variables.shared() == {"total": 0}
    (line,) = set_aside(device)
    assert (
        f"total: a PNCounter, {stored_bytes(device)} bytes kept in the store and not used" in line
    )
    assert "the program now declares a shared PNCounter" in line
