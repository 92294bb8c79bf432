"""Options that a file says, and that no agent can have, are refused with the file and the line."""

import sys
from random import Random

import pytest

from device_agent.agent.acting.effects import Command, Webhook
from device_agent.console.command import run_agent
from device_agent.console.configuration.alert_options import caller_of
from lasp_edge.errors import Exit
from lasp_edge.tool.command_line import main
from lasp_edge.tool.parser import CommandParser

FILE = """\
program = "lasp_edge.examples.machines:program"
device = "attic"
broker = "mqtt://127.0.0.1:9"
data-dir = "data"
source = ["host"]
"""
MISTAKES = {
    'dashboard-url = "pi:8700"': "dashboard-url: http://HOST:PORT/ is needed, not 'pi:8700'",
    'dashboard-url = "http://ann:secret@pi:8700/a"': (
        "dashboard-url: the broker shows it to everybody, so leave out user and password: "
        "http://pi:8700/a"
    ),
    'home-assistant = "a+b"': "home-assistant: a topic such as homeassistant is needed, not 'a+b'",
    'home-assistant = "a//b"': "home-assistant: a topic such as homeassistant is needed",
    'alert-command = "no-such-program --now"': "alert-command: there is no program 'no-such-prog",
    'alert-command = "\'"': "alert-command: No closing quotation",
    'alert-webhook = "homeassistant.local"': "alert-webhook: a URL such as http://homeassistant.l",
    'alert-command = "true"\nalert-timeout = 0': "alert-timeout: seconds above 0 are needed, not 0",
    "interval = -1": "interval: seconds above 0 are needed, not -1",
    "report = 0": "report: seconds above 0 are needed, not 0",
    "results = -1": "results: seconds from 0 are needed, not -1",
    "alert-command = true": "alert-command: a text in quotation marks is needed, not true",
    'alert-timeout = "10"': 'alert-timeout: a number is needed, not "10"',
    "home-assistant = 1": 'home-assistant: a text in quotation marks, "1", is needed, not 1',
    'log-level = "loud"': "log-level: one of debug, info, warning, error is needed",
}


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Return what an agent says of a file that ends with these lines, typed with these words."""
    monkeypatch.chdir(tmp_path)

    def run(lines, *words):
        (tmp_path / "fleet.toml").write_text(f"{FILE}{lines}\n")
        assert main(["agent", "--config", "fleet.toml", *words]) == Exit.USAGE
        return capsys.readouterr().err

    return run


@pytest.mark.parametrize("lines", MISTAKES)
def test_a_mistake_in_a_file_is_told_with_its_line(refused, lines):
    line = 5 + len(lines.splitlines())
    assert refused(lines).startswith(f"lasp-edge agent: fleet.toml line {line}: {MISTAKES[lines]}")


def test_an_event_that_the_program_lacks_is_told_without_dashes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    source = '[[source]]\nkind = "mqtt"\ntopic = "x"\nevent.cpuu = "t"\n'
    (tmp_path / "fleet.toml").write_text(FILE.replace('source = ["host"]\n', source))
    assert main(["agent", "--config", "fleet.toml"]) == Exit.USAGE
    said = capsys.readouterr().err
    assert "fleet.toml line 5: event cpuu: the program has only the events" in said


SOURCE = 'source = ["host"]\n'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            '[[source]]\nkind = "mqtt"\ntopic = ["a", "b"]',
            "7: topic: one text is needed, not",
        ),
        (
            '[[source]]\nkind = "mqtt"\ntopic = "x"\ntime-zone = "UTC"',
            "5: time-zone needs time, the",
        ),
        ("interval: 10", "5, column 9: KEY = VALUE is needed here"),
        ("fleet = \u201chouse\u201d", "5, column 9: a value is needed here, and a text needs quot"),
    ],
)
def test_what_people_write_in_toml_is_told(refused, lines, said, monkeypatch):
    monkeypatch.setitem(globals(), "FILE", FILE.replace(SOURCE, ""))
    err = refused(lines)
    assert f"fleet.toml line {said}" in err
    assert ("this one is not straight: \u201c" in err) is ("\u201c" in lines)


def test_a_mistake_on_the_command_line_is_not_the_files(refused):
    said = refused('home-assistant = "fine"', "--home-assistant", "a+b")
    assert said.startswith("lasp-edge agent: --home-assistant: a topic such as homeassistant")


def called(arguments):
    """Return what is called when an alert turns."""
    return caller_of(arguments, Random(0))._calls


def test_alert_options_of_a_file_call_out(tmp_path):
    lines = 'alert-command = "true now"\nalert-webhook = "http://x/hook"\nalert-timeout = 2.5\n'
    (tmp_path / "fleet.toml").write_text(FILE + lines)
    parser = CommandParser("agent", None)
    run_agent.add_arguments(parser)
    words = ["--config", str(tmp_path / "fleet.toml")]
    wanted = run_agent.requested(parser.parse_args(words))
    command, webhook = called(wanted.arguments)
    assert isinstance(command, Command)
    assert isinstance(webhook, Webhook)
    assert (command.words, command.timeout_s) == (["true", "now"], 2.5)
    assert (webhook.url, webhook.timeout_s) == ("http://x/hook", 2.5)
    typed = run_agent.requested(
        parser.parse_args([*words, "--alert-command", f"{sys.executable} -V"])
    )
    assert called(typed.arguments)[0].words == [sys.executable, "-V"]
