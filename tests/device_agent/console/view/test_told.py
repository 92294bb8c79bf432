"""What a stranger publishes on the topics of results is shown only where it has the right shape."""

import json

import pytest

from device_agent.console.command.watch import View, in_text
from device_agent.console.view.onlooker import Onlooker
from device_agent.console.view.told import alert_told, result_told
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
        result_told(payload)


@pytest.mark.parametrize("payload", WRONG)
def test_no_result_of_a_stranger_ends_who_looks_on(payload):
    onlooker = Onlooker(TOPICS, 5)
    for topic in (TOPICS.result("a", "pi"), TOPICS.agent("pi"), TOPICS.alert("warm", "pi")):
        onlooker.hear(topic, payload, 1)
    standing = onlooker.standing("pi", "a", "a", 2)
    assert (standing.own, standing.readings, standing.alarms) == (None, None, ())
    view = View("greenhouse", "a", "a", None, [standing], "", 2, None, connected=True)
    assert len(view.lines()) == 3
    json.loads(view.as_json())
    assert onlooker.alerts.all() == []


def test_what_agents_tell_is_taken_as_it_is():
    told = {"parts": {"mean": 21.5, "most": None, "calm": "yes", "ok": False}, "inputs": "00ff"}
    assert result_told(json.dumps(told).encode()) == told
    assert in_text(told, "°C", 1) == "average 21.5 °C, most -, calm yes °C, ok 0 °C"
    told = {"readings": 3, "refused": 1, "refused_because": {"no field": 1}, "sent_bytes": 9}
    onlooker = Onlooker(TOPICS, 5)
    onlooker.hear(TOPICS.agent("pi"), json.dumps(told).encode(), 1)
    standing = onlooker.standing("pi", None, None, 2)
    assert (standing.refused, standing.sent_bytes) == (1, 9)
    assert standing.refused_because == {"no field": 1}


def test_alerts_are_seen_until_they_are_cleared():
    onlooker = Onlooker(TOPICS, 5)
    said = {"state": "on", "fold": "global_average", "part": "mean", "value": 28.5, "since": None}
    payload = json.dumps(said).encode()
    assert alert_told(payload) == said
    onlooker.hear(TOPICS.alert("too warm", "Küche/2", "a+b"), payload, 1)
    onlooker.hear(TOPICS.alert("too warm", "attic"), payload, 1)
    assert dict(onlooker.alerts.all()) == {
        AlertAddress("too warm", "Küche/2", "a+b"): said,
        AlertAddress("too warm", "attic", None): said,
    }
    onlooker.hear(TOPICS.alert("too warm", "attic"), b"", 2)
    assert len(onlooker.alerts.all()) == 1


@pytest.mark.parametrize("payload", [b"{}", b'{"state": "maybe"}', b'{"state": "on", "value": []}'])
def test_what_is_no_alert_is_refused(payload):
    with pytest.raises(ValueError, match=r"on or off|of another kind"):
        alert_told(payload)


@pytest.mark.parametrize("topic", ["x", "lasp/v1/greenhouse/out/alert/a", "lasp/v1/greenhouse/out"])
def test_what_is_no_topic_of_alerts_is_refused(topic):
    with pytest.raises(ValueError, match="not a topic of alerts"):
        TOPICS.alert_address(topic)
