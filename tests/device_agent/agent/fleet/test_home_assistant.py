"""Home Assistant: entities that it takes, that show what is published, and go with their key."""

import json
from dataclasses import replace

import pytest

from crdts import BoundedLWWSet
from device_agent.agent.notices import CLONED, CLONED_US
from lasp_edge import Program, folds, scans
from lasp_edge.protocol.frames import PresenceFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agent.fleet.home import HOME, started, template
from tests.device_agent.agents import DAY_US, NOW_US, Device, greenhouse, rooms
from tests.device_agent.support_site import Site


def test_an_agent_is_a_device_and_each_value_an_entity(tmp_path, home):
    device = started(tmp_path, home)
    device.read([2150, 2250])
    home.tick(device, 10)
    entities = home.entities
    assert set(entities) == {
        "lasp__greenhouse__pi-1__local_5faverage__mean",
        "lasp__greenhouse__pi-1__readings",
        "lasp__greenhouse__pi-1__refused_readings",
        "lasp__greenhouse__pi-1__clock",
        "lasp__greenhouse__pi-1__alarms",
        "lasp__greenhouse__global_5faverage__mean",
        "lasp__greenhouse__all_devices_here",
        "lasp__greenhouse__alarms",
    }
    own = entities["lasp__greenhouse__pi-1__local_5faverage__mean"]
    assert own["name"] == "local average"
    assert own["device"]["name"] == "pi-1"
    assert own["device"]["identifiers"] == ["lasp__greenhouse__pi-1"]
    assert own["device"]["via_device"] == "lasp__greenhouse"
    assert (own["unit_of_measurement"], own["device_class"]) == ("°C", "temperature")
    assert (own["state_class"], own["suggested_display_precision"]) == ("measurement", 2)
    fleet = entities["lasp__greenhouse__global_5faverage__mean"]
    assert fleet["device"]["name"] == "greenhouse"
    assert fleet["device_class"] == "temperature"
    assert fleet["device"]["identifiers"] == ["lasp__greenhouse"]
    for unique_id in ("pi-1__local_5faverage__mean", "global_5faverage__mean"):
        assert home.shown(f"lasp__greenhouse__{unique_id}") == 2200.0
    assert home.shown("lasp__greenhouse__pi-1__readings") == 0  # counts alone are told seldom


def test_refused_readings_are_counted_whatever_the_reason(tmp_path, home):
    device = started(tmp_path, home)
    times_us = [None, NOW_US + DAY_US, NOW_US - 30 * DAY_US, NOW_US - 40 * DAY_US]
    device.take([1, 2, 3, 4], times_us, [{}] * 4)
    device.take([5], [None], [{}], name="unknown")
    for _ in range(31):
        home.tick(device, 10)
    assert home.shown("lasp__greenhouse__pi-1__readings") == 1
    assert home.shown("lasp__greenhouse__pi-1__refused_readings") == 4
    topic = home.entities["lasp__greenhouse__pi-1__alarms"]["state_topic"]
    assert sorted(json.loads(home.retained[topic])["refused_because"].values()) == [1, 1, 2]


def test_counts_are_told_now_and_then_and_an_alarm_at_once(tmp_path, home):
    device = started(tmp_path, home)
    device.read([1, 2, 3])
    for _ in range(31):
        home.tick(device, 10)
    assert home.shown("lasp__greenhouse__pi-1__readings") == 3
    topic = home.entities["lasp__greenhouse__pi-1__alarms"]["state_topic"]
    assert json.loads(home.retained[topic])["alarms"] == []
    device.core.agent.notices.alarm("clone", CLONED, now_us=device.now_us, lasts_us=CLONED_US)
    home.tick(device, 10)
    (alarm,) = json.loads(home.retained[topic])["alarms"]
    assert "give one of the two another --device" in alarm
    device.restart()
    home.tick(device, 10)
    assert json.loads(home.retained[topic])["alarms"] == []  # it was so before the start


