"""What an agent's report says, and which lines are none."""

import json

import pytest

from simulations.demo.devices import KeyValue, Report

REPORT = {
    "device": "pi-1",
    "replica": [3, 4711],
    "accepted": 7,
    "repeated": 1,
    "late": 0,
    "too_late": 0,
    "refused": 2,
    "dirty": 4,
    "connected": True,
    "done": False,
    "values": {
        "local_average": {"parts": {"mean": 21.5}, "count": 2, "total_q": 4300},
        "global_average": {
            "parts": {"mean": None},
            "count": 0,
            "total_q": 0,
            "inputs": "00ff",
            "devices": 0,
            "settled": True,
            "except": ["pi-2"],
        },
    },
}


def test_a_report_is_read():
    report = Report.of(json.dumps(REPORT))
    assert report is not None
    assert (report.accepted, report.refused, report.dirty) == (7, 2, 4)
    assert report.connected
    own, fleet = report.values["local_average"], report.values["global_average"]
    assert own.keys == {"": KeyValue({"mean": 21.5}, {"count": 2, "total_q": 4300}, "")}
    assert (own.inputs, own.settled) == ("", False)
    assert fleet.keys == {"": KeyValue({"mean": None}, {"count": 0, "total_q": 0}, "00ff")}
    assert (fleet.settled, fleet.absent) == (True, ("pi-2",))


@pytest.mark.parametrize("line", ["", "hello", "[]", "7", "null", "{}", json.dumps(REPORT)[:-9]])
def test_other_lines_are_no_reports(line):
    assert Report.of(line) is None


def test_a_value_for_each_key_is_read_with_the_inputs_of_each_and_of_all():
    one = {"parts": {"max": 3.0}, "max_q": 3, "inputs": "0a", "devices": 1}
    keys = {"keys": {"attic": one}, "inputs": "0b", "devices": 2, "settled": True, "except": []}
    report = Report.of(json.dumps(REPORT | {"values": {"rooms": keys}}))
    assert report is not None
    rooms = report.values["rooms"]
    assert rooms.keys == {"attic": KeyValue({"max": 3.0}, {"max_q": 3}, "0a")}
    assert (rooms.inputs, rooms.settled, rooms.absent) == ("0b", True, ())
