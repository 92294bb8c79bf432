"""Alerts: published where they turn, called out once a turn, and not turned by a restart."""

import json

import pytest

from crdts import ControlLog, Replica
from device_agent.agent.settings import Settings
from lasp_edge import folds
from lasp_edge.units import SECOND_US
from tests.device_agent.agent.acting.support_acting import House, peer_says, run
from tests.device_agent.agents import NOW_US, Device
from tests.support_commands import schedule_command

EAGER = Settings(interval_us=SECOND_US)
TOPIC = "lasp/v1/house/out/alert/too warm/pi-1"


@pytest.fixture
def start(tmp_path):
    def begin(house):
        device = Device(tmp_path, house.plan(), settings=EAGER)
        device.core.acting.alerts.calls_out = True
        return device

    return begin


def warm_house(**more):
    """Return a house that is too warm above 28 °C, until it is 27 °C again."""
    levels = {"above": 28, "below": 27} | more.pop("levels", {})
    house = House(bound=1, **more)
    house.program.alert("too warm", house.here, **levels)
    return house


def read(device, value, seconds=3, **more):
    device.read([value], **more)
    run(device, seconds)


def said(device, topic=TOPIC):
    """Return what was published on a topic since the last time; it is forgotten."""
    found = [p.payload for p in device.sent if p.topic == topic]
    assert all(p.retain for p in device.sent if p.topic == topic)
    device.sent.clear()
    return [json.loads(text) if text else None for text in found]


def states(device):
    return [each["state"] for each in said(device)]


def test_an_alert_says_at_once_that_it_is_off_and_then_when_it_turns(start):
    device = start(warm_house())
    read(device, 20.0)
    assert states(device) == ["off"]
    for value in (28.0, 28.1, 27.5, 28.3, 27.0, 20.0):
        read(device, value)
    assert states(device) == ["on", "off"]


def test_what_an_alert_says(start):
    device = start(warm_house())
    read(device, 20.0)
    read(device, 28.5)
    text = said(device)[-1]
    inputs, since = text.pop("inputs"), text.pop("since")
    assert text == {
        "alert": "too warm",
        "device": "pi-1",
        "state": "on",
        "fold": "here",
        "part": "mean",
        "value": 28.5,
        "above": 28.0,
        "below": 27.0,
        "settled": True,
        "devices": ["pi-1"],
    }
    assert len(inputs) == 16
    assert since == "2023-11-14T22:13:24Z"  # NOW_US is 22:13:20; read at 3 s, seen at 4 s
    assert NOW_US == 1_700_000_000 * SECOND_US


def test_an_alert_stays_as_it_is_over_a_restart_and_is_said_again(start):
    device = start(warm_house())
    read(device, 29.0)
    (before,) = said(device)
    device.restart()
    run(device, 5)
    assert said(device) == [before]
    read(device, 28.2, 40)
    assert said(device) == []


def test_each_connection_says_the_state_again(start):
    device = start(warm_house())
    read(device, 29.0)
    said(device)
    device.core.handle_connected(device.now_us)
    run(device, 1)
    assert states(device) == ["on"]


def test_what_the_link_did_not_take_is_published_later(start):
    device = start(warm_house())
    device.read([29.0])
    device.now_us += SECOND_US
    for publication in device.durable.tick(device.now_us):
        if publication.topic == TOPIC:
            device.core.handle_unsent(publication)
            break
    run(device, 1)
    assert states(device) == ["on"]


def called_out(device, trouble=""):
    """Call out what is to be called out; return the states by number."""
    alerts = device.core.acting.alerts
    turns = list(alerts.turns())
    for turn in turns:
        alerts.called_out(turn, trouble)
    return [(turn.number, turn.status["state"]) for turn in turns]


def test_each_turn_is_called_out_once(start):
    device = start(warm_house())
    read(device, 20.0)
    assert called_out(device) == []
    read(device, 29.0)
    assert called_out(device) == [(1, "on")]
    run(device, 30)
    assert called_out(device) == []
    device.restart()
    device.core.acting.alerts.calls_out = True
    run(device, 30)
    assert called_out(device) == []
    read(device, 20.0)
    assert called_out(device) == [(2, "off")]


def test_a_turn_that_was_not_called_out_before_a_crash_is_so_after_it(start):
    device = start(warm_house())
    read(device, 29.0)
    assert [turn.number for turn in device.core.acting.alerts.turns()] == [1]  # and then: a crash
    device.restart()
    device.core.acting.alerts.calls_out = True
    run(device, 3)
    assert called_out(device) == [(1, "on")]


