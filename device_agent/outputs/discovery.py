"""A fleet in Home Assistant: a device for each agent and one for the fleet, with their entities.

A device is announced by one retained message (device-based discovery, Home Assistant 2024.11 and
later). What is true of the whole fleet, with all keys, is on the fleet's device alone, beneath
which agents and gateways stand; that one is announced by the device which speaks for the fleet.

Whether a device is there is read from the presence that it tells its peers, since a connection has
but one Last Will. That is a frame: so it is taken as Latin-1, which any bytes are, and holds a JSON
text for this reader.

Source: https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery, and .../sensor.mqtt/,
.../binary_sensor.mqtt/.
"""

import json
from typing import Final

from device_agent.outputs.announced import Components, Config
from device_agent.outputs.classes import component, reading, row_reading
from lasp_edge.language.declarations import AnyFold, DynamicFold, StreamResult, Window
from lasp_edge.language.device_classes import measured
from lasp_edge.language.plan import Plan
from lasp_edge.language.shown_names import shown_names
from lasp_edge.protocol.frames import ONLINE_JSON
from lasp_edge.protocol.topics import (
    HOME_SEPARATOR,
    OF_AGENT,
    OF_FLEET,
    Topics,
    home_node,
    home_topic,
    level,
)
from lasp_edge.release import RELEASE
from lasp_edge.units import SECOND_US

SPREAD_US = 5 * SECOND_US
"""Microseconds within which the devices of a fleet answer the start of Home Assistant, each at a
time of its own: its documentation asks for a delay, so that not all answer at once."""
BIRTH = b"online"
_OF_WINDOW = ", ".join(
    [
        *[
            f"'{name}': value_json['{name}']"
            for name in ("status", "start", "end", "devices", "expected", "revision", "except")
        ],
        "'waiting_for': value_json['waiting_for'] | default([])",
    ]
)
_OF_VALUE = "'devices': value_json['devices']"
_AGREED = ", 'settled': value_json['settled'], 'except': value_json['except']"


