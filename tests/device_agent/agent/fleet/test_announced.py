"""What is announced to Home Assistant goes when it is gone: by a program, a key, a retirement."""

import json
from itertools import count

import pytest

from crdts import Replica, Version
from device_agent.outputs.announced import GONE_BYTES, Announced
from lasp_edge import Program, folds
from lasp_edge.protocol.publication import Publication
from tests.device_agent.agent.fleet.home import HOME, started
from tests.device_agent.agents import greenhouse, rooms
from tests.device_agent.support_site import Site
from tests.support_commands import member_command

FLEET = "homeassistant/device/lasp__rooms/fleet/config"
OPERATOR = Replica(1, 5, "operator")
_NUMBERS = count(1)


def retire(site, device, *, retired=True):
    """Let an operator retire a device, or admit it again."""
    number = next(_NUMBERS)
    last = Version.of(Replica(9, 9, device), 0)
    frame = member_command(OPERATOR, number, device, number, retired, last)
    site.pass_on(Publication.of(frame, site.devices["b"].core.agent.topics))


def by_room(home):
    return {each for each in home.entities if "everywhere__mean" in each}


def test_a_value_that_the_program_has_no_more_is_named_once_more_and_goes(tmp_path, home):
    device = started(tmp_path, home)
    before = set(home.entities)
    program = Program("greenhouse")
    temperature = program.event("temperature", resolution="0.01", unit="°C")
    samples = program.declare_dynamic(greenhouse().variables["samples"].bottom, "samples")
    program.collect(temperature, into=samples)
    program.fold_dynamic(program.fold(samples, folds.max(), "warmest"), "warmest_of_all")
    device.program = program.plan()
    home.start_again(device)
    announced = [each for _ in range(8) for each in home.tick(device, 10)]
    gone = {name for name in before if "average" in name}
    new = {"lasp__greenhouse__pi-1__warmest__max", "lasp__greenhouse__warmest_5fof_5fall__max"}
    assert set(home.entities) == (before - gone) | new
    removed = [
        name
        for each in announced
        for name, config in json.loads(each.payload)["components"].items()
        if config == {"platform": "sensor"}
    ]
    assert sorted(removed) == ["global_5faverage__mean", "local_5faverage__mean"]
    assert len(announced) <= 8, "both devices: new, then without what is gone, then at rest"


def test_a_retired_device_goes_though_it_is_away_and_comes_when_it_is_admitted(tmp_path, home):
    site = Site(tmp_path, rooms(), *"abc", settings=HOME)
    home.take(site.run(6, 5))
    assert set(home.messages()) == {"a", "b", "c", "rooms"}
    site.leave("a")
    retire(site, "a")
    home.take(site.run(6, 5))
    assert set(home.messages()) == {"b", "c", "rooms"}
    assert json.loads(site.retained["lasp/v1/rooms/fleet/agent"])["away"] == []
    site.connect("a")
    home.take(site.run(6, 5))
    assert set(home.messages()) == {"b", "c", "rooms"}, "it is here again, and still retired"
    assert not site.devices["a"].core.report()["speaks"]
    site.leave("a")
    site.connect("a")
    home.take(site.run(6, 5))
    assert set(home.messages()) == {"b", "c", "rooms"}, "and each time"
    for is_retired in (False, True, False):
        retire(site, "a", retired=is_retired)
        home.take(site.run(6, 5))
        assert ("a" in home.messages()) != is_retired


@pytest.mark.parametrize("hears_both_at_once", [False, True])
def test_a_device_that_runs_on_is_announced_again_when_it_is_admitted(
    tmp_path, home, hears_both_at_once
):
    site = Site(tmp_path, rooms(), *"abc", settings=HOME)
    home.take(site.run(6, 5))
    if hears_both_at_once:
        site.leave("c")
    retire(site, "c")
    home.take(site.run(6, 5))
    assert set(home.messages()) == {"a", "b", "rooms"}
    retire(site, "c", retired=False)
    if hears_both_at_once:
        site.connect("c")
    home.take(site.run(6, 5))
    assert set(home.messages()) == {"a", "b", "c", "rooms"}


def test_a_device_that_was_not_told_that_it_is_retired_takes_itself_back(tmp_path, home):
    site = Site(tmp_path, rooms(), *"bc", settings=HOME)
    home.take(site.run(6, 5))
    retire(site, "b")
    home.take(site.run(3, 5))
    assert set(home.messages()) == {"c", "rooms"}


def test_the_next_that_speaks_drops_no_entity_whose_key_it_does_not_know_yet(tmp_path, home):
    site = Site(tmp_path, rooms(), *"ab", settings=HOME)
    a, b = site.devices.values()
    a.read([1.0], tags={"room": "attic"})
    b.read([1.0], tags={"room": "bath"})
    home.take(site.run(8, 5))
    both = by_room(home)
    assert len(both) == 2
    for name in "ab":
        site.leave(name)
    kept = {topic: each for topic, each in site.retained.items() if "/var/" in topic}
    for topic in kept:
        del site.retained[topic]  # a broker that lost what it retained, and Home Assistant's not
    site.connect("a")
    home.take(site.run(3, 5))
    assert by_room(home) == both
    home.take(site.run(8, 5))
    assert by_room(home) == both, "the store of a knows the entry of b"