def test_nothing_is_told_without_the_option(tmp_path, home):
    device = started(tmp_path, home, settings=replace(HOME, home_assistant=""))
    device.read([1])
    home.tick(device, 10)
    assert home.entities == {}
    assert not any(frame.speaks for frame in device.frames(PresenceFrame))
    assert not any("/fleet/" in topic for topic in home.retained)
    assert device.core.subscriptions() == [
        each for each in device.core.subscriptions() if each.startswith("lasp/v1/greenhouse/")
    ]


def test_another_prefix_is_used_everywhere(tmp_path, home):
    device = started(tmp_path, home, settings=replace(HOME, home_assistant="ha/here"))
    assert all(topic.startswith("ha/here/") for topic in home.retained if topic.endswith("/config"))
    assert "ha/here/status" in device.core.subscriptions()


def test_a_configuration_is_published_once_a_connection_and_at_the_birth_of_home_assistant(
    tmp_path, home
):
    device = started(tmp_path, home)

    def configs():
        return [p.topic for _ in range(2) for p in home.tick(device, 6)]

    assert len(configs()) <= 1  # the fleet's, which is announced a little later
    assert configs() == []
    device.durable.hear("homeassistant/status", b"offline", device.now_us)
    assert configs() == []
    device.durable.hear("homeassistant/status", b"online", device.now_us)
    again = configs()
    root = "homeassistant/device/lasp__greenhouse"
    assert sorted(again) == [f"{root}/agent__pi-1/config", f"{root}/fleet/config"]
    assert configs() == []
    device.core.handle_connected(device.now_us)
    assert set(configs() + configs()) == set(again)


def test_devices_answer_the_birth_at_different_times(tmp_path):
    waits = set()
    for name in ("a", "b", "c"):
        device = Device(tmp_path / name, greenhouse(), name=name, settings=HOME)
        device.tick(10)
        device.durable.hear("homeassistant/status", b"online", device.now_us)
        steps = 0
        while not any(p.topic.endswith("/config") for p in device.tick(0.05)):
            steps += 1
        waits.add(steps)
        assert steps <= 100
        device.kill()
    assert len(waits) == 3


def test_a_key_is_an_entity_until_it_goes_even_while_the_agent_is_off(tmp_path, home):
    device = started(tmp_path, home, plan=rooms(bound=None, max_age_s=60))
    device.read([1.0], tags={"room": "Küche/2"})
    device.read([2.0], tags={"room": "attic"})
    home.tick(device, 10)
    ids = {each for each in home.entities if "__here__mean" in each}
    assert ids == {
        "lasp__rooms__pi-1__here__mean___4b_c3_bcche_2f2",
        "lasp__rooms__pi-1__here__mean__attic",
    }
    assert {home.shown(each) for each in ids} == {1.0, 2.0}
    assert {home.entities[each]["name"] for each in ids} == {"here (Küche/2)", "here (attic)"}
    assert "lasp__rooms__everywhere__mean__attic" in home.entities
    home.tick(device, 30)
    device.read([3.0], tags={"room": "attic"})
    home.tick(device, 35)
    message = home.messages()["pi-1"]["components"]
    gone = {"here__mean___4b_c3_bcche_2f2": {"platform": "sensor"}}
    assert {name: each for name, each in message.items() if len(each) == 1} == gone
    assert {each for each in home.entities if "__here__" in each} == {
        "lasp__rooms__pi-1__here__mean__attic"
    }
    assert not any("Küche" in topic for topic in home.retained)
    device.now_us += 600 * SECOND_US
    home.start_again(device)
    for _ in range(5):
        home.tick(device, 10)
    assert not [topic for topic in home.retained if "attic" in topic]
    assert not [each for each in home.entities if "attic" in each]
    assert not [
        each
        for message in home.messages().values()
        for each in message["components"]
        if "attic" in each
    ], "what is gone is named once more, and then left out"


