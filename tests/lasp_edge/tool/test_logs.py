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
from tests.brokers import PATIENCE_S

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
        monkeypatch.setattr(logging.getLogger("lasp_edge.report"), "level", logging.NOTSET)
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
    out, err = agent.communicate(timeout=PATIENCE_S)
    lines += map(json.loads, err.splitlines())
    assert (out, agent.returncode) == ("", 0)
    assert {line["device"] for line in lines} == {"attic"}
    assert any(line.get("source") == "hwmon" for line in lines)
    reports = [line["report"] for line in lines if line["event"] == "report"]
    assert reports[-1]["device"] == "attic"


NEEDED = ["--device=attic", "--broker=mqtt://127.0.0.1:9", "--data-dir=data", "--source=host"]
JSON_FILE = f'log-format = "json"\nprogram = "{PROGRAM}"\n'


@pytest.mark.parametrize(
    ("words", "file", "code", "error"),
    [
        (["--log-format", "json", "--devise", "x"], None, 2, "did you mean --device by --devise?"),
        (
            ["--log-form=json", "--interval", "often"],
            None,
            2,
            "--interval: a number is needed, not 'often'",
        ),
        (["no_such:program", *NEEDED, "--log-format=json"], None, 3, "no module 'no_such'"),
        (["--config", "fleet.toml"], JSON_FILE + "devise = 1\n", 2, "line 3: the file has no key"),
        (["--config", "fleet.toml"], JSON_FILE, 2, "says no device"),
        (
            [PROGRAM, *NEEDED, "--source=jsonl:no.jsonl", "--log-format=json"],
            None,
            2,
            "the file no.jsonl is not there",
        ),
    ],
)
def test_the_line_that_ends_an_agent_is_json(tmp_path, words, file, code, error):
    if file is not None:
        (tmp_path / "fleet.toml").write_text(file)
    done = subprocess.run(
        [sys.executable, "-m", "lasp_edge", "agent", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    *_, last = map(json.loads, done.stderr.splitlines())
    assert error in last["event"]
    assert (last["level"], last["command"], last["exit_code"]) == ("error", "agent", code)
    assert (done.returncode, done.stdout) == (code, "")


def test_a_mistake_of_ours_is_json_too_with_its_traceback():
    script = (
        "import warnings; from lasp_edge.tool.log_options import begin_json; begin_json({});"
        "warnings.warn('old'); 1 / 0"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    warned, ended = map(json.loads, done.stderr.splitlines())
    assert "UserWarning: old" in warned["event"]
    assert ended["event"] == "ZeroDivisionError: division by zero"
    assert ended["exception"].startswith("Traceback")
    assert done.returncode == 1
