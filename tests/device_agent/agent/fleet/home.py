"""What Home Assistant takes as discovery, written down, and a judge that goes by it.

Home Assistant itself is no dependency. These are the rules of release 2026.2.3, read from its
package: `DISCOVERY_SCHEMA` of `homeassistant.components.mqtt.sensor` and of `.binary_sensor` (the
keys), `validate_sensor_state_and_device_class_config` of the former (what it refuses), and
`DEVICE_CLASS_UNITS`, `DEVICE_CLASS_STATE_CLASSES` and `AMBIGUOUS_UNITS` of
`homeassistant.components.sensor.const` (units and state classes). Only keys that releases since
2024.11 have, and classes that we use, are listed.
"""

import contextlib
import json
import re

from device_agent.agent.settings import Settings
from lasp_edge.security.mosquitto import MESSAGE_BYTES
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import Device, greenhouse

HOME = Settings(results_us=10 * SECOND_US, home_assistant="homeassistant")

TOPIC = re.compile(r"(?P<prefix>.+)/device/(?P<node>[a-zA-Z0-9_-]+)/[a-zA-Z0-9_-]+/config")
OF_BOTH = {
    *("availability", "availability_mode", "device", "device_class", "enabled_by_default"),
    *("encoding", "entity_category", "entity_picture", "expire_after", "force_update", "icon"),
    *("json_attributes_template", "json_attributes_topic", "name", "origin", "qos"),
    *("default_entity_id", "state_topic", "unique_id", "value_template"),
}
ALLOWED = {
    "sensor": OF_BOTH
    | {"last_reset_value_template", "options", "state_class", "suggested_display_precision"}
    | {"unit_of_measurement"},
    "binary_sensor": OF_BOTH | {"off_delay", "payload_on", "payload_off"},
}
MESSAGE = {"availability", "components", "device", "origin"}
REQUIRED = {"state_topic", "unique_id", "name"}
"""`state_topic` always; the others for an entity of a device that a person can rename."""
DEVICE = {
    *("configuration_url", "connections", "hw_version", "identifiers", "manufacturer", "model"),
    *("model_id", "name", "serial_number", "suggested_area", "sw_version", "via_device"),
}
ORIGIN = {"name", "sw_version", "support_url"}
AVAILABILITY = {"topic", "payload_available", "payload_not_available", "value_template"}
STATE_CLASSES = {"measurement", "total", "total_increasing"}
_UNITS = {
    "temperature": "K °C °F",
    "humidity": "%",
    "moisture": "%",
    "battery": "%",
    "power": "GW MW TW W kW mW",
    "energy": "GJ GWh Gcal J MJ MWh Mcal TWh Wh cal kJ kWh kcal mWh",
    "gas": "CCF L MCF ft³ m³",
    "water": "CCF L MCF ft³ gal m³",
    "pressure": "Pa bar cbar hPa inHg inH₂O kPa mPa mbar mmHg psi",
    "illuminance": "lx",
    "voltage": "MV V kV mV µV",
    "current": "A mA",
    "frequency": "GHz Hz MHz kHz",
    "duration": "d h min ms s µs",
    "speed": "Beaufort ft/s in/d in/h in/s km/h kn m/min m/s mm/d mm/h mm/s mph",
    "wind_speed": "Beaufort ft/s in/s km/h kn m/min m/s mm/s mph",
    "distance": "cm ft in km m mi mm nmi yd",
    "weight": "g kg lb mg oz st µg",
    "data_size": "B EB EiB GB Gbit GiB KiB MB Mbit MiB PB PiB TB TiB YB YiB ZB ZiB bit kB kbit",
    "data_rate": "B/s GB/s Gbit/s GiB/s KiB/s MB/s Mbit/s MiB/s bit/s kB/s kbit/s",
    "volume_flow_rate": "L/h L/min L/s ft³/min gal/d gal/h gal/min mL/s m³/h m³/min m³/s",
    "sound_pressure": "dB dBA",
    "conductivity": "S/cm mS/cm µS/cm",
    "signal_strength": "dB dBm",
    "irradiance": "BTU/(h⋅ft²) W/m²",
    "precipitation_intensity": "in/d in/h mm/d mm/h",
    "apparent_power": "VA kVA mVA",
    "carbon_dioxide": "ppm",
    "pm25": "µg/m³",
    "pm10": "µg/m³",
    "volatile_organic_compounds": "mg/m³ µg/m³",
    "volatile_organic_compounds_parts": "ppb ppm",
}
UNITS = {kind: frozenset(units.split()) for kind, units in _UNITS.items()}
"""Device class -> its units, with the micro sign; Home Assistant takes the Greek letter, too."""
TOTALS_ONLY = {"energy", "gas", "water"}
"""Classes that a mean or a latest measurement cannot have."""


