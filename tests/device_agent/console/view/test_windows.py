"""A gateway's windows are shown as windows, and the gateway not as a device."""

import json

import pytest

from device_agent.console.view.fleet_view import FleetView
from device_agent.console.view.windows import STARTS
from lasp_edge.protocol.topics import Topics
from tests.device_agent.agents import greenhouse

TOPICS = Topics("greenhouse")


def row(second, mean, status="final", **more):
    """Return what a gateway tells of a window."""
    times = {"start": f"2026-11-22T15:{second:02}:00Z", "end": f"2026-11-22T15:{second:02}:30Z"}
    counts = {"devices": 2, "expected": 3, "revision": 0, "except": ["attic"]}
    return {"parts": {"mean": mean}, "status": status, **times, **counts, **more}


def hear(view, told, gateway="g", key=None):
    topic = TOPICS.result("by_room", gateway, key)
    view.take(topic, json.dumps(told).encode(), 1.0)


def shown(view, plan=None):
    """Return the only window that a page gets, and its rows."""
    ((name, window),) = view.windows.plain(plan)["windows"].items()
    return name, window, list(window["rows"].values())


def test_a_gateways_rows_are_shown_the_newest_first_and_it_is_no_device():
    view = FleetView(TOPICS, 5)
    assert view.windows.plain() is None
    hear(view, row(1, 20.0), key="attic")
    hear(view, row(2, 21.0, tentative=row(3, 22.5, "tentative")), key="attic")
    view.take(TOPICS.gateway("g"), b'{"online": true}', 1.0)
    name, window, rows = shown(view)
    assert (name, window["parts"], window["units"]) == ("by_room", ["average"], [""])
    assert shown(view, greenhouse())[1]["units"] == ["°C"]
    assert [(r["parts"], r["status"], r["in"], r["expected"]) for r in rows] == [
        ([22.5], "tentative", 2, 3),
        ([21.0], "final", 2, 3),
        ([20.0], "final", 2, 3),
    ]
    assert rows[2]["end"] - rows[2]["start"] == 30
    assert (view.values.devices, view.values.names) == ([], [])


def test_two_gateways_stand_side_by_side_and_memory_is_bounded():
    view = FleetView(TOPICS, 5)
    for second in range(2 * STARTS):
        hear(view, row(second % 60, 20.0, end=f"2026-11-{1 + second // 60:02}T00:00:00Z"))
    hear(view, row(1, 20.0), gateway="h")
    windows = view.windows.plain()["windows"]
    assert list(windows) == ["by_room (g)", "by_room (h)"]
    assert len(windows["by_room (g)"]["rows"]) == STARTS


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
    view = FleetView(TOPICS, 5)
    hear(view, told)
    assert view.windows.plain() is None
    assert view.values.devices == []


def test_it_is_shown_for_whom_a_row_waits():
    view = FleetView(TOPICS, 5)
    hear(view, row(1, 20.0, "tentative", waiting_for=["attic"]))
    hear(view, row(2, 20.0))
    _, _, rows = shown(view)
    assert [each["waiting_for"] for each in rows] == [[], ["attic"]]
