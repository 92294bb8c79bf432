"""An alert is a binary sensor of its device in Home Assistant, one for each key."""

import json

from device_agent.settings import SECOND_US, Settings
from tests.device_agent.acting.support_acting import House
from tests.device_agent.agents import Device
from tests.device_agent.fleet.home import judged

HOME = Settings(results_us=10 * SECOND_US, home_assistant="homeassistant")


def shown(tmp_path, house, **reading):
    """Return the configurations of alerts by id, each with the state that it shows."""
    device = Device(tmp_path, house.plan(), settings=HOME)
    for _ in range(3):
        device.tick(10)
    device.read([29.0], **reading)
    for _ in range(3):
        device.tick(10)
    device.kill()
    retained = {each.topic: each.payload for each in device.sent if each.retain and each.payload}
    found = {}
    for topic, payload in retained.items():
        if topic.startswith("homeassistant/binary_sensor/") and "__alert" in topic + str(payload):
            config = judged(topic, payload)
            found[config["unique_id"]] = config, json.loads(retained[config["state_topic"]])
    return found


def test_an_alert_is_a_binary_sensor_that_shows_its_state(tmp_path):
    house = House()
    house.program.alert("too warm", house.everywhere, above=28)
    ((identity, (config, state)),) = shown(tmp_path, house).items()
    assert identity == "lasp__house__pi-1___alert__too_20warm"
    assert (config["name"], config["device_class"]) == ("too warm", "problem")
    assert (state["state"], state["value"]) == ("on", 29.0)
    assert config["value_template"] == "{{ 'ON' if value_json.state == 'on' else 'OFF' }}"


def test_an_alert_of_a_value_with_keys_is_an_entity_for_each_key(tmp_path):
    house = House(key=lambda event: event.tags["room"])
    house.program.alert("too warm", house.here, above=28)
    ((identity, (config, state)),) = shown(tmp_path, house, tags={"room": "attic"}).items()
    assert identity == "lasp__house__pi-1___alert__too_20warm__attic"
    assert (config["name"], state["key"]) == ("too warm (attic)", "attic")
