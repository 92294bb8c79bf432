"""Levels of topics as tags, as the event, as the device."""

import pytest

from device_agent.agent.sources.topic_pattern import TopicPattern, matcher_of

EVENTS = ["temperature", "humidity", "temperature_max", "outdoor_temperature"]


def pattern(text, device="pi-1"):
    return TopicPattern(text, device, EVENTS)


@pytest.mark.parametrize(
    ("text", "filter_", "topic", "tags", "event"),
    [
        ("a/+/b", "a/+/b", "a/x/b", {}, None),
        ("zigbee2mqtt/{room}", "zigbee2mqtt/+", "zigbee2mqtt/attic", {"room": "attic"}, None),
        ("z/{path...}", "z/#", "z/kitchen/lamp", {"path": "kitchen/lamp"}, None),
        ("tele/{device}/SENSOR", "tele/pi-1/SENSOR", "tele/pi-1/SENSOR", {}, None),
        ("{a}/+/{b}/#", "+/+/+/#", "1/2/3/4/5", {"a": "1", "b": "3"}, None),
        ("{room}/sensor/{event}/state", "+/sensor/+/state", "a/sensor/humidity/state",
         {"room": "a"}, "humidity"),
        ("h/{room}_{event}/state", "h/+/state", "h/living_room_temperature/state",
         {"room": "living_room"}, "temperature"),
        ("h/{room}_{event}", "h/+", "h/attic_temperature_max", {"room": "attic"},
         "temperature_max"),
        ("a.b/{x}", "a.b/+", "a.b/(1)", {"x": "(1)"}, None),
    ],
)  # fmt: skip
def test_what_a_topic_says(text, filter_, topic, tags, event):
    made = pattern(text)
    assert made.filter == filter_
    is_told_by_tags = "+" not in text and "#" not in text
    assert made.origin(topic) == (tags, event, "" if is_told_by_tags else topic)


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("z/{path...}", "z"),
        ("a.b/{x}", "aXb/1"),
        ("{room}/sensor/{event}/state", "a/sensor/uptime/state"),
        ("zigbee2mqtt/{room}", "zigbee2mqtt/a/b"),
    ],
)
def test_a_topic_that_is_not_of_the_pattern_says_nothing(text, topic):
    assert pattern(text).origin(topic) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a/{x}/{x}", "{x} stands there twice"),
        ("a/{x...}/b", "{x...} must be all of the last level"),
        ("a/b{x...}", "{x...} must be all of the last level"),
        ("a/{x", "'{x' is not a level of a topic, nor a {name}"),
        ("a/{}/b", "'{}' is not a level"),
        ("a/+b", "'+b' is not a level"),
        ("a/{x y}", "is not a level"),
    ],
)
def test_what_is_no_pattern_is_refused(text, reason):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared whole
        pattern(text)
    assert reason in str(raised.value)


def test_a_device_that_cannot_be_a_level_is_refused():
    with pytest.raises(ValueError, match="the device 'a/b' cannot be a level of a topic"):
        pattern("tele/{device}/SENSOR", "a/b")


def test_what_braces_around_device_mean_is_said():
    says = pattern("tele/{device}/SENSOR").says()
    assert "reads only tele/pi-1/SENSOR" in says
    assert "{sensor}" in says
    assert pattern("tele/{sensor}/SENSOR").says() == ""


def test_ignored_topics_are_filters_of_mqtt():
    ignored = matcher_of(["+/bridge/#", "+/+/set"])
    assert [
        topic
        for topic in ("z/bridge/state", "z/bridge", "z/a/set", "z/a", "z/a/b/set", "z/bridges/x")
        if ignored.fullmatch(topic)
    ] == ["z/bridge/state", "z/a/set"]
    assert matcher_of([]) is None


@pytest.mark.parametrize(
    ("one", "other", "topic"),
    [
        ("zigbee2mqtt/#", "zigbee2mqtt/{room}", "zigbee2mqtt/attic"),
        ("a/{path...}", "a/b/c", "a/b/c"),
        ("+/sensor/{event}/state", "h/sensor/humidity/state", "h/sensor/humidity/state"),
        ("h/{room}_{event}", "h/{room}", "h/attic_humidity"),
        ("h/{room}_max/x", "h/t_{room}/+", "h/t_1_max/x"),
        ("tele/{device}/SENSOR", "tele/{room}/SENSOR", "tele/pi-1/SENSOR"),
    ],
)
def test_patterns_meet_where_a_topic_is_of_both(one, other, topic):
    first, second = pattern(one), pattern(other)
    assert matcher_of([first.filter]).fullmatch(topic)
    assert matcher_of([second.filter]).fullmatch(topic)
    assert first.meets(second)
    assert second.meets(first)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("zigbee2mqtt/{room}", "heating/{room}"),
        ("zigbee2mqtt/{room}", "zigbee2mqtt/{room}/state"),
        ("h/{room}_min", "h/{room}_max"),
        ("h/min_{room}", "h/max_{room}"),
        ("h/{event}", "h/uptime"),
        ("h/{room}", "h"),
        ("tele/{device}/SENSOR", "tele/pi-2/SENSOR"),
    ],
)
def test_patterns_do_not_meet_where_no_topic_is_of_both(one, other):
    first, second = pattern(one), pattern(other)
    assert not first.meets(second)
    assert not second.meets(first)