def test_the_empty_key_and_underscores_have_entities_of_their_own(tmp_path, home):
    device = started(tmp_path, home, plan=rooms())
    for room in ("", "_", "%", "a_b", "a b"):
        device.read([1.0], tags={"room": room})
    home.tick(device, 10)
    ids = [each for each in home.entities if "pi-1__here__mean" in each]
    assert len(ids) == 5
    assert len({home.entities[each]["state_topic"] for each in ids}) == 5


def test_a_fold_with_endless_keys_has_a_bounded_number_of_entities(tmp_path, home):
    device = started(tmp_path, home, plan=rooms())
    for number in range(130):
        device.read([1.0], tags={"room": f"{number:03}"})
    home.tick(device, 10)
    home.tick(device, 10)
    assert sum("pi-1__here__" in each for each in home.entities) == 100
    assert sum("/out/here/pi-1/" in topic for topic in home.retained) == 130


def test_a_message_that_would_be_too_long_has_fewer_keys_of_each_value(tmp_path, home):
    parts = folds.struct(low=folds.min(), high=folds.max(), mean=folds.mean(), n=folds.count())
    device = started(tmp_path, home, plan=rooms(parts))
    for number in range(130):
        device.read([1.0], tags={"room": f"{number:03}"})
    home.tick(device, 10)
    home.tick(device, 10)
    own = [each for each in home.entities if "pi-1__here__" in each]
    assert 100 <= len(own) < 400
    assert "lasp__rooms__pi-1__readings" in home.entities


def speakers(site):
    return [name for name, device in site.devices.items() if device.core.report()["speaks"]]


def test_one_device_speaks_for_the_fleet_and_the_next_one_when_it_is_gone(tmp_path, home):
    site = Site(tmp_path, greenhouse(), *"abc", settings=HOME)
    a, b, c = site.devices.values()
    home.take(site.run(6, 5))
    assert speakers(site) == ["a"]
    topic = a.core.agent.topics.fleet_result("global_average")
    a.read([10]), b.read([20]), c.read([30])
    home.take(site.run(8, 5))
    said = json.loads(home.retained[topic])
    assert (said["parts"]["mean"], said["devices"], said["settled"]) == (20.0, 3, True)
    fleet = home.entities["lasp__greenhouse__global_5faverage__mean"]
    assert fleet["availability"][0]["topic"].endswith("/presence/a")
    site.leave("a")
    del site.devices["a"]
    b.read([80])
    home.take(site.run(8, 5))
    assert speakers(site) == ["b"]
    assert json.loads(home.retained[topic])["parts"]["mean"] == pytest.approx(140 / 4)
    fleet = home.entities["lasp__greenhouse__global_5faverage__mean"]
    assert fleet["availability"][0]["topic"].endswith("/presence/b")


def test_who_is_away_and_who_has_alarms_is_the_fleets(tmp_path, home):
    site = Site(tmp_path, greenhouse(), *"abc", settings=HOME)
    state = site.devices["a"].core.agent.topics.fleet_state()

    def shown():
        home.take(site.run(8, 5))
        return json.loads(home.retained[state])

    assert shown() == {"devices": 3, "away": [], "alarms": []}
    site.devices["c"].core.counters.note("failed: something")
    assert shown() == {"devices": 3, "away": [], "alarms": ["c"]}
    site.leave("a")
    assert shown() == {"devices": 3, "away": ["a"], "alarms": ["c"]}
    site.devices["c"].restart()
    site.connect("c")
    assert shown() == {"devices": 3, "away": ["a"], "alarms": []}


def test_a_device_without_the_option_any_more_leaves_the_fleet_s_values_to_the_next(tmp_path):
    site = Site(tmp_path, greenhouse(), *"ab", settings=HOME)
    site.run(6, 5)
    assert speakers(site) == ["a"]
    a = site.devices["a"]
    a.settings = replace(a.settings, home_assistant="")
    a.restart()
    site.run(6, 5)
    assert speakers(site) == ["b"]


