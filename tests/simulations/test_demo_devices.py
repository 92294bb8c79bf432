"""A device of the demo: for how long it was away, as its agent's reports have it."""

import json
from types import SimpleNamespace

import pytest

from simulations.demo import devices
from simulations.demo.devices import Device


class Agent:
    """An agent that has written some lines since it was looked at."""

    name = "attic"

    def __init__(self):
        self.lines: list[str] = []

    def new_lines(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


@pytest.fixture
def clock(monkeypatch):
    """Seconds that a test sets."""
    at = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(devices, "now_s", lambda: at.now_s)
    return at


def test_an_agent_that_a_busy_machine_holds_back_is_away_though_its_connection_stands(clock):
    agent = Agent()
    device = Device(agent, "data", [], SimpleNamespace(port=1883, url="mqtt://127.0.0.1:1883"))
    device.begin()
    for at_s, connected in ((101, True), (102, None), (109, True), (110, False), (112, True)):
        clock.now_s = float(at_s)
        if connected is not None:
            agent.lines = [json.dumps({"values": {}, "connected": connected})]
        device.look()
        assert device.silent_s == {101: 0, 102: 1, 109: 0, 110: 1, 112: 0}[at_s]
    assert device.away_s == 8.0
    device.relay.close()
