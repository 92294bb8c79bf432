"""A real agent calls a real command once when an alert turns, and not again after a kill."""

import json
import signal
import sys

import pytest

from device_agent.agent.state.store import existing_store
from tests.brokers import until_true
from tests.device_agent.support_stage import NAME, START_S

pytestmark = [pytest.mark.broker, pytest.mark.slow]

PROGRAM = """
from crdts import BoundedLWWSet
from lasp_edge import Program, folds

program = Program("{name}")
temperature = program.event("temperature", resolution="0.01")
samples = program.declare_dynamic(BoundedLWWSet(bound=1), "samples")
program.collect(temperature, into=samples)
local = program.fold(samples, folds.mean(), "local_average")
program.fold_dynamic(local, "global_average")
program.alert("too warm", local, above=28, below=27)
"""
SIREN = """
import pathlib, sys
with pathlib.Path(sys.argv[1]).open("a") as file:
    file.write(sys.stdin.read())
"""


def test_an_alert_calls_its_command_once_and_not_again_after_a_kill(stage):
    (stage.directory / f"{NAME}.py").write_text(PROGRAM.format(name=NAME))
    siren, heard = stage.directory / "siren.py", stage.directory / "heard"
    siren.write_text(SIREN)
    recorded = stage.directory / "pi.jsonl"
    command = ("--alert-command", f"{sys.executable} {siren} {heard}")

    def turns():
        lines = heard.read_text().splitlines() if heard.exists() else []
        return [(said["state"], said["value"]) for said in map(json.loads, lines)]

    def read(value, number):
        with recorded.open("a") as file:
            file.write(json.dumps({"ts": START_S + number, "temperature": value}) + "\n")

    read(29.5, 0)
    agent = stage.replay("pi", *command)
    until_true(lambda: agent.newest().get("alerts") and turns() == [("on", 29.5)])
    until_true(lambda: not any(waiting(agent)))
    assert agent.end(signal.SIGKILL) == -signal.SIGKILL
    read(28.5, 1)
    agent = stage.replay("pi", *command)
    until_true(lambda: agent.newest()["accepted"] == 2)
    assert agent.end() == 0
    assert [said["state"] for said in agent.status()["alerts"]] == ["on"]
    assert turns() == [("on", 29.5)]


def waiting(agent):
    """Return the turns that the store says are still to be called out."""
    store = existing_store(agent.data)
    acted = store.restored().facts.acted or {}
    store.close()
    return [record["waiting"] for records in acted.values() for record in records.values()]
