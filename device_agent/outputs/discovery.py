"""A fleet's values in Home Assistant: one retained configuration for each entity.

Home Assistant knows two forms of MQTT discovery. We use the one with a message for each entity, and
not the one for a whole device: a fold with keys gains and loses entities while it runs, and then
one message of 700 bytes is sent, or one empty message, and not all of them again; a configuration
never outgrows a message; and releases before 2024.11 understand it.

Whether a device is there is read from the presence that it tells its peers, since a connection has
but one Last Will. That is a frame and no text, so it is taken as bytes (`encoding` empty), and the
template looks for the flag in front of the program's digest.

Home Assistant refuses a whole configuration whose unit or state class its device class does not
have, so a class is named only where it is certain. What is yes or no is a binary sensor.

Source: https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery, and .../sensor.mqtt/,
.../binary_sensor.mqtt/, .../sensor/#device-class (units and classes).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgpack

from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution, decimals
from lasp_edge.folds.structs import Struct
from lasp_edge.language.declarations import (
    TEXT,
    AnyFold,
    DynamicFold,
    EventType,
    StreamResult,
    Window,
)
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.topics import HOME_SEPARATOR, Topics, home_node, level
from lasp_edge.release import RELEASE
from lasp_edge.units import SECOND_US

Config = dict[str, Any]

MOST_KEYS = 100
"""Keys of a fold that are entities, at most, the first in their order: more than a house has rooms.
All keys are on their topics."""
SPREAD_US = 5 * SECOND_US
"""Microseconds within which the devices of a fleet answer the start of Home Assistant, each at a
time of its own: its documentation asks for a delay, so that not all answer at once."""
BIRTH = b"online"

_SAME_UNIT: Final = frozenset(
    {"mean", "min", "max", "first", "last", "top", "quantile", "sum", "stddev"}
)
"""Built-in folds whose parts are in the unit of the samples."""
_YES_OR_NO: Final = frozenset({"any", "all"})
_NO_TEMPERATURES: Final = frozenset({"sum", "stddev"})
"""In the unit of temperatures, but none: who sees °F would see 32 of them added."""
OF_UNIT: Final[dict[str, str]] = {
    **dict.fromkeys(("°C", "°F", "K"), "temperature"),
    **dict.fromkeys(("W", "kW", "mW"), "power"),
    **dict.fromkeys(("hPa", "mbar", "Pa", "kPa", "bar", "mmHg", "inHg", "psi"), "pressure"),
    **dict.fromkeys(("V", "mV"), "voltage"),
    **dict.fromkeys(("A", "mA"), "current"),
    **dict.fromkeys(("Hz", "kHz", "MHz", "GHz"), "frequency"),
    **dict.fromkeys(("d", "h", "min", "s", "ms"), "duration"),
    **dict.fromkeys(("m/s", "km/h", "mph", "kn", "ft/s"), "speed"),
    **dict.fromkeys(("mm", "cm", "m", "km", "in", "ft", "mi"), "distance"),
    **dict.fromkeys(("kg", "g", "mg", "lb", "oz"), "weight"),
    **dict.fromkeys(("B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB"), "data_size"),
    **dict.fromkeys(("B/s", "kB/s", "MB/s", "bit/s", "kbit/s", "Mbit/s"), "data_rate"),
    **dict.fromkeys(("m³/h", "L/min"), "volume_flow_rate"),
    **dict.fromkeys(("dB", "dBA"), "sound_pressure"),
    **dict.fromkeys(("µS/cm", "mS/cm"), "conductivity"),
    "lx": "illuminance",
    "dBm": "signal_strength",
    "W/m²": "irradiance",
    "mm/h": "precipitation_intensity",
    "VA": "apparent_power",
}
"""Unit -> device class, where a measured value of the unit can have only that one."""
_METERS: Final = (
    ("Wh", "", "energy"),
    ("kWh", "", "energy"),
    ("MWh", "", "energy"),
    ("m³", "water", "water"),
    ("L", "water", "water"),
    ("m³", "gas", "gas"),
)
"""Unit, what is in the event's name, device class of a meter: a total, and not a mean, has it."""
_OF_METERS: Final = frozenset({"last", "max"})
OF_NAME: Final = (
    ("%", "humid", "humidity"),
    ("%", "moist", "moisture"),
    ("%", "battery", "battery"),
    ("ppm", "co2", "carbon_dioxide"),
    ("ppb", "voc", "volatile_organic_compounds_parts"),
    ("µg/m³", "voc", "volatile_organic_compounds"),
    ("µg/m³", "pm25", "pm25"),
    ("µg/m³", "pm10", "pm10"),
    ("m/s", "wind", "wind_speed"),
    ("km/h", "wind", "wind_speed"),
)
"""Unit, what is in the event's name, device class: a percentage may be of anything."""


def device_class(event: EventType) -> str:
    """Return Home Assistant's class of an event's readings; "" where it is not certain."""
    return _of_name(event, OF_NAME) or OF_UNIT.get(event.unit, "")


