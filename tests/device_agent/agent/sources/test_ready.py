"""Ready mappings on messages of the shapes that their programs document.

The messages go through the source as a broker hands them over; a link is not needed for it.
"""

import json
import random
from itertools import count

import pytest

from device_agent.agent.sources.choice import SourceSpec, no_kind, source_of
from device_agent.agent.sources.ready import READY
from device_agent.agent.sources.source import SourceContext
from device_agent.agent.sources.time_zones import Zone
from lasp_edge.link import BrokerUrl, Message

HOUSE = ["temperature", "humidity", "contact", "occupancy", "state", "power", "energy"]


@pytest.fixture
def read(monkeypatch):
    """Return a function that gives a source messages and returns its readings and refusals."""
    opened = []

    def start(topic, messages, events=HOUSE, **options):
        broker = BrokerUrl.parse("mqtt://localhost")
        context = SourceContext(events, "pi-1", random.Random(1), broker, options)
        source = source_of(SourceSpec("mqtt", topic, f"mqtt:{topic}", {}, ""), context)
        opened.append(source)
        tokens = count()
        events = [
            Message(
                on,
                what if type(what) is bytes else json.dumps(what).encode(),
                retain=False,
                qos=1,
                token=(0, n),
            )
            for n, (on, what) in zip(tokens, messages, strict=False)
        ]
        monkeypatch.setattr(source.link, "poll", lambda timeout_s: events)
        batch = source.poll(0)
        rows = zip(batch.names, batch.times_us, batch.values, map(dict, batch.tags), strict=True)
        return list(rows), batch.refused

    yield start
    for source in opened:
        source.link.stop(0)


def test_zigbee2mqtt(read):
    messages = [
        ("zigbee2mqtt/bridge/state", {"state": "online"}),
        ("zigbee2mqtt/attic", {"temperature": 27.34, "humidity": 44.72, "linkquality": 97}),
        ("zigbee2mqtt/hall", {"battery": 100, "contact": False, "linkquality": 128}),
        ("zigbee2mqtt/stairs", {"occupancy": True, "illuminance_lux": 49, "update": None}),
        ("zigbee2mqtt/lamp", {"state": "ON", "brightness": 215, "color": {"x": 0.3}}),
        ("zigbee2mqtt/switch", {"action": "single"}),
        ("zigbee2mqtt/attic/availability", b"online"),
    ]
    rows, refused = read("zigbee2mqtt/{room}", messages, mapping="zigbee2mqtt")
    assert rows == [
        ("temperature", None, 27.34, {"room": "attic"}),
        ("humidity", None, 44.72, {"room": "attic"}),
        ("contact", None, 0, {"room": "hall"}),
        ("occupancy", None, 1, {"room": "stairs"}),
        ("state", None, 1, {"room": "lamp"}),
    ]
    assert refused == {}


def test_zigbee2mqtt_with_names_that_have_slashes_and_times(read):
    messages = [
        ("zigbee2mqtt/kitchen/fridge", {"temperature": 5, "last_seen": "2026-02-26T20:44:09Z"}),
        ("zigbee2mqtt/kitchen/fridge/availability", {"state": "online"}),
        ("zigbee2mqtt/kitchen/fridge", {"temperature": 6, "last_seen": 1_582_746_249_000}),
        ("zigbee2mqtt/kitchen/lamp/set", {"state": "ON"}),
    ]
    rows, refused = read("zigbee2mqtt/{room...}", messages, mapping="zigbee2mqtt", time="last_seen")
    tags = {"room": "kitchen/fridge"}
    assert rows == [
        ("temperature", 1_772_138_649_000_000, 5, tags),
        ("temperature", 1_582_746_249_000_000, 6, tags),
    ]
    assert refused == {}


def test_tasmota(read):
    climate = {"Temperature": 24.6, "Humidity": 58.2, "DewPoint": 15.8}
    energy = {"Total": 0.235, "Power": 63, "Voltage": 230, "Current": 0.28}
    messages = [
        (
            "tele/attic/SENSOR",
            {"Time": "2019-01-01T00:00:00", "AM2301": climate, "TempUnit": "C"},
        ),
        (
            "tele/tank/SENSOR",
            {
                "Time": "2019-01-01T00:00:00",
                "DS18B20-1": {"Id": "01131B123456", "Temperature": 21.1},
                "DS18B20-2": {"Id": "01131B789ABC", "Temperature": 48.8},
                "TempUnit": "C",
            },
        ),
        ("tele/plug/SENSOR", {"Time": "2019-01-01T00:00:00", "ENERGY": energy}),
        ("tele/us/SENSOR", {"AM2301": {"Temperature": 70.2, "Humidity": 3}, "TempUnit": "F"}),
    ]
    rows, refused = read("tele/{room}/SENSOR", messages, mapping="tasmota")
    assert rows == [
        ("temperature", None, 24.6, {"room": "attic", "sensor": "AM2301"}),
        ("humidity", None, 58.2, {"room": "attic", "sensor": "AM2301"}),
        ("temperature", None, 21.1, {"room": "tank", "sensor": "DS18B20-1"}),
        ("temperature", None, 48.8, {"room": "tank", "sensor": "DS18B20-2"}),
        ("power", None, 63, {"room": "plug"}),
        ("energy", None, 0.235, {"room": "plug"}),
    ]
    assert refused == {'field "TempUnit" is not "C"': 1}


