"""A fleet's windows as entities of Home Assistant: those of the gateway that tells them."""

from device_agent.outputs.announced import Components, Config
from device_agent.outputs.discovery import Discovery
from lasp_edge.language.declarations import Window
from lasp_edge.protocol.topics import OF_GATEWAY


class GatewayDiscovery(Discovery):
    """The entities of one gateway; the arguments are those of `Discovery`."""

    kind, model, encoding = OF_GATEWAY, "gateway", ""  # all that a gateway tells is text

    def _availability(self) -> Config:
        return {
            "topic": self._topics.gateway(self._device),
            "value_template": "{{ 'online' if value_json.online else 'offline' }}",
        }

    def windows(self, window: Window, keys: list[str]) -> Components:
        """Return the entities of a window's newest results, of its keys if it has keys."""
        found: Components = {}
        for key in keys if window.keyed else [None]:
            found |= self.value(window, key)
        return found
