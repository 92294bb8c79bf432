"""The view of a fleet has each device's values, with or without the program, and who is behind."""

import json
from dataclasses import replace

import pytest

from device_agent.agent.settings import Settings
from device_agent.console.view import values as values_module
from device_agent.console.view.fleet_view import FleetView
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.frames import VariableFrame
from lasp_edge.protocol.topics import ResultAddress, Topics
from lasp_edge.tool.lagging import Order
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import Device, entry_of, greenhouse, rooms
from tests.device_agent.support_site import Site
from tests.support_sizes import most_held

QUIET = Settings(results_us=0)
TOLD = Settings(results_us=SECOND_US)
FLEET = {
    "by the program": (QUIET, True),
    "by results": (TOLD, False),
    "by both": (TOLD, True),
    "by the fleet's voice": (replace(TOLD, home_assistant="ha"), False),
}


class Scene:
    """Devices that hear each other, and a view of them."""

    def __init__(self, tmp_path, plan, settings, *, knows):
        self.site = Site(tmp_path, plan, "attic", "shed", settings=settings)
        self.devices = [*self.site.devices.values()]
        self.view = FleetView(Topics(plan.name), 5, plan if knows else None)

    def play(self, rounds=8, cut=()):
        self.site.away = {*cut}
        for _ in range(rounds):
            for each in self.site.run(1, 2):
                self.hear(each)

    def hear(self, publication, *, kept=False):
        now_s = self.devices[0].now_us / SECOND_US
        self.view.take(publication.topic, publication.payload, now_s, retained=kept)

    def standing(self, name, own="local_average", fleet="global_average"):
        now_s = self.devices[0].now_us / SECOND_US
        return self.view.device(name, own, fleet, now_s)


@pytest.fixture(params=FLEET)
def scene(request, tmp_path):
    settings, knows = FLEET[request.param]
    return Scene(tmp_path, greenhouse(), settings, knows=knows)


def mean(plain):
    return plain and plain["parts"]["mean"]


def test_each_device_and_the_fleet_are_seen(scene):
    attic, shed = scene.devices
    attic.read([10, 20])
    shed.read([60])
    scene.play()
    assert scene.view.values.devices == ["attic", "shed"]
    for name, own in (("attic", 15), ("shed", 60)):
        standing = scene.standing(name)
        assert (mean(standing.own), mean(standing.fleet)) == (own, 30)
        assert standing.connected
        assert standing.behind_s == 0
        assert standing.silent_s < 30
    assert mean(scene.view.values.value("global_average")) == 30
    assert scene.view.values.value("global_average")["devices"] == 2
    assert scene.view.values.names == ["global_average", "local_average"]
    assert scene.view.values.is_of_fleet("global_average")
    assert not scene.view.values.is_of_fleet("local_average")


def test_a_device_that_is_cut_off_is_behind_since_the_others_went_on(scene):
    attic, shed = scene.devices
    attic.read([10])
    shed.read([60])
    scene.play()
    attic.read([20])
    scene.play(6, cut=["shed"])
    assert scene.standing("attic").behind_s == 0
    assert 4 <= scene.standing("shed").behind_s <= 12
    assert scene.standing("shed").silent_s >= 10
    assert mean(scene.view.values.value("global_average")) == 30


def test_a_value_is_settled_while_all_that_are_connected_hold_the_same(scene):
    attic, shed = scene.devices
    assert scene.view.values.is_settled("global_average") is None
    attic.read([10])
    shed.read([60])
    scene.play()
    assert scene.view.values.is_settled("global_average") is True
    attic.read([20])
    scene.play(1, cut=["shed"])
    scene.play(3, cut=["shed"])
    assert scene.view.values.is_settled("global_average") is False
    scene.play(40)
    assert scene.view.values.is_settled("global_average") is True