def test_the_templates_show_what_is_published(tmp_path, home, jinja):
    device = started(tmp_path, home)
    device.read([2150])
    home.tick(device, 10)
    for config in home.entities.values():
        state = home.retained[config["state_topic"]]
        shown = template(jinja, config["value_template"], state)
        assert shown in {"2150.0", "0", "ON" if "all_devices" in config["unique_id"] else "OFF"}
        if "json_attributes_topic" in config:
            shown = json.loads(template(jinja, config["json_attributes_template"], state))
            assert shown in (
                {"devices": 1, "settled": True, "except": []},
                {"devices": 1, "away": []},
                {"alarms": []},
            )


@pytest.mark.parametrize("keyed", [False, True])
def test_an_alert_is_a_binary_sensor_that_is_on_while_it_lasts(tmp_path, home, jinja, keyed):
    program = Program("house")
    event = program.event("temperature", unit="°C")
    room = (lambda event: event.tags["room"]) if keyed else None
    samples = program.declare_dynamic(BoundedLWWSet(bound=1), "samples", key=room)
    program.collect(event, into=samples)
    program.alert("too warm", program.fold(samples, folds.last(), "now"), above=28, below=27)
    device = started(tmp_path, home, plan=program.plan())
    shown = []
    for value in (20, 30, 20):
        device.read([value], tags={"room": "attic"})
        home.tick(device, 10)
        home.tick(device, 10)
        (config,) = [c for c in home.entities.values() if "alert__too_20warm" in c["unique_id"]]
        state = home.retained[config["state_topic"]]
        shown.append(template(jinja, config["value_template"], state))
        told = json.loads(template(jinja, config["json_attributes_template"], state))
        assert told["value"] == value or value < 28, "an alert is told when it turns"
    assert shown == ["OFF", "ON", "OFF"]
    assert config["name"] == ("too warm (attic)" if keyed else "too warm")


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("name", ["pi-1", "it's a \\ name", "Küche"])
def test_the_last_will_makes_the_entities_unavailable(tmp_path, home, jinja, name, signed):
    device = started(tmp_path, home, name=name)
    config = next(iter(home.entities.values()))
    (available,) = config["availability"]
    assert config["encoding"] == "latin-1"
    for online in (True, False):
        said = device.core.beats.presence(online=online)
        assert said.topic == available["topic"]
        payload = said.payload + (b"\xc4\x40signature" if signed else b"")
        shown = template(jinja, available["value_template"], payload)
        assert shown == ("online" if online else "offline")
    other = PresenceFrame(device.core.replica, 9, online=True, program="another", speaks=True)
    assert template(jinja, available["value_template"], other.encode()) == "online"


def test_an_alert_on_a_result_is_an_entity_for_each_key_and_stays_over_a_restart(tmp_path, home):
    program = Program("house")
    warm = program.event("temperature", resolution="0.1")
    steps = program.scan(
        "steps",
        source=warm,
        scan=scans.differences(),
        key=lambda event: event.tags["room"],
        per_device=True,
    )
    program.result(steps)
    program.alert("jump", steps, above=5)
    device = started(tmp_path, home, plan=program.plan())
    for room, values in (("attic", (20, 30)), ("hall", (20, 21))):
        times_us = [device.now_us + n * SECOND_US for n in (1, 2)]
        device.read(values, times_us, {"room": room})
    device.read([20], [device.now_us + 600 * SECOND_US], {"room": "hall"})  # the others are final
    for _ in range(3):
        home.tick(device, 10)
    found = [each for each in home.entities.values() if "/alert/" in each["state_topic"]]
    shown = {
        each["name"]: json.loads(home.retained[each["state_topic"]])["state"] for each in found
    }
    assert shown == {"jump (attic)": "on", "jump (hall)": "off"}
    device.restart()
    home.tick(device, 10)
    states = device.core.report()["alerts"]["jump"]["keys"]
    assert {key: each["state"] for key, each in states.items()} == {"attic": "on", "hall": "off"}
