"""A fleet's windows as entities of Home Assistant: those of the gateway that tells them."""

from typing import Any

from device_agent.outputs.discovery import Config, Discovery
from lasp_edge.language.declarations import Window
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.topics import Topics

_ATTRIBUTES = ("status", "start", "end", "devices", "expected", "revision", "except")


class GatewayDiscovery(Discovery):
    """The entities of one gateway; the arguments are those of `Discovery`."""

    def __init__(self, plan: Plan, topics: Topics, gateway: str, prefix: str) -> None:
        super().__init__(plan, topics, gateway, prefix)
        self._available = {
            "topic": topics.gateway(gateway),
            "value_template": "{{ 'online' if value_json.online else 'offline' }}",
        }

    def window(self, window: Window, key: str | None) -> list[tuple[str, Config]]:
        """Return topic and configuration of each part of a window's newest result.

        Args:
            window: of the program.
            key: one of its keys; None where it has no keys.
        """
        attributes = ", ".join(f"'{name}': value_json['{name}']" for name in _ATTRIBUTES)
        attributes += ", 'waiting_for': value_json['waiting_for'] | default([])"
        found = self.value(window, key)
        for _, config in found:
            config["json_attributes_topic"] = config["state_topic"]
            config["json_attributes_template"] = f"{{{{ {{{attributes}}} | tojson }}}}"
        return found

    def _shared(self, node: str, entity: str, state: str) -> Config:
        config = super()._shared(node, entity, state)
        del config["encoding"]  # all that a gateway tells is text
        about: dict[str, Any] = config["device"]
        about["model"] = f"gateway of {self._fleet}"
        return config
