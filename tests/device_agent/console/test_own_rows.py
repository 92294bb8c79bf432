"""A device's own windows and results by the commands that print those of a fleet."""

import json

import pytest

from lasp_edge.errors import Exit
from lasp_edge.examples.greenhouse import program
from lasp_edge.tool.command_line import main
from lasp_edge.tool.loading import load_plan
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import NOW_US, Device
from tests.support_readme import block

START_US = NOW_US // (60 * SECOND_US) * 60 * SECOND_US
GREENHOUSE = "lasp_edge.examples.greenhouse:program"


def printed(capsys, *words):
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def greenhouse(tmp_path):
    device = Device(tmp_path / "data", program.plan())
    for room, value in (("attic", 21.5), ("cellar", 12), ("attic", 22)):
        device.read([value], [START_US], tags={"room": room})
    device.read([20], [START_US + 65 * SECOND_US], tags={"room": "attic"})
    device.tick(60)
    return ("--data-dir", device.directory, "--program", GREENHOUSE)


def test_windows_of_a_device_are_printed_as_those_of_a_fleet(greenhouse, capsys):
    code, out, _ = printed(capsys, "windows", "temperature_by_room", *greenhouse, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == Exit.FINE
    assert rows == sorted(rows, key=lambda row: (row["key"], row["start_us"]))
    of_start = {(row["key"], row["start_us"]): row for row in rows}
    assert of_start["attic", START_US] == {
        "key": "attic",
        "start_us": START_US,
        "end_us": START_US + 60 * SECOND_US,
        "mean": 21.75,
        "count": 2,
        "total_q": 4350,
        "status": "final",
    }
    assert of_start["attic", START_US + 60 * SECOND_US]["status"] == "tentative"
    words = ("--key", "cellar", "--since", START_US, "--until", START_US + 1)
    _, out, _ = printed(capsys, "windows", "temperature_by_room", *greenhouse, *words)
    head, line = out.splitlines()
    assert head.split() == ["key", "start", "end", "mean", "count", "total_q", "status"]
    assert line.split()[-4:] == ["12.00", "1", "1200", "final"]


def test_results_of_a_device_are_printed(tmp_path, monkeypatch, capsys):
    (tmp_path / "water.py").write_text(block("meter"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    device = Device(tmp_path / "data", load_plan("water:program"))
    device.take([10, 40, 60], [START_US + n * SECOND_US for n in range(3)], [{}] * 3, name="litres")
    device.tick(60)
    words = ("--data-dir", device.directory, "--program", "water:program")
    code, out, _ = printed(capsys, "results", "used", *words, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == Exit.FINE
    assert [(row["time_us"] - START_US, row["difference"]) for row in rows] == [
        (SECOND_US, 30),
        (2 * SECOND_US, 20),
    ]
    assert list(rows[0]) == ["key", "time_us", "difference", "present", "status", "revision"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["windows", "w", "--data-dir", "D"], "--program MODULE:PROGRAM"),
        (["windows", "w", "--data-dir", "D", "--program", GREENHOUSE], "temperature_by_room"),
        (["results", "r", "--data-dir", "D", "--program", GREENHOUSE], "there are: none at all"),
        (["windows", "w", "--data-dir", "D", "--as-of", "5"], "a device does not keep what was"),
        (["windows", "w", "--data-dir", "D", "--all-revisions"], "a device keeps none"),
        (["windows", "w", "--data-dir", "D", "--lake", "L"], "not allowed with"),
        (
            ["results", "r"],
            "one of the arguments --lake --gateway --data-dir is required",
        ),
    ],
)
def test_what_a_device_does_not_keep_is_said(words, said, capsys):
    code, out, err = printed(capsys, *words)
    assert code in {Exit.USAGE, Exit.NOT_FOUND}
    assert out == ""
    assert said in err


def test_a_directory_without_a_device_is_named(tmp_path, capsys):
    words = ("windows", "temperature_by_room", "--data-dir", tmp_path, "--program", GREENHOUSE)
    assert printed(capsys, *words)[0] == Exit.NOT_FOUND
