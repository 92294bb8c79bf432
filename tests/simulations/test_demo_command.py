"""What the demo refuses before anything is started, and what it prints at its end."""

import argparse
import io
import json
from typing import NamedTuple

import pytest

from lasp_edge.errors import CommandError, Exit
from lasp_edge.tool.screen import Screen
from simulations.demo import command
from simulations.demo.ending import (
    counts_line,
    failure_lines,
    json_bytes,
    traffic_lines,
    window_lines,
)
from simulations.demo.program import program
from simulations.oracle import Reading

REPLAY = ["--time", "ts", "--device", "id", "--event", "temperature=t"]


def refused(*words: str) -> CommandError:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(CommandError) as caught:
        command.play(parser.parse_args(words), Screen(io.StringIO()))
    return caught.value


@pytest.fixture
def recorded(tmp_path):
    file = tmp_path / "f.jsonl"
    file.write_text(
        "".join(json.dumps({"id": f"pi-{n}", "ts": n, "t": n}) + "\n" for n in range(9))
    )
    return str(file)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--event", "a=b"], "--event is about a recorded file: --replay FILE is needed too"),
        (["--chaos"], "--chaos is about a recorded file"),
        (["--replay", "f", "--time", "ts"], "--replay needs --device and --event too"),
        (["--replay", "f", *REPLAY, "--tag", "room"], "NAME=FIELD is needed, not 'room'"),
        (["--replay", "f", *REPLAY, "--event", "x=y"], "has the events temperature"),
    ],
)
def test_arguments_that_cannot_work_are_refused_in_words(words, reason):
    error = refused(*words)
    assert reason in str(error)
    assert error.exit_code == Exit.USAGE


def test_what_is_not_there_is_not_found():
    assert refused("--replay", "nowhere.jsonl", *REPLAY).exit_code == Exit.NOT_FOUND
    assert refused("no_such_module:program").exit_code == Exit.NOT_FOUND


def test_of_a_file_that_is_not_in_order_agents_and_gateway_retain_what_is_asked_for(recorded):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    words = ["--replay", recorded, *REPLAY, "--no-cloud"]
    assert "--retain-days" not in command.cast_of(parser.parse_args(words)).sources
    cast = command.cast_of(parser.parse_args([*words, "--retain-days", "30"]))
    assert list(cast.sources)[-2:] == list(cast.retained) == ["--retain-days", "30"]
    assert "--retain-days is about a recorded file" in str(refused("--retain-days", "30"))


def test_more_devices_than_agents_are_refused(recorded):
    error = refused("--replay", recorded, *REPLAY, "--max-agents", "8")
    assert "has 9 devices" in str(error)
    assert error.exit_code == Exit.USAGE


def test_a_lake_that_holds_something_is_refused(tmp_path):
    (tmp_path / "something").touch()
    error = refused("--lake", str(tmp_path))
    assert "a new or empty folder is needed" in str(error)
    assert error.exit_code == Exit.USAGE


def test_counts_are_in_words_and_lines_of_nobody_count_once():
    reports = [
        {"accepted": 1000, "repeated": 1, "refused_because": {"not JSON": 2, "missing value": 3}},
        {"accepted": 500, "late": 4, "refused_because": {"not JSON": 2, "not a number": 1}},
    ]
    assert counts_line(reports) == (
        "Readings: 1,500 accepted; 1 seen before and dropped; 4 late, placed by their own time; "
        "6 refused (3 missing value, 2 not JSON, 1 not a number)."
    )


class Failed(NamedTuple):
    """What is read of a device here."""

    name: str
    failures: list[str]


def test_what_failed_is_there_once_with_its_devices_and_not_a_hundred_times():
    why = "load: an output of 19 KiB is not sent, and no row is made of it: it may have 16 KiB"
    assert failure_lines([Failed("a", [why]), Failed("b", [why]), Failed("c", [])]) == [
        "FAILED      a, b: load: an output of 19 KiB is not sent, and no row is made of",
        "            it: it may have 16 KiB",
    ]
    many = failure_lines([Failed("a", [f"w: ValueError: {n}" for n in range(30)])])
    assert many[-1] == "FAILED      20 more"
    assert len(many) == 11


def test_the_last_windows_are_shown_for_people():
    columns = {"mean": 12.345, "min": 1.0, "max": None}
    row = {"key": "", "status": "tentative", **columns}
    rows = [
        row | {"start_us": n * 10_000_000, "end_us": (n + 1) * 10_000_000}
        for n in reversed(range(8))
    ]
    counts = {"devices_in": 4, "devices_expected": 5}
    window = program.plan().windows["house"]
    title, head, first, *others = window_lines(window, [r | counts for r in rows], 2)
    assert title == "house: 8 windows of 10 s, one every 5 s; the last 2 (UTC):"
    assert head.split() == ["from", "to", "average", "minimum", "maximum", "devices"]
    expected = "1970-01-01 00:01:00 00:01:10 12.35 1.00 - 4 of 5 not final yet"
    assert " ".join(first.split()) == expected
    assert len(others) == 1


def test_a_reading_as_json_costs_its_publish_and_its_acknowledgement():
    payload = b'{"device":"pi-1","event":"cpu","time_us":1700000000000000,"value":12.5}'
    remaining = 2 + len(b"demo/pi-1/cpu") + 2 + len(payload)
    reading = Reading("pi-1", "cpu", 12.5, 1_700_000_000_000_000)
    cost = (1 + 1 + remaining) + 4
    assert remaining < 128
    assert json_bytes("demo", [reading] * 3) == 3 * cost
    more = len(',"tags":{"room":"Küche"}'.encode())
    assert json_bytes("demo", [reading._replace(tags={"room": "Küche"})]) == cost + more
    long = reading._replace(value="x" * 200)
    assert json_bytes("demo", [long]) - json_bytes("demo", [long._replace(value="")]) == 200 + 1


def test_bytes_stand_beside_those_of_json_with_the_rate_from_which_it_pays():
    lines = " ".join(traffic_lines((60_000, 60_000), 40_000, "400 readings, fast", 2.0))
    assert "120,000 over the devices' sockets (60,000 sent, 60,000 received)" in lines
    assert "3.00 times as much as the 40,000 of JSON over MQTT" in lines
    assert "(400 readings, fast); below 6, JSON is smaller." in lines
    lines = " ".join(traffic_lines((10, 10), 40, "4 readings, replayed", 0.0))
    assert "50 % less than the 40 of JSON over MQTT" in lines
    assert lines.endswith("(4 readings, replayed).")
    assert [line.split()[0] for line in traffic_lines((10, 10), 0, "", 0.0)] == ["(e)", "no"]
