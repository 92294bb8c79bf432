"""Newest final rows of results are entities of Home Assistant."""

import json
from datetime import datetime

from tests.device_agent.agent.fleet.home import HOME, Home, template
from tests.device_agent.agent.scans.support_streams import SECOND_US
from tests.device_agent.agents import NOW_US


def test_each_part_of_a_row_is_an_entity_of_its_device(begin, jinja):
    home, device = Home(), begin(settings=HOME)
    device.meter([(0, 100, "a"), (10, 130, "a")])
    for _ in range(3):
        home.tick(device, 1)
    used = home.entities["lasp__water__pi-1__used__difference__a"]
    assert (used["name"], used["device"]["name"]) == ("used (a)", "pi-1")
    assert (used["state_class"], used["suggested_display_precision"]) == ("measurement", 1)
    state = home.retained[used["state_topic"]]
    assert "final" not in json.loads(state)
    assert template(jinja, used["value_template"], state) == "None"
    device.meter([(60, 131, "a")])
    for _ in range(4):
        home.tick(device, 10)
    state = home.retained[used["state_topic"]]
    assert template(jinja, used["value_template"], state) == "30.0"  # 1.0 is tentative
    start = home.entities["lasp__water__pi-1__runs__start_5fus__a"]
    shown = template(jinja, start["value_template"], home.retained[start["state_topic"]])
    assert (start["name"], start["device_class"]) == ("runs start (a)", "timestamp")
    assert datetime.fromisoformat(shown).timestamp() == NOW_US // SECOND_US + 10
