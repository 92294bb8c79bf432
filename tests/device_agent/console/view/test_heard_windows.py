"""Who looks on sees a gateway's windows as windows, and the gateway not as a device."""

import json

import pytest

from device_agent.console.view.heard_windows import STARTS
from device_agent.console.view.onlooker import Onlooker
from lasp_edge.protocol.topics import Topics

TOPICS = Topics("greenhouse")


def row(second, mean, status="final", **more):
    """Return what a gateway tells of a window."""
    times = {"start": f"2026-11-22T15:{second:02}:00Z", "end": f"2026-11-22T15:{second:02}:30Z"}
    counts = {"devices": 2, "expected": 3, "revision": 0, "except": ["attic"]}
    return {"parts": {"mean": mean}, "status": status, **times, **counts, **more}


def hear(onlooker, told, gateway="g", key=None):
    topic = TOPICS.result("by_room", gateway, key)
    onlooker.hear(topic, json.dumps(told).encode(), 1.0)


def test_a_gateways_rows_are_shown_the_newest_first_and_it_is_no_device():
    onlooker = Onlooker(TOPICS, 5)
    assert onlooker.windows.plain() is None
    hear(onlooker, row(1, 20.0), key="attic")
    hear(onlooker, row(2, 21.0, tentative=row(3, 22.5, "tentative")), key="attic")
    onlooker.hear(TOPICS.gateway("g"), b'{"online": true}', 1.0)
    (window,) = onlooker.windows.plain()["windows"]
    assert (window["name"], window["parts"]) == ("by_room", ["average"])
    assert [(r["parts"], r["status"], r["in"], r["expected"]) for r in window["rows"]] == [
        ([22.5], "tentative", 2, 3),
        ([21.0], "final", 2, 3),
        ([20.0], "final", 2, 3),
    ]
    assert window["rows"][2]["end"] - window["rows"][2]["start"] == 30
    assert (onlooker.devices, onlooker.names) == ([], [])


def test_two_gateways_stand_side_by_side_and_memory_is_bounded():
    onlooker = Onlooker(TOPICS, 5)
    for second in range(2 * STARTS):
        hear(onlooker, row(second % 60, 20.0, end=f"2026-11-{1 + second // 60:02}T00:00:00Z"))
    hear(onlooker, row(1, 20.0), gateway="h")
    names = [each["name"] for each in onlooker.windows.plain()["windows"]]
    assert names == ["by_room (g)", "by_room (h)"]
    assert len(onlooker.windows.plain()["windows"][0]["rows"]) == STARTS


@pytest.mark.parametrize(
    "told",
    [
        {"status": "final"},
        row(1, 20.0, start="yesterday"),
        row(1, 20.0, tentative=3),
        row(1, 20.0, tentative={"status": "final"}),
        row(1, 20.0, devices="many"),
        row(1, [20.0]),
    ],
)
def test_what_is_no_window_is_left_out(told):
    onlooker = Onlooker(TOPICS, 5)
    hear(onlooker, told)
    assert onlooker.windows.plain() is None
    assert onlooker.devices == []


def test_it_is_shown_for_whom_a_row_waits():
    onlooker = Onlooker(TOPICS, 5)
    hear(onlooker, row(1, 20.0, "tentative", waiting_for=["attic"]))
    hear(onlooker, row(2, 20.0))
    (window,) = onlooker.windows.plain()["windows"]
    assert [each["waiting_for"] for each in window["rows"]] == [[], ["attic"]]
