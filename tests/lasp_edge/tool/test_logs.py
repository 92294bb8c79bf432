"""Logs: text for people as it always was, or a JSON object a line, from one place."""

import argparse
import json
import logging
import subprocess
import sys

import pytest

from cloud_tier.command import cloud, lander
from lasp_edge.tool.json_lines import JsonFormatter
from lasp_edge.tool.log_options import add_log_arguments, set_up_logs, teller, words_of

PROGRAM = "lasp_edge.examples.greenhouse:program"


def arguments(*words):
    parser = argparse.ArgumentParser()
    add_log_arguments(parser)
    return parser.parse_args(words)


@pytest.fixture
def logged(monkeypatch, capsys):
    """Return what the root logger writes once it was set up with these words."""

    def run(*words):
        monkeypatch.setattr(logging.root, "handlers", [])
        monkeypatch.setattr(logging.root, "level", logging.WARNING)
        monkeypatch.setattr(logging.getLogger("lasp_edge.told"), "level", logging.NOTSET)
        given = arguments(*words)
        set_up_logs(given, device="attic")
        log = logging.getLogger("test.logs")
        log.info("quiet %d", 1)
        log.warning("source %s: lost", "host", extra={"source": "host", "device": "not mine"})
        teller(given)("told")
        out, err = capsys.readouterr()
        return out, err.splitlines()

    return run


def test_text_stays_as_it_was(logged):
    out, (line,) = logged()
    assert (out, line.split(" ", 2)[2]) == ("told\n", "source host: lost")
    assert len(logged("--verbose")[1]) == len(logged("--log-level", "info")[1]) == 2
    assert logged("--log-level", "error", "--verbose")[1] == []


def test_a_line_of_json_has_time_level_device_event_and_fields(logged):
    out, lines = logged("--log-format", "json", "--log-level", "warning")
    assert out == ""
    lost, told = map(json.loads, lines)
    assert lost.pop("time")[10] == "T"
    assert lost == {
        "level": "warning",
        "device": "attic",
        "event": "source host: lost",
        "logger": "test.logs",
        "source": "host",
    }
    assert (told["event"], told["level"]) == ("told", "info"), "whatever the level"


def test_an_error_has_its_traceback_in_the_same_line():
    try:
        1 // 0  # noqa: B018
    except ZeroDivisionError:
        record = logging.makeLogRecord({"msg": "é\n", "exc_info": sys.exc_info()})
    line = JsonFormatter({}).format(record)
    assert "\n" not in line
    assert "ZeroDivisionError: " in json.loads(line)["exception"].splitlines()[-1]
    assert json.loads(line)["event"] == "é\n"


@pytest.mark.parametrize("command", [cloud, lander], ids=["cloud", "lander"])
def test_the_job_and_its_lander_log_in_the_same_way(command):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    words = ["--log-level=debug", "--log-format=json", "--verbose"]
    given = parser.parse_args(["a:b", "--lake", "x", "--broker", "mqtt://y", *words])
    assert words_of(given) == words


@pytest.mark.slow
def test_an_agents_lines_and_reports_are_json(tmp_path):
    (tmp_path / "fleet.toml").write_text(
        f'program = "{PROGRAM}"\ndevice = "attic"\nbroker = "mqtt://127.0.0.1:9"\n'
        'data-dir = "data"\nlog-format = "json"\nsource = ["hwmon"]\n'
    )
    words = [sys.executable, "-m", "lasp_edge", "agent", "--config", "fleet.toml"]
    agent = subprocess.Popen(
        words, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    lines, awaited = [], {"report", "cannot reach mqtt://127.0.0.1:9"}
    while awaited:
        lines.append(json.loads(agent.stderr.readline()))
        awaited -= {event for event in awaited if event in lines[-1]["event"]}
    agent.terminate()
    out, err = agent.communicate(timeout=20)
    lines += map(json.loads, err.splitlines())
    assert (out, agent.returncode) == ("", 0)
    assert {line["device"] for line in lines} == {"attic"}
    assert any(line.get("source") == "hwmon" for line in lines)
    reports = [line["report"] for line in lines if line["event"] == "report"]
    assert reports[-1]["device"] == "attic"
