"""A fleet in a real Home Assistant: entity by entity, over a new program and a retirement.

It is skipped unless the environment names a Home Assistant, which has a Python of its own: that
takes a minute.
"""

import pytest

from tests.brokers import until_true
from tests.device_agent.support_stage import NAME
from tests.end_to_end.secured import OpenFleet
from tests.end_to_end.support_home_assistant import HASS, NEEDED, RealHomeAssistant

pytestmark = [
    pytest.mark.broker,
    pytest.mark.slow,
    pytest.mark.skipif(not HASS, reason=NEEDED),
]

PROGRAM = f"""
from crdts import BoundedLWWSet
from lasp_edge import Program, folds, scans

program = Program("{NAME}")
temperature = program.event("temperature", resolution="0.1", unit="°C", title="Temperature")
samples = program.declare_dynamic(BoundedLWWSet(bound=100), "samples")
rooms = program.declare_dynamic(BoundedLWWSet(bound=9), "rooms", key=lambda e: e.tags["room"])

@program.on_event(temperature)
def sampled(event, update):
    update(samples, BoundedLWWSet.add, event.value, event.time_us)
    update(rooms, BoundedLWWSet.add, event.value, event.time_us)

here = program.fold(samples, folds.mean(), "local_average")
everywhere = program.fold_dynamic(here, "global_average")
program.show(everywhere, title="House")
program.alert("too warm", everywhere, above=1000)
peak = scans.pattern(lambda event: event.value > 0)
program.result(program.scan("peak", source=temperature, scan=peak, per_device=True))
"""
OLD = 'program.fold_dynamic(program.fold(rooms, folds.count(), "room_here"), "by_room")\n'
NEW = 'program.fold_dynamic(program.fold(samples, folds.max(), "warmest_here"), "warmest")\n'
FLEET = NAME
OF_KITCHEN = {
    "local average": ("°C", "temperature", "measurement"),
    "peak": (None, "timestamp", None),
    "room here (kitchen)": (None, None, "measurement"),
    "readings": (None, None, "total_increasing"),
    "refused readings": (None, None, "total_increasing"),
    "clock": (None, "problem", None),
    "alarms": (None, "problem", None),
}
OF_FLEET = {
    "House": ("°C", "temperature", "measurement"),
    "by room (attic)": (None, None, "measurement"),
    "by room (kitchen)": (None, None, "measurement"),
    "too warm": (None, "problem", None),
    "all devices here": (None, "connectivity", None),
    "alarms": (None, "problem", None),
}


class HomeFleet(OpenFleet):
    """A fleet with a program of its own, each of whose devices is announced."""

    def write(self, more):
        (self.directory / f"{NAME}.py").write_text(PROGRAM + more)

    def announced(self, device):
        url = "http://127.0.0.1:8700/"
        more = ("--home-assistant", "--with-tag", f"room={device}", "--dashboard-url", url)
        return self.agent(device, *self.login(device), *more)


def of(home, device):
    """Return name -> unit and classes of the entities of a device that have a state."""
    named = ("unit_of_measurement", "device_class", "state_class")
    return {
        each["name"].removeprefix("Temperature "): tuple(each.get(name) for name in named)
        for each in home.shown().values()
        if each["device"] == device and each["state"] not in {None, "unknown", "unavailable"}
    }


def only(home, device, name):
    """Return what is shown of an entity; empty where there is none, or several."""
    found = [
        each for each in home.shown().values() if (each["device"], each["name"]) == (device, name)
    ]
    return found[0] if len(found) == 1 else {}


def is_shown_entity_by_entity(home):
    """Wait for what the first program makes of two devices."""
    until_true(lambda: of(home, "kitchen") == OF_KITCHEN)
    until_true(lambda: of(home, FLEET) == OF_FLEET)
    kitchen = only(home, "kitchen", "Temperature local average")
    assert (kitchen["via"], kitchen["area"]) == (FLEET, "kitchen")
    assert kitchen["url"] == "http://127.0.0.1:8700/"
    assert only(home, "kitchen", "peak")["state"].startswith("2020-09-13T12:2")


def is_renewed(home):
    """Wait until the values of the first program are gone, and the one of the second is there."""
    new = {"warmest": ("°C", "temperature", "measurement")}
    rest = {name: each for name, each in OF_FLEET.items() if "room" not in name}
    until_true(lambda: of(home, FLEET) == rest | new)
    until_true(lambda: "room here (kitchen)" not in of(home, "kitchen"))
    assert not [each for each in home.shown().values() if "room" in each["name"]]


def is_away(home, device):
    """Wait until a device is known to be away, and shows nothing."""
    until_true(lambda: not of(home, device))
    until_true(lambda: only(home, FLEET, "all devices here").get("away") == [device])
    assert only(home, FLEET, "all devices here")["state"] == "off"


def test_entities_over_a_new_program_a_crash_and_a_retirement(tmp_path):
    fleet = HomeFleet(tmp_path)
    home = RealHomeAssistant(tmp_path / "home", fleet.broker.port)
    try:
        fleet.write(OLD)
        agents = {device: fleet.announced(device) for device in ("attic", "kitchen")}
        is_shown_entity_by_entity(home)
        fleet.write(NEW)
        for device, agent in agents.items():
            agent.terminate()
            agent.wait()
            agents[device] = fleet.announced(device)
        is_renewed(home)
        agents["attic"].kill()
        is_away(home, "attic")
        fleet.command("retire", "attic", "--fleet", NAME, *fleet.login("operator"))
        until_true(lambda: not [e for e in home.shown().values() if e["device"] == "attic"])
        until_true(lambda: only(home, FLEET, "all devices here").get("state") == "on")
        assert home.warnings() == []
    finally:
        home.stop()
        fleet.close()
