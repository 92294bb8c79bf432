"""Home Assistant, as a viewer, behind the broker that `lasp-edge broker config` configures."""

import json

import pytest

from tests.brokers import until_true
from tests.device_agent.agent.fleet.home import is_config, judged
from tests.end_to_end.secured import NAME, SecuredFleet

pytestmark = [pytest.mark.broker, pytest.mark.slow]


def test_a_viewer_discovers_the_agents_and_reads_the_fleets_value(tmp_path):
    fleet = SecuredFleet(tmp_path, "--home-assistant")
    try:
        for device in ("kitchen", "attic"):
            fleet.agent(device, *fleet.login(device), "--home-assistant")
        root = fleet.topics.root
        home = fleet.link(
            "screen", subscriptions=["homeassistant/#", f"{root}/out/#", f"{root}/fleet/#"]
        )
        held = {}

        def is_told():
            for event in home.poll(0.05):
                if hasattr(event, "topic"):
                    held[event.topic] = event.payload
            value = json.loads(held.get(f"{root}/fleet/global_average", b"{}"))
            return value.get("devices") == 2 and value["settled"]

        until_true(is_told)
        home.stop()  # a command that logs in as the screen would end its connection, and it theirs
        configs = [each for t, p in held.items() if is_config(t) for each in judged(t, p)]
        assert {config["device"]["name"] for config in configs} == {"kitchen", "attic", NAME}
        assert {config["state_topic"] for config in configs} <= set(held)
        assert [fleet.report(device)["trouble"] for device in ("kitchen", "attic")] == [None, None]
        words = ("global_average", "--fleet", NAME, "--json", *fleet.login("screen"))
        assert json.loads(fleet.command("get", *words))["devices"] == 2
        words = ("--fleet", NAME, "--once", "--wait", "1", *fleet.login("screen"))
        table = fleet.command("watch", *words)
        assert "2 devices, 2 connected; global_average: " in table
        assert "NO CONNECTION" not in table
    finally:
        fleet.close()
