"""What is told of keys: results on topics of their own, and reports."""

import json

import pytest

from lasp_edge import Program, folds
from lasp_edge.protocol.frames import VariableFrame
from tests.device_agent.agent.variables.keys.support_rooms import here, read
from tests.device_agent.agents import Device, rooms


def test_results_have_a_topic_a_key_that_is_cleared_when_the_key_goes(tmp_path):
    device = Device(tmp_path, rooms(bound=None, max_age_s=30))
    read(device, "attic", 1.0)
    device.tick(10)
    read(device, "Küche", 2.0)
    device.tick(10)
    said = {p.topic.split("/out/")[1]: p.payload for p in device.sent if "/out/" in p.topic}
    assert set(said) == {
        "agent/pi-1",
        "everywhere/pi-1",
        *(f"{name}/pi-1/{key}" for name in ("everywhere", "here") for key in ("attic", "Küche")),
    }
    result = json.loads(said["everywhere/pi-1/attic"])
    assert (result["parts"], result["count"], result["devices"]) == ({"mean": 1.0}, 1, 1)
    assert json.loads(said["everywhere/pi-1"])["settled"]
    device.sent.clear()
    device.tick(15)
    again = {p.topic.split("/out/")[1]: p.payload for p in device.sent if "/out/" in p.topic}
    assert (again["here/pi-1/attic"], again["everywhere/pi-1/attic"]) == (b"", b"")
    assert "here/pi-1/Küche" not in again  # nothing new


@pytest.mark.parametrize("is_known_again", [False, True])
def test_the_topic_of_a_key_that_left_without_a_connection_is_cleared_by_a_later_process(
    tmp_path, is_known_again
):
    device, topic = Device(tmp_path, rooms(bound=None, max_age_s=30)), "out/here/pi-1/Küche"
    read(device, "Küche", 2.0)
    device.tick(10)
    device.core.handle_disconnected()
    device.tick(60)  # the key leaves the store, too
    device.restart(9)
    device.sent.clear()
    for at in range(30):
        if is_known_again and at < 20:
            read(device, "Küche", 3.0)
        device.tick(10)
    told = [p.payload for p in device.sent if p.topic.endswith(topic)]
    assert told[-1] == b""
    assert told.count(b"") == 1
    device.core.handle_connected(device.now_us)  # the broker may not have taken what came last
    device.tick(10)
    device.tick(10)
    assert [p.payload for p in device.sent if p.topic.endswith(topic)] == [*told, b""]
    assert not any(topic in each for group in shown(device).values() for each in group)


def shown(device):
    return device.store.restored().facts.shown


def test_a_topic_is_stored_before_anything_is_published_on_it(tmp_path):
    device = Device(tmp_path, rooms(bound=None, max_age_s=30))
    for at, room in enumerate(["attic", "Küche", "hall"]):
        read(device, room, 1.0)
        device.tick(10)
        stored = {each for group in shown(device).values() for each in group}
        assert {p.topic for p in device.sent if "/out/" in p.topic} == stored
        assert len(stored) == 2 + 2 * (at + 1)


def test_the_topics_of_a_fold_that_left_the_program_are_cleared(tmp_path):
    device = Device(tmp_path, rooms())
    read(device, "attic", 1.0)
    device.tick(10)
    program = Program("rooms")
    program.event("temperature")
    device.program = program.plan()
    device.restart(9)
    device.sent.clear()
    for _ in range(30):
        device.tick(10)
    cleared = {p.topic.split("/out/")[1] for p in device.sent if not p.payload}
    assert cleared == {"here/pi-1/attic", "everywhere/pi-1/attic", "everywhere/pi-1"}


def test_a_report_has_values_by_key(device):
    read(device, "attic", 1.0)
    device.tick()
    values = device.core.report()["values"]
    assert values["here"] == {
        "keys": {"attic": {"parts": {"mean": 1.0}, "count": 1, "total_q": 100}}
    }
    assert set(values["everywhere"]) == {"keys", "inputs", "devices", "settled", "except"}
    assert values["everywhere"]["keys"]["attic"]["devices"] == 1


def test_binary_parts_are_hexadecimal_in_a_report(tmp_path):
    device = Device(tmp_path, rooms(folds.top(2)))
    read(device, "attic", 1.0, 3.0, 2.0)
    device.tick()
    values = device.core.report()["values"]
    json.dumps(values)
    assert here(device)["attic"][0].hex() in values["here"]["keys"]["attic"].values()


def test_a_program_without_keys_says_nothing_of_shards(tmp_path):
    program = Program("plain")
    program.event("temperature")
    device = Device(tmp_path, program.plan())
    device.tick()
    assert device.frames(VariableFrame) == []