def test_a_turn_that_was_given_up_is_counted_with_its_reason(start):
    device = start(warm_house())
    read(device, 29.0)
    assert called_out(device, "the command ended with exit code 7") == [(1, "on")]
    assert device.core.agent.guard.reasons == [
        "failed: alert too warm: the command ended with exit code 7"
    ]
    assert called_out(device) == []


def test_without_a_command_or_webhook_nothing_waits(start):
    device = start(warm_house())
    device.core.acting.alerts.calls_out = False
    read(device, 29.0)
    assert list(device.core.acting.alerts.turns()) == []


def test_of_many_turns_that_nobody_calls_out_the_newest_wait(start):
    device = start(warm_house())
    for _ in range(12):
        read(device, 29.0, 2)
        read(device, 20.0, 2)
    assert [turn.number for turn in device.core.acting.alerts.turns()] == list(range(9, 25))
    (reason,) = device.core.agent.guard.reasons
    assert device.counted[reason] == 8


def test_for_s_is_counted_by_the_devices_trusted_time(start):
    device = start(warm_house(levels={"for_s": 60}))
    read(device, 29.0, 50)
    assert states(device) == ["off"]
    run(device, 12)
    (text,) = said(device)
    assert (text["state"], text["since"]) == ("on", "2023-11-14T22:13:21Z")  # since it holds


def test_each_key_has_a_topic_and_one_that_is_gone_is_said_to_be_off(start):
    house = House(bound=1, key=lambda event: event.tags["room"])
    house.program.alert("too warm", house.everywhere, above=28)
    device = start(house)
    read(device, 29.0, 6, tags={"room": "Attic"})
    read(device, 20.0, 6, tags={"room": "cellar"})
    (attic,) = {
        p.topic for p in device.sent if p.topic.startswith(f"{TOPIC}/") and "ttic" in p.topic
    }
    assert [each["state"] for each in said(device, f"{TOPIC}/cellar")] == ["off"]
    entries = device.core.samples.published["here"].entries
    entries.put_own(device.core.replica, "Attic", None)
    run(device, 3)
    found = said(device, attic)
    assert [each and each["state"] for each in found] == ["off", None]
    assert (found[0]["key"], found[0]["value"], found[0]["devices"]) == ("Attic", None, [])
    assert [state for _, state in called_out(device)] == ["on", "off"]
    assert list(device.core.report()["alerts"]["too warm"]["keys"]) == ["cellar"]


def test_a_key_that_is_back_before_anybody_heard_that_it_was_gone_is_said(start):
    house = House(bound=1, key=lambda event: event.tags["room"])
    house.program.alert("too warm", house.everywhere, above=28)
    device = start(house)
    read(device, 20.0, 6, tags={"room": "cellar"})
    device.sent.clear()
    entries = device.core.samples.published["here"].entries
    entries.put_own(device.core.replica, "cellar", None)
    device.now_us += SECOND_US
    for publication in device.durable.tick(device.now_us):
        if publication.topic == f"{TOPIC}/cellar":
            device.core.handle_unsent(publication)
            break
    entries.put_own(device.core.replica, "cellar", (1, 210))
    run(device, 3)
    assert [each["value"] for each in said(device, f"{TOPIC}/cellar")] == [21.0]
    assert list(device.core.report()["alerts"]["too warm"]["keys"]) == ["cellar"]


def test_the_turns_of_a_key_that_is_gone_are_called_out_however_late(start):
    house = House(bound=1, key=lambda event: event.tags["room"])
    house.program.alert("too warm", house.everywhere, above=28)
    device = start(house)
    read(device, 29.0, 6, tags={"room": "attic"})
    read(device, 20.0, 6, tags={"room": "cellar"})
    device.core.samples.published["here"].entries.put_own(device.core.replica, "attic", None)
    run(device, 3)
    device.core.handle_connected(device.now_us)  # what the broker holds of it is cleared again
    run(device, 3)
    assert called_out(device) == [(1, "on"), (2, "off")]


