"""What a stranger publishes on the topics of results is shown only where it has the right shape."""

import json

import pytest

from device_agent.console.command.watch import FleetTable, in_text
from device_agent.console.view.fleet_view import FleetView
from device_agent.console.view.published import alert_of, result_of
from lasp_edge.protocol.topics import AlertAddress, Topics

TOPICS = Topics("greenhouse")
WRONG = [
    *(b"", b"[]", b"3", b"\xff", b"[" * 100_000, b'{"parts": 3}', b'{"parts": {"mean": NaN}}'),
    *(b'{"parts": {"mean": Infinity}}', b'{"parts": {"mean": []}}', b'{"parts": {"mean": {}}}'),
    b'{"parts": {"\\ud800": 1}}',
    b'{"parts": {"mean": "\\udfff"}}',
    b'{"parts": {"mean": 1' + b"0" * 400 + b"}}",
    json.dumps({"parts": {str(n): n for n in range(1_000)}}).encode(),
    json.dumps({"alarms": ["x" * 10_000]}).encode(),
    *(b'{"readings": "many"}', b'{"readings": -1}', b'{"readings": true}', b'{"readings": 1.5}'),
    *(b'{"alarms": 5}', b'{"alarms": [5]}', b'{"refused_because": {"x": "y"}}', b'{"except": 1}'),
    *(b'{"settled": 1}', b'{"inputs": 7}', b'{"devices": "2"}', b'{"sent_bytes": null}'),
]


@pytest.mark.parametrize("payload", WRONG)
def test_what_is_no_result_is_refused(payload):
    with pytest.raises((ValueError, RecursionError)):
        result_of(payload)


@pytest.mark.parametrize("payload", WRONG)
def test_no_result_of_a_stranger_ends_who_looks_on(payload):
    view = FleetView(TOPICS, 5)
    for topic in (TOPICS.result("a", "pi"), TOPICS.agent("pi"), TOPICS.alert("warm", "pi")):
        view.take(topic, payload, 1)
    standing = view.device("pi", "a", "a", 2)
    assert (standing.own, standing.readings, standing.alarms) == (None, None, ())
    table = FleetTable(
        "greenhouse", "a", "a", None, [standing], "", 2, None, connected=True, gateways={}
    )
    assert len(table.lines()) == 3
    json.loads(table.as_json())
    assert view.alerts == {}


def test_what_agents_tell_is_taken_as_it_is():
    told = {"parts": {"mean": 21.5, "most": None, "calm": "yes", "ok": False}, "inputs": "00ff"}
    assert result_of(json.dumps(told).encode()) == told
    assert in_text(told, "°C", 1) == "average 21.5 °C, most -, calm yes °C, ok 0 °C"
    told = {"readings": 3, "refused": 1, "refused_because": {"no field": 1}, "sent_bytes": 9}
    view = FleetView(TOPICS, 5)
    view.take(TOPICS.agent("pi"), json.dumps(told).encode(), 1)
    standing = view.device("pi", None, None, 2)
    assert (standing.refused, standing.sent_bytes) == (1, 9)
    assert standing.refused_because == {"no field": 1}


def test_for_what_a_gateway_waits_is_taken_unless_it_is_of_another_shape():
    view = FleetView(TOPICS, 5)
    told = (
        (b'{"online": true, "waiting": ["waiting for attic"]}', ["waiting for attic"]),
        (b'{"online": true, "waiting": [7]}', []),
        (b'{"online": true}', []),
        (b'{"online": false}', ["away"]),
        (b"", []),
    )
    for payload, words in told:
        view.take(TOPICS.gateway("site"), payload, 1)
        assert view.values.gateways == {"site": words}
    assert view.values.devices == []


def test_alerts_are_seen_until_they_are_cleared():
    view = FleetView(TOPICS, 5)
    said = {"state": "on", "fold": "global_average", "part": "mean", "value": 28.5, "since": None}
    payload = json.dumps(said).encode()
    assert alert_of(payload) == said
    view.take(TOPICS.alert("too warm", "Küche/2", "a+b"), payload, 1)
    view.take(TOPICS.alert("too warm", "attic"), payload, 1)
    assert view.alerts == {
        AlertAddress("too warm", "Küche/2", "a+b"): said,
        AlertAddress("too warm", "attic", None): said,
    }
    view.take(TOPICS.alert("too warm", "attic"), b"", 2)
    assert len(view.alerts) == 1


@pytest.mark.parametrize("payload", [b"{}", b'{"state": "maybe"}', b'{"state": "on", "value": []}'])
def test_what_is_no_alert_is_refused(payload):
    with pytest.raises(ValueError, match=r"on or off|of another kind"):
        alert_of(payload)


@pytest.mark.parametrize("topic", ["x", "lasp/v1/greenhouse/out/alert/a", "lasp/v1/greenhouse/out"])
def test_what_is_no_topic_of_alerts_is_refused(topic):
    with pytest.raises(ValueError, match="not a topic of alerts"):
        TOPICS.alert_address(topic)
