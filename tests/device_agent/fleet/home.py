"""What Home Assistant's documentation says of discovery, written down, and a judge that goes by it.

Sources, as of release 2025.1:
https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery (topics, device, origin,
availability), https://www.home-assistant.io/integrations/sensor.mqtt/#configuration-variables,
https://www.home-assistant.io/integrations/binary_sensor.mqtt/#configuration-variables,
https://www.home-assistant.io/integrations/sensor/#device-class (units of each class), and
https://developers.home-assistant.io/docs/core/entity/sensor/#available-state-classes.
"""

import json
import re

TOPIC = re.compile(
    r"(?P<prefix>.+)/(?P<component>sensor|binary_sensor)/"
    r"(?P<node>[a-zA-Z0-9_-]+)/(?P<entity>[a-zA-Z0-9_-]+)/config"
)
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
REQUIRED = {"state_topic", "unique_id", "device", "origin", "name"}
"""`state_topic` always; the others for an entity of a device that a person can rename."""
DEVICE = {
    *("configuration_url", "connections", "hw_version", "identifiers", "manufacturer", "model"),
    *("model_id", "name", "serial_number", "suggested_area", "sw_version", "via_device"),
}
ORIGIN = {"name", "sw_version", "support_url"}
AVAILABILITY = {"topic", "payload_available", "payload_not_available", "value_template"}
STATE_CLASSES = {"measurement", "total", "total_increasing"}
UNITS = {
    "temperature": {"°C", "°F", "K"},
    "humidity": {"%"},
    "moisture": {"%"},
    "battery": {"%"},
    "power": {"mW", "W", "kW", "MW", "GW", "TW"},
    "energy": {"J", "kJ", "MJ", "GJ", "mWh", "Wh", "kWh", "MWh", "GWh", "TWh"},
    "pressure": {"cbar", "bar", "hPa", "mmHg", "inHg", "kPa", "mbar", "Pa", "psi"},
    "illuminance": {"lx"},
    "voltage": {"V", "mV", "µV", "kV", "MV"},
    "current": {"A", "mA"},
    "frequency": {"Hz", "kHz", "MHz", "GHz"},
    "duration": {"d", "h", "min", "s", "ms"},
    "speed": {"ft/s", "in/d", "in/h", "in/s", "km/h", "kn", "m/s", "mph", "mm/d", "mm/s"},
    "wind_speed": {"Beaufort", "ft/s", "km/h", "kn", "m/s", "mph"},
    "distance": {"km", "m", "cm", "mm", "mi", "nmi", "yd", "ft", "in"},
    "weight": {"kg", "g", "mg", "µg", "oz", "lb", "st"},
    "data_size": {"bit", "kbit", "Mbit", "Gbit", "B", "kB", "MB", "GB", "TB"}
    | {"KiB", "MiB", "GiB", "TiB"},
    "data_rate": {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "B/s", "kB/s", "MB/s", "GB/s"},
    "volume_flow_rate": {"m³/h", "ft³/min", "L/min", "gal/min", "mL/s"},
    "sound_pressure": {"dB", "dBA"},
    "conductivity": {"S/cm", "mS/cm", "µS/cm"},
    "signal_strength": {"dB", "dBm"},
    "irradiance": {"W/m²", "BTU/(h⋅ft²)"},
    "precipitation_intensity": {"in/d", "in/h", "mm/d", "mm/h"},
    "apparent_power": {"VA"},
    "carbon_dioxide": {"ppm"},
    "pm25": {"µg/m³"},
    "pm10": {"µg/m³"},
}
TOTALS_ONLY = {"energy"}
"""Classes that a mean or a latest measurement cannot have."""


def judged(topic: str, payload: bytes) -> dict:
    """Return a configuration that Home Assistant would take, as far as its documentation says."""
    config, found = json.loads(payload), TOPIC.fullmatch(topic)
    assert found, topic
    component = found["component"]
    assert set(config) <= ALLOWED[component], set(config) - ALLOWED[component]
    assert set(config) >= REQUIRED, REQUIRED - set(config)
    assert set(config["device"]) <= DEVICE
    assert config["device"]["identifiers"]
    assert set(config["origin"]) <= ORIGIN
    assert config["origin"]["name"]
    for each in config["availability"]:
        assert set(each) <= AVAILABILITY
        assert each["topic"]
    assert config.get("entity_category", "diagnostic") == "diagnostic"  # "config" is for switches
    assert len(config["state_topic"].encode()) < 65_536
    assert not set("+#") & set(config["state_topic"])
    assert ("json_attributes_topic" in config) == ("json_attributes_template" in config)
    if component == "sensor":
        _judge_reading(config)
    else:
        assert config["device_class"] == "problem"
    return config


def _judge_reading(config: dict) -> None:
    """Check that unit and classes go together."""
    assert config.get("state_class", "measurement") in STATE_CLASSES
    kind = config.get("device_class")
    if kind is not None:
        assert config["unit_of_measurement"] in UNITS[kind], (kind, config["unit_of_measurement"])
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

    @property
    def entities(self):
        """Unique id -> configuration."""
        found = {}
        for topic, payload in self.retained.items():
            if topic.endswith("/config"):
                config = judged(topic, payload)
                assert config["unique_id"] not in found
                found[config["unique_id"]] = config
        return found

    def shown(self, unique_id):
        """Return what a plain `value_json.parts["name"]` shows of a retained state."""
        config = self.entities[unique_id]
        state = json.loads(self.retained[config["state_topic"]])
        path = config["value_template"].removeprefix("{{ value_json").removesuffix(" }}")
        name, _, rest = path.removeprefix(".").partition("[")
        return state[name][json.loads(rest.removesuffix("]"))] if rest else state[name]