@pytest.mark.parametrize("state", ["off", "on"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_key_that_is_gone_after_a_restart_is_cleared_at_the_broker(start, state, times):
    """Also where the process that was to clear it died before anything left."""
    house = House(bound=1, key=lambda event: event.tags["room"])
    house.program.alert("too warm", house.everywhere, above=28)
    device = start(house)
    read(device, 20.0, tags={"room": "cellar"})
    peer_says(device, 1, 1, 300 if state == "on" else 200, key="attic")
    run(device, 5)
    assert [each["state"] for each in said(device, f"{TOPIC}/attic")] == [state]
    for _ in range(times):
        device.restart()  # the peer is off for good, and its value is nobody's
        for _ in range(EAGER.grace_us // SECOND_US + 60):
            left = len(device.sent)
            run(device, 1)
            if any(p.topic == f"{TOPIC}/attic" and not p.payload for p in device.sent[left:]):
                break
    assert said(device, f"{TOPIC}/attic")[-1:] == [None]
    for turn in device.core.acting.alerts.turns():
        device.core.acting.alerts.called_out(turn)
    device.core.handle_connected(device.now_us)
    run(device, 60)
    assert said(device, f"{TOPIC}/attic") == [None], "the connection may have lost it"
    device.restart()
    run(device, EAGER.grace_us // SECOND_US + 60)
    assert said(device, f"{TOPIC}/attic") == [], "and then it is forgotten"


def restarted_with_a_peers_alert_on(start):
    """Return a device that was restarted while an alert on a key of another one was on."""
    house = House(bound=1, key=lambda event: event.tags["room"])
    house.program.alert("too warm", house.everywhere, above=28)
    device = start(house)
    read(device, 20.0, tags={"room": "cellar"})
    peer_says(device, 1, 1, 300, key="attic")
    run(device, 5)
    assert [each["state"] for each in said(device, f"{TOPIC}/attic")] == ["on"]
    device.restart()
    return device


def test_who_has_just_been_connected_again_does_not_say_that_others_keys_are_off(start):
    device = restarted_with_a_peers_alert_on(start)
    run(device, EAGER.grace_us // SECOND_US - 1)  # it heard nobody
    device.core.handle_connected(device.now_us)
    run(device, 5)  # what the broker retains is late
    peer_says(device, 1, 1, 300, key="attic")
    run(device, 60)
    assert {each["state"] for each in said(device, f"{TOPIC}/attic")} == {"on"}


def test_who_was_cut_off_before_others_spoke_does_not_say_that_their_keys_are_off(start):
    device = restarted_with_a_peers_alert_on(start)
    device.core.acting.alerts.calls_out = True
    run(device, 1)
    device.core.handle_disconnected()  # nothing that the broker retains came before that
    run(device, EAGER.grace_us // SECOND_US + 60)
    device.core.handle_connected(device.now_us)
    peer_says(device, 1, 1, 300, key="attic")
    run(device, EAGER.grace_us // SECOND_US + 60)
    assert {each["state"] for each in said(device, f"{TOPIC}/attic")} == {"on"}
    assert [turn.number for turn in device.core.acting.alerts.turns()] == [1], "it never turned"


def test_an_alert_on_the_fleets_value_follows_the_other_devices(start):
    house = House(bound=1)
    house.program.alert("too warm", house.everywhere, above=28, below=27)
    device = start(house)
    read(device, 20.0)
    peer_says(device, 1, 1, 380)
    run(device, 5)
    peer_says(device, 2, 1, 340)
    run(device, 5)
    found = said(device)
    assert [(each["state"], each["value"]) for each in found] == [
        ("off", 20.0),
        ("on", 29.0),
        ("off", 27.0),
    ][-len(found) :]
    assert found[-2]["devices"] == ["pi-1", "pi-2"]


def test_a_quantile_by_part_can_be_watched(start):
    house = House(bound=5, fold=folds.struct(mean=folds.mean(), p=folds.quantile(0.5)))
    house.program.alert("too warm", house.here, part="p", above=28)
    device = start(house)
    device.read([10.0, 29.0, 30.0])
    run(device, 3)
    assert said(device)[-1]["state"] == "on"


OPERATOR = Replica(1, 5, "operator")


def test_a_level_that_an_operator_changes_counts_from_its_time_on(start):
    house = House(bound=1)
    limit = house.program.parameter("limit", "28", resolution="0.1")
    house.program.alert("too warm", house.here, above=limit, hysteresis="0.5")
    house.on_value(house.here, above=limit)
    device = start(house)
    read(device, 27.0)
    assert states(device) == ["off"]
    at_us = device.now_us + 10 * SECOND_US
    log = ControlLog()
    log |= log.set("limit", "", at_us, "26.5", "ann")
    device.hear(schedule_command(OPERATOR, 1, "limit", "", log))
    run(device, 5)
    assert (states(device), house.numbers()) == ([], [])
    run(device, 10)
    (status,) = said(device)
    assert (status["state"], status["above"], status["below"]) == ("on", 26.5, 26.0)
    assert house.numbers() == [27.0]
    device.restart()
    run(device, 5)
    assert states(device) == ["on"], "the state is that of before the restart"
    log |= log.set("limit", "pi-1", device.now_us, "30", "ann")
    device.hear(schedule_command(OPERATOR, 2, "limit", "pi-1", log))
    run(device, 3)
    assert states(device) == ["off"], "this device alone has another one"