def judged(topic: str, payload: bytes) -> list[dict]:
    """Return entities that Home Assistant would take, as far as its documentation says."""
    message = json.loads(payload)
    assert TOPIC.fullmatch(topic), topic
    assert set(message) == MESSAGE
    assert len(payload) <= MESSAGE_BYTES
    assert set(message["device"]) <= DEVICE
    assert message["device"]["identifiers"]
    assert set(message["origin"]) <= ORIGIN
    assert message["origin"]["name"]
    for each in message["availability"]:
        assert set(each) <= AVAILABILITY
        assert each["topic"]
    shared = {name: message[name] for name in ("availability", "device")}
    found = message["components"].items()
    return [_judged(name, dict(config)) | shared for name, config in found if len(config) > 1]


def _judged(name: str, config: dict) -> dict:
    assert re.fullmatch("[a-zA-Z0-9_-]+", name)
    component = config.pop("platform")
    assert set(config) <= ALLOWED[component], set(config) - ALLOWED[component]
    assert set(config) >= REQUIRED, REQUIRED - set(config)
    assert config.get("entity_category", "diagnostic") == "diagnostic"  # "config" is for switches
    assert len(config["state_topic"].encode()) < 65_536
    assert not set("+#") & set(config["state_topic"])
    assert ("json_attributes_topic" in config) == ("json_attributes_template" in config)
    if component == "sensor":
        _judge_reading(config)
    elif config.get("device_class") not in {"problem", "connectivity"}:
        assert "device_class" not in config
        assert (config["payload_on"], config["payload_off"]) == ("True", "False")
    return config


def _judge_reading(config: dict) -> None:
    """Check that unit and classes go together."""
    assert config.get("state_class", "measurement") in STATE_CLASSES
    kind = config.get("device_class")
    if kind == "timestamp":
        assert not {"state_class", "unit_of_measurement"} & set(config)
    elif kind is not None:
        assert config["unit_of_measurement"] in UNITS[kind], (
            kind,
            config["unit_of_measurement"],
        )
        assert (config["state_class"] != "measurement") == (kind in TOTALS_ONLY)
    if "unit_of_measurement" in config:
        assert config["unit_of_measurement"]
        assert "state_class" in config


class Home:
    """What the broker retains of some agents' publications, as Home Assistant sees it."""

    def __init__(self):
        self.retained = {}

    def take(self, published):
        for each in published:
            if each.retain and each.payload:
                self.retained[each.topic] = each.payload
            elif each.retain:
                self.retained.pop(each.topic, None)
        return published

    def tick(self, device, seconds):
        """Let time pass on a device, to which the broker sends what it has announced."""
        announced = [each for each in self.take(device.tick(seconds)) if is_config(each.topic)]
        for each in announced:
            device.durable.hear(each.topic, each.payload, device.now_us)
        return announced

    def start_again(self, device):
        """Start a device again, which hears what the broker retains."""
        device.restart()
        for topic in filter(is_config, list(self.retained)):
            device.durable.hear(topic, self.retained[topic], device.now_us)

    @property
    def entities(self):
        """Unique id -> configuration."""
        found = {}
        for topic, payload in self.retained.items():
            for config in judged(topic, payload) if is_config(topic) else ():
                assert config["unique_id"] not in found
                found[config["unique_id"]] = config
        return found

    def messages(self):
        """Return the messages that announce devices, by the device's name."""
        found = [json.loads(each) for topic, each in self.retained.items() if is_config(topic)]
        return {each["device"]["name"]: each for each in found}

    def shown(self, unique_id):
        """Return what a plain `value_json.parts["name"]` shows of a retained state."""
        config = self.entities[unique_id]
        state = json.loads(self.retained[config["state_topic"]])
        path = config["value_template"].removeprefix("{{ value_json").removesuffix(" }}")
        name, _, rest = path.removeprefix(".").partition("[")
        return state[name][json.loads(rest.removesuffix("]"))] if rest else state[name]


def is_config(topic):
    """Return whether a message on a topic announces a device."""
    return topic.endswith("/config")


def started(tmp_path, home, name="pi-1", plan=None, settings=HOME):
    device = Device(tmp_path / name, plan or greenhouse(), name=name, settings=settings)
    for _ in range(3):
        home.tick(device, 10)
    return device


def template(jinja, text, payload):
    """Render a template as Home Assistant does with `encoding` Latin-1."""
    values = {"value": payload.decode("latin-1")}
    with contextlib.suppress(ValueError):
        values["value_json"] = json.loads(payload)
    return jinja.from_string(text).render(values)
