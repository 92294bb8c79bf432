"""Real agents on a real broker that are given what ended them once."""

import argparse
import random
import shlex
import subprocess
from pathlib import Path

import msgpack
import pytest

from device_agent.agent.changes import Changes
from device_agent.agent.state.store import FILE_NAME, Store
from device_agent.console.command import run_agent as command
from device_agent.console.configuration.arguments import AgentRequest
from device_agent.storage.damage import DamagedStoreError
from lasp_edge.protocol.envelope import FORMAT
from tests.brokers import until_true
from tests.device_agent.agents import Device, rooms
from tests.device_agent.support_stage import NAME, asked

pytestmark = [pytest.mark.broker, pytest.mark.slow]

BROKEN = """
import sys
from lasp_edge import Program, folds

program = Program("{name}")
temperature = program.event("temperature", resolution="0.01")
load = program.event("load", resolution="0.01")

@program.on_event(temperature)
def leaving(event, update):
    if event.value < 20:
        sys.exit(3)
    if event.value < 22:
        raise KeyboardInterrupt

program.window("warm", source=temperature, fold=folds.mean(), size_s=60, slide_s=10)
"""


def test_a_retained_frame_with_keys_and_no_columns_ends_no_agent_at_any_start(stage):
    stream = stage.program.local_folds["local_average"].stream
    body = ["local_average", stream, 0, [""], [0], []]
    payload = msgpack.packb([FORMAT, 2, "b", 1, 7, 1, None, body])
    topic = stage.lander.topics.of("var", "b", "local_average", "00")
    until_true(lambda: stage.lander.link.publish(topic, payload, retain=True))
    take = stage.lander.take
    stage.lander.take = lambda message: None if message.payload == payload else take(message)
    stage.record("a", 50)
    for _ in range(2):
        agent = stage.replay("a")
        stage.lander.serve(agent.done)
        assert agent.end() == 0
    status = agent.status()
    assert status["accepted"] == 50
    assert status["frames_left_aside"]["columns of unequal length"] >= 2


def test_functions_that_end_the_process_end_no_agent_and_status_names_their_lines(stage):
    (stage.directory / f"{NAME}.py").write_text(BROKEN.format(name=NAME))
    recorded = stage.record("a", 300)
    agent = stage.replay("a")
    stage.lander.serve(lambda: agent.newest()["accepted"] + agent.report.get("refused", 0) >= 300)
    assert agent.end() == 0
    status = agent.status()
    assert status["accepted"] == sum(reading.value >= 22 for reading in recorded)
    reasons = status["refused_by_reason"]
    (left,) = [count for reason, count in reasons.items() if "SystemExit: 3" in reason]
    (broken,) = [count for reason, count in reasons.items() if "KeyboardInterrupt" in reason]
    assert (left, broken) == (
        sum(reading.value < 20 for reading in recorded),
        sum(20 <= reading.value < 22 for reading in recorded),
    )
    assert all(f"{NAME}.py:" in reason for reason in reasons)


HANGING = """
import time
from lasp_edge import Program, folds

program = Program("{name}")
temperature = program.event("temperature", resolution="0.01")
load = program.event("load", resolution="0.01")
calls = []

@program.on_event(temperature)
def hanging(event, update):
    calls.append(event)
    while len(calls) in (5, 6):
        try:
            time.sleep(0.001)
        except Exception:
            pass

program.window("warm", source=temperature, fold=folds.mean(), size_s=60, slide_s=10)
"""


def test_a_handler_that_never_returns_is_ended_and_named_and_the_agent_goes_on(stage):
    (stage.directory / f"{NAME}.py").write_text(HANGING.format(name=NAME))
    stage.record("a", 100)
    agent = stage.replay("a", "--handler-limit", "2")
    stage.lander.serve(agent.done)
    assert agent.end() == 0
    status = agent.status()
    assert (status["accepted"], status["refused"]) == (98, 2)
    reasons = sorted(status["refused_by_reason"])
    assert "hanging was ended after 0.2 s" in reasons[0]
    assert "hanging was ended after 2 s" in reasons[1]
    assert all(f"{NAME}.py:" in reason for reason in reasons)


def test_an_agent_starts_on_a_damaged_store_and_status_says_where_it_is_kept(stage):
    stage.record("a", 500)
    agent = stage.replay("a")
    stage.lander.serve(agent.done)
    agent.end()
    path = agent.data / FILE_NAME
    content = bytearray(path.read_bytes())
    place = random.Random(3).randrange(4_096, len(content) - 2_000)
    content[place : place + 2_000] = bytes(2_000)
    path.write_bytes(content)
    again = stage.replay("a")
    until_true(lambda: "replica" in again.newest())
    again.end()
    assert (agent.data / f"{FILE_NAME}.damaged-1").is_file()
    (failure,) = [f for f in again.status()["failures"] if f.startswith("store: ")]
    assert "agent.sqlite.damaged-1" in failure
    said = asked("status", "--data-dir", agent.data)
    assert f"FAILED         1 {failure}" in said
    (line,) = [line for line in said.splitlines() if "DAMAGED" in line]
    kept_bytes = sum(file.stat().st_size for file in agent.data.glob("*damaged*"))
    assert f"agent.sqlite.damaged-1, {kept_bytes:,} bytes" in line
    command = line.partition("to delete it, type: ")[2]
    subprocess.run(shlex.split(command), check=True)
    assert list(agent.data.glob("*damaged*")) == []
    assert "DAMAGED" not in asked("status", "--data-dir", agent.data)


def test_damage_that_shows_while_an_agent_runs_lets_it_start_anew(tmp_path, monkeypatch):
    device = Device(tmp_path)
    device.read([20.0])
    device.kill()
    starts: list[str] = []

    class Broken:
        def __init__(self, found: str) -> None:
            self.found = found

        def run(self) -> int:
            starts.append(self.found)
            if len(starts) > 1:
                return 0
            store = Store(tmp_path)
            store.put_aside()
            raise DamagedStoreError("a row does not match its checksum")

    monkeypatch.setattr(command, "_runtime", lambda _wanted, _plan, found: (Broken(found), None))
    wanted = AgentRequest(argparse.Namespace(exit_when_done=False), [], {})
    assert command._run(wanted, rooms()) == 0
    assert starts == ["", "damaged, and put aside: a row does not match its checksum"]
    assert sorted(path.name for path in Path(tmp_path).glob("*damaged*")) == [
        f"{FILE_NAME}.damaged-1"
    ]
    store = Store(tmp_path)
    store.commit(Changes(counters={"accepted": 1}))
    assert store.restored().incarnation == 0
    store.close()
