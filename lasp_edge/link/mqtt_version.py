"""Which MQTT version the next connection tries: 5, or 3.1.1 where the broker knows no 5."""

from lasp_edge.link.broker_url import MqttVersion
from lasp_edge.link.connection import Connection

_SILENT_TRIES = 3
"""Unanswered CONNECTs before a version that has worked is given up: a broker that is killed during
a handshake is silent, too."""


class MqttVersionChoice:
    """Falls back to 3.1.1 where MQTT 5 is refused or not answered, and the other way round.

    Args:
        fixed: the only version to try; None to choose.

    Attributes:
        protocol: the version to try next.
    """

    def __init__(self, fixed: MqttVersion | None) -> None:
        self.protocol: MqttVersion = fixed or "5"
        self._fixed = fixed is not None
        self._has_worked = False
        self._silent_tries = 0

    def learn(self, ended: Connection, *, was_up: bool) -> bool:
        """Take note of a connection that ended; return whether to try the next one at once."""
        if ended.answered and not ended.protocol_refused:
            self._has_worked |= was_up
            self._silent_tries = 0
            return False
        if not ended.opened or self._fixed:
            return False
        self._silent_tries += 1
        patience = _SILENT_TRIES if self._has_worked else 1
        if not ended.protocol_refused and self._silent_tries < patience:
            return False
        self.protocol = "3.1.1" if ended.protocol == "5" else "5"
        self._has_worked = False
        self._silent_tries = 0
        return self.protocol == "3.1.1"
