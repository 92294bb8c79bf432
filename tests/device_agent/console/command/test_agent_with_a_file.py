"""`lasp-edge agent --config`: a house in one file, on a real broker, and mistakes in it."""

import json
import re
import subprocess
import sys
from random import Random

import pytest

from lasp_edge.errors import Exit
from lasp_edge.link import BrokerUrl, Link
from lasp_edge.tool.command_line import main
from simulations.processes.broker import PrivateBroker
from tests.brokers import PATIENCE_S, broker_program, until_connected, until_true
from tests.device_agent.support_stage import MAIN, asked

PROGRAM = """
from crdts import BoundedLWWSet
from lasp_edge import Program, folds

program = Program("house")
temperature = program.event("temperature", resolution="0.01", unit="°C")
contact = program.event("contact", resolution="1")
last = program.declare_dynamic(
    BoundedLWWSet(bound=10), "last", key=lambda event: event.tags["room"], measures=temperature
)
program.collect(temperature, into=last)
program.fold_dynamic(program.fold(last, folds.mean(), "here"), "rooms")
program.window("doors", source=contact, fold=folds.sum(), size_s=60, slide_s=60)
"""
FILE = """
program = "house:program"
device = "attic-pi"
broker = "env:HOUSE_BROKER"
data-dir = "data"
interval = 0.2
report = 0.2
keep-readings = true

[[source]]
kind = "mqtt"
topic = "zigbee2mqtt/{room}"
mapping = "zigbee2mqtt"

[[source]]
name = "boiler"
kind = "mqtt"
topic = "heating/{room}"
event.temperature = { field = "flow_f", scale = "5/9", offset = "-160/9" }

[[source]]
kind = "stdin"
"""


@pytest.fixture
def house(tmp_path):
    (tmp_path / "house.py").write_text(PROGRAM)
    (tmp_path / "fleet.toml").write_text(FILE)
    return tmp_path


@pytest.mark.broker
@pytest.mark.slow
def test_a_house_in_one_file(house, monkeypatch):
    said = '{"temperature": "19.5", "room": "cellar"}\n{"tmp": 1}\n'
    with PrivateBroker(house / "broker", broker_program()) as broker:
        monkeypatch.setenv("HOUSE_BROKER", broker.url)
        agent = subprocess.Popen(
            [sys.executable, "-c", MAIN, "agent", "--config", "fleet.toml", "--tag", "room=room"],
            cwd=house,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(house / "err").open("w"),
            text=True,
        )
        sender = Link(BrokerUrl.parse(broker.url), client_id="z2m", jitter=Random(1))
        sender.start()
        try:
            agent.stdin.write(said)
            agent.stdin.close()
            until_connected(sender)
            until_subscribed(sender, agent)
            for topic, message in (
                ("zigbee2mqtt/bridge/state", {"state": "online"}),
                ("zigbee2mqtt/attic", {"temperature": 21.37, "humidity": 40, "linkquality": 97}),
                ("zigbee2mqtt/hall", {"contact": True, "battery": 100}),
                ("zigbee2mqtt/lamp", {"state": "ON", "brightness": 215}),
                ("heating/boiler", {"flow_f": 140}),
            ):
                assert sender.publish(topic, json.dumps(message).encode())
            report = reported(agent, lambda report: len(keys(report)) >= 4)
        finally:
            sender.stop(0)
            agent.terminate()
            assert agent.wait(timeout=PATIENCE_S) == Exit.FINE
    means = {room: value["parts"]["mean"] for room, value in keys(report).items()}
    assert means == {"attic": 21.37, "boiler": 60.0, "cellar": 19.5, "probe": 1.0}
    status = json.loads(asked("status", "--data-dir", house / "data", "--json"))
    assert any('the message has "tmp"' in line for line in map(str, status.values()))
    kept = asked("readings", "--data-dir", house / "data").splitlines()
    sources = {json.loads(line)["source"] for line in kept}
    assert sources == {"mqtt:zigbee2mqtt/{room}", "boiler", "stdin"}


def keys(report):
    return report["values"].get("rooms", {}).get("keys", {})


def reported(agent, enough):
    """Read reports until one is enough."""
    for line in agent.stdout:
        report = json.loads(line)
        if enough(report):
            return report
    raise AssertionError("the agent ended")


def until_subscribed(sender, agent):
    """Send until both topics are heard: a message before the subscription is lost."""
    reported(agent, lambda report: report["connected"])

    def heard():
        sender.publish("heating/probe", b'{"flow_f": 33.8}')
        sender.publish("zigbee2mqtt/probe", b'{"contact": false, "temperature": 1}')
        report = json.loads(agent.stdout.readline())
        return report["accepted"] >= 12

    until_true(heard)


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (("[[source]]", "[[sorce]]"), Exit.USAGE, r'line 10: the file has no key "sorce"; did you'),
        (('{room}"\nmap', '{room"\nmap'), Exit.USAGE, "line 10: zigbee2mqtt/{room: '{room' is"),
        (("event.temp", "event.tmp"), Exit.USAGE, "line 15: event tmperature: the program has"),
        (('"stdin"', '"csv"\nfile = "x"'), Exit.USAGE, "line 21: source csv:x: the file x is not"),
        (
            ('device = "attic-pi"\n', ""),
            Exit.USAGE,
            "fleet.toml says no device; add it, or type --device",
        ),
        (('"env:HOUSE', '"env:NO'), Exit.USAGE, "line 4: the environment variable NO_BROKER is"),
        (("house:", "hose:"), Exit.NOT_FOUND, "no module 'hose'"),
    ],
)
def test_a_mistake_is_one_line(house, monkeypatch, capsys, change, code, said):
    monkeypatch.setenv("HOUSE_BROKER", "mqtt://127.0.0.1:9")
    monkeypatch.chdir(house)
    monkeypatch.syspath_prepend(str(house))
    (house / "fleet.toml").write_text(FILE.replace(*change))
    found = main(["agent", "--config", "fleet.toml"])
    sys.modules.pop("house", None)
    complaint = capsys.readouterr().err
    assert (found, len(complaint.splitlines())) == (code, 1), complaint
    assert said in complaint


def test_help_says_every_default(capsys):
    with pytest.raises(SystemExit):
        main(["agent", "--help"])
    told = capsys.readouterr().out
    options = re.split(r"\n  (?=--)", told.partition("options:")[2])
    assert len(options) > 30
    needed = {"--device", "--data-dir", "--broker", "--source", "--login", "--ca-file", "--key"}
    needed |= {"--certificate", "--sign", "--trust", "--tag", "--with-tag", "--retained"}
    without = {option.split()[0].rstrip(",") for option in options[1:] if "default" not in option}
    assert without <= needed
