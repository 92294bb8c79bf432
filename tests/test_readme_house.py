"""The README's house in one file, on a real broker, with messages as those programs send them."""

import json
import subprocess
import sys
from datetime import datetime
from random import Random
from zoneinfo import ZoneInfo

import pytest

from device_agent.agent.timing.system_clock import wall_us
from lasp_edge.link import BrokerUrl, Link
from simulations.processes.broker import PrivateBroker
from tests.brokers import PATIENCE_S, broker_program, until_connected, until_true
from tests.support_readme import block, replaced


@pytest.mark.slow
@pytest.mark.broker
def test_the_house_in_one_file_runs_as_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("HOUSE_PASSWORD", "secret")
    with PrivateBroker(tmp_path / "broker", broker_program()) as broker:
        places = {"mqtt://192.168.1.10": broker.url, "/home/pi/lasp/data": str(tmp_path / "data")}
        quick = {"interval = 10": "interval = 0.2\nreport = 0.2\nkeep-readings = true"}
        (tmp_path / "fleet.toml").write_text(replaced(block("house file"), places | quick))
        agent = subprocess.Popen(
            [sys.executable, "-m", "lasp_edge", "agent", "--config", "fleet.toml"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=(tmp_path / "err").open("w"),
            text=True,
        )
        house = Link(BrokerUrl.parse(broker.url), client_id="house", jitter=Random(1))
        house.start()
        try:
            until_connected(house)
            until_true(lambda: is_heard(house, agent))
        finally:
            house.stop(0)
            agent.terminate()
            assert agent.wait(timeout=PATIENCE_S) == 0
    said = (tmp_path / "err").read_text()
    assert "onewire: " in said
    words = [sys.executable, "-m", "lasp_edge", "readings", "--data-dir", str(tmp_path / "data")]
    kept = map(json.loads, subprocess.check_output(words, text=True).splitlines())
    measured = {(r["source"], r["tags"]["room"], r["q"]) for r in kept if r["source"] != "onewire"}
    assert measured == {
        ("mqtt:zigbee2mqtt/{room}", "attic", 2137),
        ("mqtt:tele/{room}/SENSOR", "tank", 2110),
        ("mqtt:tele/{room}/SENSOR", "tank", 4880),
        ("mqtt:{room}/sensor/{event}/state", "kitchen", 1950),
        ("boiler", "boiler", 6000),
    }


def is_heard(house, agent):
    """Send everything once more, and return whether the agent has taken of each source.

    Only Tasmota's readings, which carry times of their own, can be repeated.
    """
    for topic, message in messages().items():
        house.publish(topic, message.encode())
    report = json.loads(agent.stdout.readline())
    return report["accepted"] >= 20 and report["repeated"]


def messages():
    """Return a message of each program; Tasmota's clock is that of Berlin."""
    now = datetime.fromtimestamp(wall_us() // 1_000_000, ZoneInfo("Europe/Berlin"))
    tank = {
        "Time": now.replace(tzinfo=None).isoformat(),
        "DS18B20-1": {"Id": "01131B123456", "Temperature": 21.1},
        "DS18B20-2": {"Id": "01131B789ABC", "Temperature": 48.8},
        "TempUnit": "C",
    }
    return {
        "zigbee2mqtt/bridge/state": '{"state":"online"}',
        "zigbee2mqtt/attic": '{"battery":86,"humidity":55.43,"linkquality":97,"temperature":21.37}',
        "zigbee2mqtt/lamp": '{"brightness":215,"color_temp":325,"state":"ON"}',
        "tele/tank/SENSOR": json.dumps(tank),
        "tele/tank/STATE": '{"Time":"2019-01-01T00:00:00","POWER":"ON"}',
        "kitchen/sensor/temperature/state": "19.5",
        "kitchen/sensor/uptime/state": "3600",
        "kitchen/binary_sensor/door/state": "OFF",
        "heating/boiler": '{"flow":{"f":140},"pump":true}',
    }
