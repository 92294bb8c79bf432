"""Several sources of one agent: their cursors, a broken one among them, and a replay of nothing."""

import argparse
import importlib.metadata
import json
import sys
from types import ModuleType

import pytest

from device_agent.agent.sources.choice import GROUP
from device_agent.agent.sources.mqtt_topic import read_twice
from device_agent.console.command.run_agent import opened_sources
from device_agent.console.configuration.agent_options import DEFAULTS, add_arguments
from device_agent.console.configuration.arguments import asked
from lasp_edge import Program
from lasp_edge.errors import Exit
from lasp_edge.link import BrokerUrl
from simulations.processes.broker import PrivateBroker
from tests.brokers import broker_program
from tests.device_agent.agents import greenhouse
from tests.device_agent.support_stage import lasp_edge, typed

PROGRAM = """
from crdts import BoundedLWWSet
from lasp_edge import Program, folds

program = Program("latest")
temperature = program.event("temperature", resolution="0.01")
last = program.declare_dynamic(BoundedLWWSet(bound=10), "last")
program.collect(temperature, into=last)
program.fold_dynamic(program.fold(last, folds.mean(), "here"), "everywhere")
"""
HEAD = """
program = "latest:program"
device = "pi-1"
data-dir = "data"
broker = "env:HOUSE_BROKER"
interval = 0.2
exit-when-done = true
keep-readings = true
"""
TABLES = (
    '[[source]]\nkind = "jsonl"\nfile = "a.jsonl"\n',
    '[[source]]\nname = "b"\nkind = "jsonl"\nfile = "b.jsonl"\n',
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    (tmp_path / "latest.py").write_text(PROGRAM)
    with PrivateBroker(tmp_path / "broker", broker_program()) as broker:
        monkeypatch.setenv("HOUSE_BROKER", broker.url)
        yield tmp_path


def add(path, value):
    with path.open("a") as file:
        file.write(json.dumps({"temperature": value}) + "\n")


@pytest.mark.broker
@pytest.mark.slow
def test_a_file_that_was_put_in_another_order_loses_no_cursor(home):
    for number, tables in enumerate((TABLES, TABLES[::-1])):
        add(home / "a.jsonl", 1 + number)
        add(home / "b.jsonl", 11 + number)
        (home / "fleet.toml").write_text(HEAD + "".join(tables))
        done = lasp_edge("agent", "--config", "fleet.toml", cwd=home)
        assert done.returncode == Exit.FINE, done.stderr
    kept = typed("readings", "--data-dir", home / "data").stdout.splitlines()
    rows = [(row["source"], row["value"]) for row in map(json.loads, kept)]
    assert sorted(rows) == [("b", 11), ("b", 12), ("jsonl:a.jsonl", 1), ("jsonl:a.jsonl", 2)]


@pytest.mark.broker
@pytest.mark.slow
def test_a_replay_of_which_nothing_was_accepted_fails_and_says_why(home):
    (home / "a.jsonl").write_text('{"temp": 1}\n' * 100)
    (home / "fleet.toml").write_text(HEAD + TABLES[0] + 'event.temperature = "tmp"\n')
    done = lasp_edge("agent", "--config", "fleet.toml", cwd=home)
    reason = '100 refused: no field "tmp": the message has "temp"'
    assert done.stdout.startswith(f"pi-1: 0 readings; {reason}; ")
    said = f"lasp-edge agent: no reading was accepted: {reason}\n"
    assert (done.returncode, done.stderr) == (Exit.DIFFERS, said)


def test_a_broken_source_of_others_is_said_and_ours_go_on(tmp_path, monkeypatch):
    points = [importlib.metadata.EntryPoint("modbus", "plugin_modbus", GROUP)]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    monkeypatch.setitem(sys.modules, "plugin_modbus", ModuleType("plugin_modbus"))
    modbus = '[[source]]\nkind = "modbus"\nname = "plc"\nport = 5\n'
    both = HEAD + modbus + '[[source]]\nkind = "hwmon"\n'
    broker = BrokerUrl.parse("mqtt://localhost")
    sources, broken = opened_sources(read(tmp_path, both), greenhouse(), broker)
    assert [source.name for source in sources] == ["hwmon"]
    [what] = broken
    assert what.startswith("source plc: the kind 'modbus' of source is broken: AttributeError: ")
    with pytest.raises(ValueError, match="source plc: the kind 'modbus' of source is broken"):
        opened_sources(read(tmp_path, HEAD + modbus), greenhouse(), broker)


def read(directory, text):
    """Return what a configuration file asks for."""
    (directory / "fleet.toml").write_text(text)
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    given = parser.parse_args(["--config", str(directory / "fleet.toml")])
    return asked(given, add_arguments, DEFAULTS, {"HOUSE_BROKER": "mqtt://localhost"})


TOPIC = '[[source]]\nname = "{}"\nkind = "mqtt"\ntopic = "{}"\nevent = {{ {} = "value" }}\n'


@pytest.mark.parametrize(
    ("tables", "twice"),
    [
        ((("a", "h/#", "t"), ("b", "h/{room}", "t")), ["a and b"]),
        ((("a", "h/#", "t"), ("b", "h/{room}", "u")), []),
        ((("a", "h/+", "t"), ("b", "k/{room}", "t"), ("c", "#", "t")), ["a and c", "b and c"]),
    ],
)
def test_sources_that_read_the_same_messages_are_named(tmp_path, tables, twice):
    text = "".join(TOPIC.format(*table) for table in tables)
    wanted = read(tmp_path, 'program = "latest:program"\ndevice = "d"\n' + text)
    program = Program("two")
    for name in ("t", "u"):
        program.event(name, resolution="0.1")
    broker = BrokerUrl.parse("mqtt://localhost")
    sources, _ = opened_sources(wanted, program.plan(), broker)
    found = list(read_twice(sources))
    assert [text.partition(" read the same")[0] for text in found] == twice
    assert all('each reading of "t" there counts twice' in text for text in found)