def test_it_is_known_when_all_agreed_last_and_who_is_away_in_a_value(scene):
    attic, shed = scene.devices
    assert scene.view.values.agreed_s == {}
    attic.read([10])
    shed.read([60])
    scene.play()
    agreed_s = scene.view.values.agreed_s["global_average"]
    assert attic.now_us / SECOND_US - agreed_s < 30
    assert scene.view.values.away_in("global_average") == []
    attic.read([20])
    scene.play(6, cut=["shed"])
    assert attic.now_us / SECOND_US - scene.view.values.agreed_s["global_average"] >= 10
    scene.hear(shed.core.beats.presence(online=False))
    assert scene.view.values.away_in("global_average") == ["shed"]
    command = scene.view.commands.retiring("shed")
    scene.view.devices.take_command(command)
    assert scene.view.values.away_in("global_average") == []


def test_nonsense_is_left_aside(scene):
    root = scene.devices[0].core.agent.topics.root
    for topic in (f"{root}/out/a/b", f"{root}/fleet/a", f"{root}/0a/var/attic/x/00", "x", ""):
        for payload in (b"", b"[]", b"\xff", b'{"parts": 3}', b"{}"):
            scene.view.take(topic, payload, 1)
    scene.devices[0].read([10])
    scene.play()
    assert mean(scene.standing("attic").own) == 10


def test_what_the_broker_kept_says_nothing_about_when_a_device_was_heard(tmp_path):
    scene = Scene(tmp_path, greenhouse(), TOLD, knows=False)
    scene.devices[0].read([10])
    for each in scene.devices[0].tick(10):
        scene.hear(each, kept=True)
    standing = scene.standing("attic")
    assert mean(standing.own) == 10
    assert standing.silent_s is None
    assert standing.readings == 1
    assert standing.alarms == ()


def test_an_agent_tells_why_it_refuses_and_what_it_sent(tmp_path):
    scene = Scene(tmp_path, greenhouse(), TOLD, knows=False)
    attic, _ = scene.devices
    attic.core.handle_sent(4_711)
    for number in range(8):
        attic.core.counters.add(f"refused: reason {number}", number + 1)
    scene.play(2)
    standing = scene.standing("attic")
    assert standing.sent_bytes == 4_711
    assert standing.refused_because == {f"reason {n}": n + 1 for n in range(3, 8)}
    assert scene.standing("shed").refused_because == {}
    assert scene.standing("shed").sent_bytes is None


@pytest.mark.parametrize("knows", [True, False])
def test_keys_are_seen_one_by_one(tmp_path, knows):
    settings = QUIET if knows else TOLD
    scene = Scene(tmp_path, rooms(), settings, knows=knows)
    attic, shed = scene.devices
    attic.read([10], tags={"room": "a"})
    attic.read([20], tags={"room": ""})
    shed.read([30], tags={"room": "a"})
    scene.play()
    values = scene.view.values
    assert mean(values.value("everywhere", None, "a")) == 20
    assert mean(values.value("everywhere", None, "")) == 20
    assert values.keys("everywhere") == ["", "a"]
    assert values.is_settled("everywhere") is True
    assert values.keys("here", "attic") == ["", "a"]
    assert mean(values.value("here", "shed", "a")) == 30
    assert values.value("here", "shed", "b") is None
    shown = scene.standing("attic", "here", "everywhere")
    assert set(shown.own["keys"]) == {"", "a"}


def test_a_key_that_is_cleared_is_gone(tmp_path):
    view, topics = FleetView(Topics("g"), 5), Topics("g")
    said = json.dumps({"parts": {"mean": 1.0}}).encode()
    view.take(topics.result("here", "attic", "a"), said, 0)
    assert view.values.keys("here", "attic") == ["a"]
    view.take(topics.result("here", "attic", "a"), b"", 0)
    assert view.values.keys("here", "attic") == []