def test_a_key_that_nobody_has_any_more_is_kept_until_all_are_heard(tmp_path, home):
    site = Site(tmp_path, rooms(), "a", settings=HOME)
    site.devices["a"].read([1.0], tags={"room": "attic"})
    home.take(site.run(8, 5))
    message = json.loads(site.retained[FLEET])
    attic = message["components"]["everywhere__mean__attic"]
    message["components"]["everywhere__mean__old"] = {**attic, "unique_id": "old"}
    site.retained[FLEET] = json.dumps(message).encode()
    site.leave("a")
    site.connect("a")
    home.take(site.run(4, 5))
    assert {"old", "lasp__rooms__everywhere__mean__attic"} <= set(home.entities)
    home.take(site.run(6, 5))
    assert "old" not in home.entities


def test_of_an_alert_on_the_fleets_value_there_is_one(tmp_path, home):
    site = Site(tmp_path, alerting(), *"ab", settings=HOME)
    home.take(site.run(8, 5))
    alerts = sorted(each for each in home.entities if "__alert__" in each)
    assert alerts == [
        "lasp__house__a__alert__cold_20here",
        "lasp__house__alert__too_20warm",
        "lasp__house__b__alert__cold_20here",
    ]
    of_fleet = home.entities["lasp__house__alert__too_20warm"]
    assert of_fleet["device"]["name"] == "house"
    assert of_fleet["state_topic"] in site.retained


def test_what_is_gone_is_named_in_as_many_messages_as_it_needs():
    made = {"one": {"platform": "sensor", "name": "one"}}
    before = {f"{number:0300}": {"platform": "sensor", "name": "x"} for number in range(40)}
    announced, named = Announced("topic", lambda components: {"components": components}), []
    announced.hear(json.dumps({"components": before | made}).encode())
    for _ in range(6):
        payload = announced.content((), lambda _most: made).payload()
        assert len(payload) < GONE_BYTES + 1_000
        announced.hear(payload)
        named += json.loads(payload)["components"].keys() - made.keys()
    assert sorted(named) == sorted(before)


def alerting():
    program = Program("house")
    event = program.event("temperature", unit="°C")
    samples = program.declare_dynamic(greenhouse().variables["samples"].bottom, "samples")
    program.collect(event, into=samples)
    here = program.fold(samples, folds.last(), "now")
    program.alert("too warm", program.fold_dynamic(here, "all"), part="last", above=28)
    program.alert("cold here", here, below=5)
    return program.plan()


def test_a_value_that_is_named_alert_is_beside_an_alert(tmp_path, home):
    program = Program("house")
    event = program.event("temperature", unit="°C")
    samples = program.declare_dynamic(greenhouse().variables["samples"].bottom, "samples")
    program.collect(event, into=samples)
    program.alert("last", program.fold(samples, folds.last(), "alert"), above=28)
    started(tmp_path, home, plan=program.plan())
    components = home.messages()["pi-1"]["components"].values()
    same = [each for each in components if each["unique_id"].endswith("__alert__last")]
    assert sorted(each["platform"] for each in same) == ["binary_sensor", "sensor"]


def test_halves_of_characters_that_a_stranger_announced_end_nothing():
    announced = Announced("topic", lambda components: {"components": components})
    announced.hear(b'{"components": {"\\ud800": {"platform": "sensor", "name": "\\ud800"}}}')
    for is_all in (True, False):
        assert announced.content((), lambda _most: {}, is_all=is_all).payload()


NESTED = b'{"components":' * 100_000


@pytest.mark.parametrize(
    "payload",
    [b"\xff", b"[]", b"7", b'{"components": [1]}', b"{}", b"", NESTED],
    ids=["bytes", "list", "number", "a list in it", "nothing in it", "empty", "nested"],
)
def test_what_is_no_message_of_ours_changes_nothing(payload):
    announced = Announced("topic", lambda components: {"components": components})
    announced.hear(payload)
    announced.hear(b'{"components": {"a": 7, "b": {"platform": "sensor"}, "c": {"x": 1}}}')
    entity = {"one": {"platform": "sensor", "name": "one"}}
    content = announced.content((), lambda _most: entity)
    assert json.loads(content.payload()) == {"components": entity}


def test_devices_and_rooms_make_as_many_messages_as_there_are_devices(tmp_path, home):
    names = [f"pi-{number}" for number in range(6)]
    site = Site(tmp_path, rooms(), *names, settings=HOME)
    for name, device in site.devices.items():
        device.read([1.0], tags={"room": name})
    home.take(site.run(20, 5))
    assert set(home.messages()) == {*names, "rooms"}
    assert len(by_room(home)) == len(names)
    assert sum("__here__" in each for each in home.entities) == len(names)