class Discovery:
    """The entities of one device and of its fleet, as that device announces them.

    Args:
        plan: what it computes.
        topics: of the fleet.
        device: this device's name.
        prefix: the first level of Home Assistant's discovery topics.
        area: where the device is; "" where that is not known.
        url: of a dashboard of the fleet; "" if no one has stated it.
    """

    kind, model, encoding = OF_AGENT, "agent", "latin-1"

    def __init__(
        self, plan: Plan, topics: Topics, device: str, prefix: str, area: str = "", url: str = ""
    ) -> None:
        self._plan, self._topics, self._device, self._prefix = plan, topics, device, prefix
        self._area = {"suggested_area": area} if area else {}
        self._url = {"configuration_url": url} if url else {}
        self._of_fleet, self._of_agent = home_node(topics), home_node(topics, device)
        self._available = self._availability()

    def _availability(self) -> Config:
        return {
            "topic": self._topics.of("presence", self._device),
            "value_template": f"{{{{ 'online' if '{ONLINE_JSON}' in value else 'offline' }}}}",
        }

    def topic(self, device: str = "") -> str:
        """Return where a device is announced; without a name, the fleet."""
        kind = self.kind if device else OF_FLEET
        return home_topic(self._prefix, self._topics, kind, device)

    def message(self, components: Components, *, of_fleet: bool = False) -> Config:
        """Return what announces this device, or the fleet, with these entities."""
        fleet = self._topics.fleet
        about = {"name": fleet, "model": "fleet", "identifiers": [self._of_fleet]}
        if not of_fleet:
            about = {
                "name": self._device,
                "model": f"{self.model} of {fleet}",
                "identifiers": [self._of_agent],
                "via_device": self._of_fleet,
                **self._area,
            }
        return {
            "device": {"manufacturer": "lasp-edge", "sw_version": RELEASE, **self._url, **about},
            "origin": {"name": "lasp-edge", "sw_version": RELEASE},
            "availability": [self._available],
            "components": components,
        }

    def value(
        self, fold: AnyFold | Window, key: str | None, *, of_fleet: bool = False
    ) -> Components:
        """Return the entity of each part of a fold's value.

        Args:
            fold: whose value it is.
            key: one of its keys; None where it has no keys.
            of_fleet: it is the fleet's, and not this device's own.
        """
        state = self._topics.result(fold.name, self._device, key)
        if of_fleet:
            state = self._topics.fleet_result(fold.name, key)
        found: Components = {}
        for part in fold.fold.parts:
            more = reading(self._plan, fold, part) | self._attributes(fold, state)
            title = measured(self._plan, fold).title
            of_part = part if len(fold.fold.parts) > 1 else ""
            more["name"] = self._words(fold.name, of_part, key, title)
            more["value_template"] = f"{{{{ value_json.parts[{json.dumps(part)}] }}}}"
            name = _id(fold.name, part, key=key)
            kind = component(fold.fold, part)
            found |= self._entity(kind, name, state, more, of_fleet=of_fleet)
        return found

    def _attributes(self, fold: AnyFold | Window, state: str) -> Config:
        """Return what is shown beside a value; of a device's own there is nothing more."""
        if isinstance(fold, Window):
            return with_attributes(state, _OF_WINDOW)
        if not isinstance(fold, DynamicFold):
            return {}
        return with_attributes(state, _OF_VALUE + ("" if fold.keyed else _AGREED))

    def row(self, result: StreamResult, key: str) -> Components:
        """Return the entity of each part of a result's newest final row.

        Args:
            result: whose row it is.
            key: of the scan that made it; "" where there are no keys.
        """
        state = self._topics.result(result.name, self._device, key or None)
        found: Components = {}
        names = shown_names([part for part, _ in result.parts])
        for part, step in result.parts:
            is_time, shown = part in result.times, f"value_json.final[{json.dumps(part)}]"
            words = names[part] if is_time else part
            more = row_reading(self._plan, result, part, step)
            more["name"] = self._words(
                result.name, words if len(result.parts) > 1 else "", key or None
            )
            # Before there is a final row, the topic may have a tentative one alone.
            value = f"({shown} / {SECOND_US}) | as_datetime" if is_time else shown
            more["value_template"] = f"{{{{ {value} if value_json.final is defined else None }}}}"
            name = _id(result.name, part, key=key or None)
            found |= self._entity("sensor", name, state, more)
        return found

    def alert(self, name: str, key: str | None, *, of_fleet: bool) -> Components:
        """Return the entity of an alert, as this device sees it.

        Args:
            name: of the alert.
            key: one of its keys; None where its value has no keys.
            of_fleet: it watches the fleet's value, and not this device's own.
        """
        state = self._topics.alert(name, self._device, key)
        shown = ("value", "since", "settled", "devices")
        more = {
            "name": name if key is None else f"{name} ({key})",
            "device_class": "problem",
            "value_template": "{{ value_json.state | upper }}",
            **with_attributes(state, ", ".join(f"'{at}': value_json.{at}" for at in shown)),
        }
        of_alert = _id("alert", name, key=key)
        (config,) = self._entity("binary_sensor", of_alert, state, more, of_fleet=of_fleet).values()
        return {
            f"ALERT{of_alert}": config
        }  # a value may be named "alert": no id of one has capitals

    def agent(self) -> Components:
        """Return the entities of the agent's own state."""
        state, found = self._topics.agent(self._device), Components()
        for kind, name, more in _OF_AGENT:
            config = {"name": name.replace("_", " "), "entity_category": "diagnostic"}
            found |= self._entity(kind, name, state, config | more)
        found["alarms"] |= with_attributes(state, "'alarms': value_json.alarms")
        return found

    def fleet(self) -> Components:
        """Return the entities of how the fleet does."""
        state, found = self._topics.fleet_state(), Components()
        for name, more in _OF_FLEET:
            config = {"name": name.replace("_", " ")} | more
            found |= self._entity("binary_sensor", name, state, config, of_fleet=True)
        shown = "'devices': value_json.devices, 'away': value_json.away"
        found["all_devices_here"] |= with_attributes(state, shown)
        found["alarms"] |= with_attributes(state, "'alarms': value_json.alarms")
        return found

    def _entity(
        self, kind: str, name: str, state: str, more: Config, *, of_fleet: bool = False
    ) -> Components:
        """Return one entity by its id, with what each has."""
        node = self._of_fleet if of_fleet else self._of_agent
        shared = {
            "platform": kind,
            "unique_id": HOME_SEPARATOR.join((node, name)),
            "state_topic": state,
        }
        return {name: shared | ({"encoding": self.encoding} if self.encoding else {}) | more}

    def _words(self, name: str, part: str, key: str | None, measures: str = "") -> str:
        """Return the name of an entity, which Home Assistant shows behind its device's."""
        words = f"{measures} {name.replace('_', ' ')}".strip()
        if (shown := self._plan.shown.get(name)) is not None:
            words = shown.title or words
        words = f"{words} {part.replace('_', ' ')}".strip()
        return words if key is None else f"{words} ({key})"


def with_attributes(topic: str, shown: str) -> Config:
    """Return what shows the entries of a template's dictionary as attributes."""
    return {
        "json_attributes_topic": topic,
        "json_attributes_template": f"{{{{ {{{shown}}} | tojson }}}}",
    }


def _id(*names: str, key: str | None) -> str:
    """Return the id of an entity within its device."""
    levels = [*map(level, names), *([] if key is None else [level(key) if key else ""])]
    return HOME_SEPARATOR.join(levels)


def _flag(template: str, kind: str = "problem") -> Config:
    return {"value_template": f"{{{{ {template} }}}}", "device_class": kind}


def _count(name: str) -> Config:
    return {"value_template": f"{{{{ value_json.{name} }}}}", "state_class": "total_increasing"}


_ALARMS: Final = _flag("'ON' if value_json.alarms else 'OFF'")
_OF_AGENT: Final[tuple[tuple[str, str, Config], ...]] = (
    ("sensor", "readings", _count("readings")),
    ("sensor", "refused_readings", _count("refused")),
    ("binary_sensor", "clock", _flag("'OFF' if value_json.clock == 'trusted' else 'ON'")),
    ("binary_sensor", "alarms", _ALARMS),
)
"""Component, id, and what only it has, for each thing that an agent says of itself."""
_OF_FLEET: Final[tuple[tuple[str, Config], ...]] = (
    ("all_devices_here", _flag("'OFF' if value_json.away else 'ON'", "connectivity")),
    ("alarms", _ALARMS),
)
"""Id, and what only it has, for each thing that one device states of the fleet."""