def meter_class(event: EventType) -> str:
    """Return Home Assistant's class of an event that tells a meter's total; "" for another."""
    return _of_name(event, _METERS)


def _of_name(event: EventType, rows: Iterable[tuple[str, str, str]]) -> str:
    name = event.name.casefold()
    return next((kind for unit, word, kind in rows if unit == event.unit and word in name), "")


def unit_of(
    plan: Plan, fold: AnyFold | Window, class_of: Callable[[EventType], str] = device_class
) -> tuple[str, str]:
    """Return the unit of a fold's samples and their device class; "" for what is not certain.

    A variable that collects events has theirs. What a handler adds is in the unit of the events
    that have the variable's resolution, if these have but one unit.
    """
    if isinstance(fold, Window):
        return fold.source.unit, class_of(fold.source)
    variable = fold.source.source if isinstance(fold, DynamicFold) else fold.source
    collected = [name for name, into in plan.collections.items() if variable in into]
    events = [plan.events[name] for name in collected] or [
        event for event in plan.events.values() if event.resolution == fold.resolution
    ]
    units = {event.unit for event in events}
    classes = {class_of(event) for event in events}
    if len(units) != 1:
        return "", ""
    return units.pop(), classes.pop() if len(classes) == 1 else ""


def _inner(fold: Fold, part: str) -> Fold:
    """Return the fold that gives a part; a struct's part is one of another fold."""
    if not isinstance(fold, Struct):
        return fold
    at = 0
    for inner in fold.inner.values():
        at += len(inner.parts)
        if fold.parts.index(part) < at:
            return inner
    raise AssertionError(f"{part} is a part of {fold}")


def _is_yes_or_no(inner: Fold) -> bool:
    return inner.is_built_in and inner.name in _YES_OR_NO


def _component(fold: AnyFold | Window, part: str) -> str:
    return "binary_sensor" if _is_yes_or_no(_inner(fold.fold, part)) else "sensor"


