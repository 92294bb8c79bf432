"""A real gateway and agents whose program is changed, and changed back: no window is wrong."""

import importlib
import json
import sys

import pytest

from lasp_edge.tool.loading import load_plan
from tests.brokers import until_true
from tests.device_agent.gateway.test_process import Gateway, is_final, truth_of
from tests.device_agent.support_stage import NAME, PROGRAM, Stage, asked

pytestmark = [pytest.mark.slow, pytest.mark.broker]
DECLARED = "size_s=60, slide_s=10"


@pytest.fixture
def stage(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # a program of the same second and length
    stage.lander.link.stop(0.0)
    yield stage
    stage.close()


def change(stage, window, monkeypatch):
    """Let the program's window be another one, for whoever starts from now on."""
    text = PROGRAM.format(name=NAME).replace(DECLARED, window)
    (stage.directory / f"{NAME}.py").write_text(text)
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    importlib.invalidate_caches()
    stage.program = load_plan(f"{NAME}:program")


def run(stage, gateway, window, monkeypatch, device, *source):
    """Let all run this program, and return the agent."""
    gateway.kill()
    change(stage, window, monkeypatch)
    gateway.start()
    return stage.agent(device, "--source", f"jsonl:{stage.directory / device}.jsonl", *source)


def test_windows_that_are_changed_and_changed_back_are_as_the_readings_say(stage, monkeypatch):
    recorded = stage.record("a", 150, 0.7)
    file = stage.directory / "a.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    gateway = Gateway(stage, "--roster", "a")
    try:
        for size_s, slide_s, count in [(60, 20, 60), (40, 10, 100), (40, 20, 150)]:
            window = f"size_s={size_s}, slide_s={slide_s}"
            file.write_text("".join(lines[:count]))
            agent = run(stage, gateway, window, monkeypatch, "a", "--time", "ts")
            until_true(agent.done)
            truth = truth_of([recorded[:count]], stage)
            until_true(lambda truth=truth: is_final(there(gateway), truth))
            assert not [row for row in rows(gateway) if row["excluded"]]
            agent.end()
    finally:
        gateway.kill()


def there(gateway):
    """Return the rows of the windows that somebody has readings in."""
    return [row for row in gateway.rows() if row["devices_in"] != "0"]


def rows(gateway):
    printed = asked("windows", "warm", "--gateway", gateway.data, "--json")
    return [json.loads(line) for line in printed.splitlines()]