def test_a_retired_device_counts_no_more(tmp_path):
    scene = Scene(tmp_path, greenhouse(), QUIET, knows=True)
    attic, shed = scene.devices
    attic.read([10])
    shed.read([60])
    scene.play()
    topics = attic.core.agent.topics
    command = scene.view.commands.retiring("shed")
    assert isinstance(command, CommandFrame)
    scene.view.take(topics.of("command", "shed"), command.encode(), 0)
    assert mean(scene.view.values.value("global_average")) == 10
    assert scene.view.values.devices == ["attic"]


def test_entries_of_another_definition_are_left_aside(tmp_path):
    plan = greenhouse()
    view, topics = FleetView(Topics(plan.name), 5, plan), Topics(plan.name)
    device = Device(tmp_path, plan)
    stream = plan.local_folds["local_average"].stream
    for wrong in (
        {"stream": stream + 1, "partial": (1, 5)},
        {"stream": stream, "partial": (1,)},
    ):
        frame = entry_of(device.core.replica, 1, "local_average", **wrong)
        assert isinstance(frame, VariableFrame)
        view.take(topics.of("var", "pi-1", "local_average", "00"), frame.encode(), 0)
    assert view.values.value("global_average") is None


def test_the_order_of_reports_is_bounded_and_a_report_that_fell_out_is_behind():
    order = Order()
    order.note("old", "first", 0)
    for number in range(1_500):
        order.note("new", str(number), number + 1)
    assert order.behind_s("new", 2_000) == 0
    assert order.behind_s("old", 2_000) > 400
    assert most_held(order) <= 1_001


def test_a_value_with_keys_has_no_value_without_one_before_its_keys_come():
    view, topics = FleetView(Topics("g"), 5), Topics("g")
    head = {"devices": 1, "inputs": "1", "settled": True, "except": []}
    view.take(topics.result("rooms", "attic"), json.dumps(head).encode(), 0)
    assert view.values.value("rooms") is None


def test_a_result_is_found_until_it_is_dropped():
    values = FleetView(Topics("g"), 5).values
    whole, key = ResultAddress("mean", "attic", None), ResultAddress("mean", "attic", "a")
    of_agent = ResultAddress(None, "shed", None)
    for number, address in enumerate((whole, key, of_agent, whole)):
        assert values.put(address, {"count": number, "parts": {}}, 0)
    assert values.value(*whole) == {"count": 3, "parts": {}}
    assert values.keys("mean", "attic") == ["a"]
    assert (values.names, values.devices) == (["mean"], ["attic", "shed"])
    for address in (whole, whole, key):
        values.drop(address)
    assert (values.names, values.devices) == ([], ["shed"])
    assert values.value(*key) is None


def test_results_are_bounded_and_one_that_is_dropped_makes_room(monkeypatch):
    monkeypatch.setattr(values_module, "MOST_RESULTS", 2)
    values = FleetView(Topics("g"), 5).values
    first, second, third = (ResultAddress("mean", name, None) for name in "abc")
    assert [values.put(each, {}, 0) for each in (first, second, third, first)] == [
        *(True, True, False, True)
    ]
    assert values.devices == ["a", "b"]
    values.drop(third)
    assert not values.put(third, {}, 0)
    values.drop(first)
    assert values.put(third, {}, 0)


@pytest.mark.parametrize("is_told_first", [False, True])
def test_a_gateway_that_publishes_rows_of_the_fleet_is_no_device(is_told_first):
    topics = Topics("house")
    view = FleetView(topics, 5)
    row = (topics.result("visits", "site"), b'{"parts": {"count": 3}}')
    of_itself = (topics.gateway("site"), b'{"online": true}')
    own = (topics.result("visits", "attic"), b'{"parts": {"count": 2}}')
    for topic, payload in [of_itself, row, own] if is_told_first else [row, own, of_itself]:
        view.take(topic, payload, 1.0)
    assert view.values.devices == ["attic"]
    assert view.values.value("visits", "site") == {"parts": {"count": 3}}
    assert topics.gateway_of(own[0]) is None