def test_tasmotas_own_times_need_their_zone(read):
    message = {"Time": "2019-07-01T00:00:00", "AM2301": {"Temperature": 24.6}}
    topic = "tele/a/SENSOR"
    rows, refused = read(topic, [(topic, message)], mapping="tasmota", time="Time")
    assert rows == []
    assert refused == {"time without a zone: add --time-zone, such as Europe/Berlin or UTC": 1}
    rows, refused = read(
        topic,
        [(topic, message)],
        mapping="tasmota",
        time="Time",
        **{"time-zone": Zone("Europe/Berlin")},
    )
    assert [time_us for _, time_us, _, _ in rows] == [1_561_932_000_000_000]


def test_esphome(read):
    messages = [
        ("attic/sensor/temperature/state", b"21.5"),
        ("attic/sensor/humidity/state", b"nan"),
        ("attic/sensor/uptime/state", b"3600"),
        ("attic/binary_sensor/contact/state", b"ON"),
        ("attic/sensor/temperature/state", b"21.50"),
    ]
    rows, refused = read("{room}/sensor/{event}/state", messages[:3], mapping="esphome")
    assert rows == [("temperature", None, 21.5, {"room": "attic"})]
    [(reason, times)] = refused.items()
    assert (reason.partition(":")[0], times) == ('no event "attic/senso..ptime/state"', 1)
    rows, refused = read("{room}/{kind}/{event}/state", messages[3:], mapping="esphome")
    assert rows == [
        ("contact", None, 1, {"room": "attic", "kind": "binary_sensor"}),
        ("temperature", None, 21.5, {"room": "attic", "kind": "sensor"}),
    ]


def test_homeassistant(read):
    messages = [
        ("homeassistant/sensor/living_room_temperature/state", b"21.5"),
        ("homeassistant/sensor/living_room_humidity/state", b"unavailable"),
        ("homeassistant/sensor/attic_humidity/state", b"unknown"),
        ("homeassistant/sensor/attic_humidity/state", b"40"),
    ]
    topic = "homeassistant/sensor/{room}_{event}/state"
    rows, refused = read(topic, messages, mapping="homeassistant")
    assert rows == [
        ("temperature", None, 21.5, {"room": "living_room"}),
        ("humidity", None, 40, {"room": "attic"}),
    ]
    assert refused == {}
    door = [("homeassistant/binary_sensor/hall_contact/state", b"off")]
    rows, _ = read("homeassistant/{kind}/{room}_{event}/state", door, mapping="homeassistant")
    assert rows == [("contact", None, 0, {"kind": "binary_sensor", "room": "hall"})]


def test_an_event_of_ones_own_is_laid_over_a_ready_mapping(read):
    message = ("zigbee2mqtt/a", {"temperature": 20, "humidity": 1, "device_temperature": 31})
    options = {"mapping": "zigbee2mqtt", "event": {"temperature": "device_temperature"}}
    rows, _ = read("zigbee2mqtt/{room}", [message], **options)
    assert [(name, value) for name, _, value, _ in rows] == [("temperature", 31), ("humidity", 1)]


def test_the_value_of_an_event_that_the_topic_names_may_stand_in_a_field(read):
    messages = [("s/a/temperature", {"value": 21, "at": 5}), ("s/a/temperature", {"val": 21})]
    rows, refused = read("s/{room}/{event}", messages, value="value")
    assert rows == [("temperature", None, 21, {"room": "a"})]
    assert refused == {}


def test_an_event_that_the_program_does_not_have_is_named_with_the_nearest():
    context = SourceContext(HOUSE, "d", random.Random(1), BrokerUrl.parse("mqtt://x"), None, {})
    options = {"event": {"temprature": "t"}, "mapping": "zigbee2mqtt"}
    with pytest.raises(ValueError, match=r'--event temprature: .*; did you mean "temperature"'):
        source_of(SourceSpec("mqtt", "t", "t", {}, ""), context._replace(options=options))


@pytest.mark.parametrize("name", READY)
def test_a_huge_or_broken_message_does_not_stop_a_source(read, name):
    messages = [
        ("a/b/temperature", json.dumps({"temperature": 10**400}).encode()),
        ("a/b/temperature", b"[" * 100_000),
        ("a/b/temperature", b'{"temperature": {"temperature": [1]}}'),
        ("a/b/temperature", b"\x00\xff"),
        ("a/b/temperature", b'"' + b"x" * 70_000 + b'"'),
    ]
    rows, refused = read("a/{room}/{event}", messages, mapping=name)
    assert len(rows) + sum(refused.values()) <= len(messages)


@pytest.mark.parametrize(("name", "meant"), [("temp", "temperature"), ("zz", "")])
def test_the_beginning_of_an_events_name_is_near_and_what_is_not_is_listed_once(name, meant):
    context = SourceContext(HOUSE, "d", random.Random(1), BrokerUrl.parse("mqtt://x"), None, {})
    with pytest.raises(ValueError, match="the program has only the events") as refused:
        source_of(
            SourceSpec("mqtt", "t", "t", {}, ""), context._replace(options={"event": {name: "t"}})
        )
    said = str(refused.value)
    assert said.endswith(f'did you mean "{meant}"?' if meant else HOUSE[-1])
    assert said.count("contact") == 1


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("zigbee2mqtt/+", "did you mean mqtt:zigbee2mqtt/+?"),
        ("hosts", 'did you mean "host"?'),
        ("zz", "'zz'"),
    ],
)
def test_a_source_that_is_none_is_told_with_what_was_meant(text, meant):
    assert no_kind(text.partition(":")[0], text).endswith(meant)
