"""What the alerts of a fleet say, as whoever looks on hears it: each device tells its own."""

from device_agent.console.view.told import Plain, alert_told
from lasp_edge.protocol.topics import AlertAddress, Topics

MOST_ALERTS = 10_000
"""Alerts, of all devices and keys, that are remembered: some 10 MB at most."""


class HeardAlerts:
    """The alerts of one fleet.

    Args:
        topics: of the fleet.
    """

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._said: dict[AlertAddress, Plain] = {}

    def hear(self, topic: str, payload: bytes) -> None:
        """Take a message on a topic of alerts; an empty one clears what was said there.

        Raises:
            ValueError: it is no alert.
        """
        address = self._topics.alert_address(topic)
        if not payload:
            self._said.pop(address, None)
        elif len(self._said) < MOST_ALERTS or address in self._said:
            self._said[address] = alert_told(payload)

    def all(self) -> list[tuple[AlertAddress, Plain]]:
        """Return what each alert says, sorted."""
        return sorted(self._said.items(), key=str)