class Discovery:
    """The entities of one fleet, as one of its devices tells them.

    Args:
        plan: what it computes.
        topics: of the fleet.
        device: this device's name.
        prefix: the first level of Home Assistant's discovery topics.
    """

    def __init__(self, plan: Plan, topics: Topics, device: str, prefix: str) -> None:
        self._plan = plan
        self._topics = topics
        self._device = device
        self._prefix = prefix
        self._fleet = topics.fleet
        self.of_fleet = home_node(topics)
        self.of_agent = home_node(topics, device)
        # A presence frame has its flag, its program's digest, its release, and more.
        online = msgpack.packb([True, plan.digest])[1:]
        text = str(online)[2:-1].replace("\\", "\\\\").replace("'", "\\'")
        self._available = {
            "topic": topics.of("presence", device),
            "value_template": f"{{{{ 'online' if '{text}' in value | string else 'offline' }}}}",
        }

    def topic(self, component: str, node: str, entity: str) -> str:
        """Return where an entity is announced."""
        return f"{self._prefix}/{component}/{node}/{entity}/config"

    def value(
        self, fold: AnyFold | Window, key: str | None, *, of_fleet: bool = False
    ) -> list[tuple[str, Config]]:
        """Return topic and configuration of each part of a fold's value.

        Args:
            fold: whose value it is.
            key: one of its keys; None where it has no keys.
            of_fleet: the fleet's value, and not this device's view of it.
        """
        node = self.of_fleet if of_fleet else self.of_agent
        if of_fleet:
            state = self._topics.fleet_result(fold.name, key)
        else:
            state = self._topics.result(fold.name, self._device, key)
        found = []
        for part in fold.fold.parts:
            entity = HOME_SEPARATOR.join((level(fold.name), level(part)))
            entity += "" if key is None else HOME_SEPARATOR + (level(key) if key else "")
            config = self._shared(node, entity, state) | self._reading(fold, part)
            config["name"] = _words(fold, part, key)
            config["value_template"] = f"{{{{ value_json.parts[{json.dumps(part)}] }}}}"
            if isinstance(fold, DynamicFold):
                names = ("devices", "inputs") + (() if fold.keyed else ("settled", "except"))
                shown = ", ".join(f"'{name}': value_json['{name}']" for name in names)
                config["json_attributes_topic"] = state
                config["json_attributes_template"] = f"{{{{ {{{shown}}} | tojson }}}}"
            if isinstance(fold, DynamicFold) and not of_fleet:
                # The fleet's own device shows it; here it is for whoever looks for a fault.
                config |= {"entity_category": "diagnostic", "enabled_by_default": False}
            found.append((self.topic(_component(fold, part), node, entity), config))
        return found

    def _reading(self, fold: AnyFold | Window, part: str) -> Config:
        """Return unit, classes and decimals of a part."""
        inner = _inner(fold.fold, part)
        if _is_yes_or_no(inner):
            return {"payload_on": "True", "payload_off": "False"}
        if not inner.is_built_in:
            return {}
        if inner.name not in _SAME_UNIT:
            return {"state_class": "measurement"}
        unit, kind = unit_of(self._plan, fold)
        _, meter = unit_of(self._plan, fold, meter_class)
        found: Config = {
            "state_class": "measurement",
            "suggested_display_precision": decimals(fold.resolution),
        }
        if meter and inner.name in _OF_METERS:
            found["state_class"], kind = "total_increasing", meter
        if kind == "temperature" and inner.name in _NO_TEMPERATURES:
            kind = ""
        found |= {"unit_of_measurement": unit} if unit else {}
        return found | ({"device_class": kind} if kind else {})

    def row(self, result: StreamResult, key: str) -> list[tuple[str, Config]]:
        """Return topic and configuration of each part of a result's newest final row.

        Args:
            result: whose row it is.
            key: of the scan that made it; "" where there are no keys.
        """
        state = self._topics.result(result.name, self._device, key or None)
        several, found = len(result.parts) > 1, []
        for part, step in result.parts:
            levels = (level(result.name), level(part), *([level(key)] if key else []))
            entity = HOME_SEPARATOR.join(levels)
            shown = f"value_json.final[{json.dumps(part)}]"
            config = self._shared(self.of_agent, entity, state)
            config["name"] = _named(result.name, part if several else "", key or None)
            # Before there is a final row, the topic may have a tentative one alone.
            config["value_template"] = f"{{{{ {shown} if value_json.final is defined }}}}"
            if step != TEXT:
                config["state_class"] = "measurement"
                config["suggested_display_precision"] = decimals(Resolution(step))
            found.append((self.topic("sensor", self.of_agent, entity), config))
        return found

    def alert(self, name: str, key: str | None) -> list[tuple[str, Config]]:
        """Return topic and configuration of an alert of this device, as a binary sensor.

        Args:
            name: of the alert.
            key: one of its keys; None where its value has no keys.
        """
        entity = HOME_SEPARATOR.join(("alert", level(name)))
        entity += "" if key is None else HOME_SEPARATOR + (level(key) if key else "")
        state = self._topics.alert(name, self._device, key)
        config = self._shared(self.of_agent, entity, state)
        config |= {
            "name": name if key is None else f"{name} ({key})",
            "device_class": "problem",
            "value_template": "{{ value_json.state | upper }}",
            "json_attributes_topic": state,
            "json_attributes_template": "{{ {'value': value_json.value, 'since': value_json.since,"
            " 'settled': value_json.settled, 'devices': value_json.devices} | tojson }}",
        }
        return [(self.topic("binary_sensor", self.of_agent, entity), config)]

    def agent(self) -> list[tuple[str, Config]]:
        """Return topic and configuration of what the agent says of itself."""
        state = self._topics.agent(self._device)
        made = []
        for component, entity, more in _OF_AGENT:
            config = self._shared(self.of_agent, entity, state) | dict(more)
            config |= {"name": entity.replace("_", " "), "entity_category": "diagnostic"}
            made.append((self.topic(component, self.of_agent, entity), config))
        return made

    def _shared(self, node: str, entity: str, state: str) -> Config:
        """Return what each configuration has."""
        is_agent = node == self.of_agent
        return {
            "unique_id": HOME_SEPARATOR.join((node, entity)),
            "state_topic": state,
            "availability": [self._available],
            "encoding": "",
            "device": {
                "identifiers": [node],
                "name": self._device if is_agent else self._fleet,
                "manufacturer": "lasp-edge",
                "model": f"agent of {self._fleet}" if is_agent else "fleet",
                "sw_version": RELEASE,
            },
            "origin": {"name": "lasp-edge", "sw_version": RELEASE},
        }


_OF_AGENT: Final[tuple[tuple[str, str, Mapping[str, Any]], ...]] = (
    (
        "sensor",
        "readings",
        {"value_template": "{{ value_json.readings }}", "state_class": "total_increasing"},
    ),
    (
        "sensor",
        "refused_readings",
        {"value_template": "{{ value_json.refused }}", "state_class": "total_increasing"},
    ),
    (
        "binary_sensor",
        "clock",
        {
            "value_template": "{{ 'OFF' if value_json.clock == 'trusted' else 'ON' }}",
            "device_class": "problem",
        },
    ),
    (
        "binary_sensor",
        "alarms",
        {
            "value_template": "{{ 'ON' if value_json.alarms else 'OFF' }}",
            "device_class": "problem",
        },
    ),
)
"""Component, entity, and what only it has, for each thing that an agent says of itself."""


def _words(fold: AnyFold | Window, part: str, key: str | None) -> str:
    """Return the name of an entity, which Home Assistant shows behind its device's."""
    return _named(fold.name, part if len(fold.fold.parts) > 1 else "", key)


def _named(name: str, part: str, key: str | None) -> str:
    words = f"{name} {part}".strip().replace("_", " ")
    return words if key is None else f"{words} ({key})"
