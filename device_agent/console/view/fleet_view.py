"""One view of a fleet, from which each command about a fleet shows a part.

The module is pure: messages and times, in seconds of any clock, go in.

    >>> view = FleetView(Topics("greenhouse"), nonce=1)
    >>> view.take(view.topics.result("mean", "attic"), b'{"parts": {"mean": 21.5}}', 5.0)
    >>> view.values.value("mean", "attic"), view.values.devices
    ({'parts': {'mean': 21.5}}, ['attic'])
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from device_agent.console.view.commands import FleetCommands
from device_agent.console.view.devices import KnownDevices
from device_agent.console.view.published import Plain, alert_of, result_of, waiting_of
from device_agent.console.view.values import FleetValues
from device_agent.console.view.windows import GatewayWindows, is_window
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.sinks import MAX_SINKS
from lasp_edge.protocol.topics import AlertAddress, Topics

MOST_ALERTS = 10_000
"""Alerts, of all devices and keys, that are remembered: some 10 MB at most."""


class DeviceView(NamedTuple):
    """A device, as a command shows it.

    Attributes:
        device: its name.
        connected: according to its presence.
        readings: how many it accepted; None where it does not report.
        own: its own value, by part; by key if it has keys.
        fleet: the fleet's value as it sees it.
        behind_s: seconds since another device held a state that this one did not; 0 for none; None
            where it reported nothing yet.
        silent_s: seconds since its last message; None where only retained ones were received.
        alarms: for somebody to look at: its alarms and notices.
        refused: how many readings it refused; None where it does not report.
        refused_because: those since its start, by reason.
        sent_bytes: the bytes that it sent since its start; None where it does not report.
    """

    device: str
    connected: bool
    readings: int | None
    own: Plain | None
    fleet: Plain | None
    behind_s: float | None
    silent_s: float | None
    alarms: tuple[str, ...]
    refused: int | None
    refused_because: Mapping[str, int]
    sent_bytes: int | None


class FleetView:
    """All that is known of a fleet from its messages.

    Args:
        topics: of the fleet.
        nonce: 32 random bits of this command's process.
        plan: the fleet's program, where it is known.

    Attributes:
        topics: of the fleet.
        plan: its program, where it is known.
        devices: those that are known, and the operators' entries.
        commands: the operator's own commands.
        values: the values that devices publish or hold.
        alerts: the current state of each alert.
        windows: the rows that gateways publish.
    """

    def __init__(self, topics: Topics, nonce: int, plan: Plan | None = None) -> None:
        self.topics, self.plan = topics, plan
        self.devices = KnownDevices(topics, plan.parameters if plan else ())
        self.commands = FleetCommands(self.devices, nonce)
        self.values = FleetValues(self.devices, plan)
        self.alerts: dict[AlertAddress, Plain] = {}
        self.windows = GatewayWindows()
        self._last_s: dict[str, float] = {}

    def take(self, topic: str, payload: bytes, now_s: float, *, retained: bool = False) -> None:
        """Take a message; `retained`: the broker had kept it."""
        with suppress(Exception):  # no message may end a command; the agents count it
            if self.topics.is_alert(topic):
                self._take_alert(self.topics.alert_address(topic), payload)
                return
            if topic.startswith((f"{self.topics.root}/out/", f"{self.topics.root}/fleet/")):
                device = self._take_result(topic, payload, now_s)
            else:
                device = self._take_frame(topic, payload, now_s)
            if device is not None and not retained:
                self._last_s[device] = now_s

    def _take_alert(self, address: AlertAddress, payload: bytes) -> None:
        if not payload:
            self.alerts.pop(address, None)
        elif len(self.alerts) < MOST_ALERTS or address in self.alerts:
            self.alerts[address] = alert_of(payload)

    def _take_result(self, topic: str, payload: bytes, now_s: float) -> str | None:
        """Take a result; return the device that published it, if one did."""
        gateway = self.topics.gateway_of(topic)
        if gateway is not None:
            known = self.values.gateways
            if gateway in known or len(known) < MAX_SINKS:
                known[gateway] = []  # it is no device, though its report may be unreadable
                known[gateway] = waiting_of(payload)
            return None
        address = self.topics.result_address(topic)
        if not payload:
            self.values.drop(address)
            return None
        result = result_of(payload)
        if is_window(result):
            self.windows.take(address, payload)
            return None
        return address.device if self.values.put(address, result, now_s) else None

    def _take_frame(self, topic: str, payload: bytes, now_s: float) -> str | None:
        """Take a frame; return the device that sent it, if it is about itself."""
        frame = self.devices.take(topic, payload)
        if frame is None:
            return None
        self.values.take(frame, now_s)
        return frame.about if frame.about == frame.sender.device else None

    def device(self, name: str, own: str | None, shared: str | None, now_s: float) -> DeviceView:
        """Return a device with the named value of its own and its view of the fleet's one."""
        values, last_s = self.values, self._last_s.get(name)
        report = values.report(name)
        return DeviceView(
            name,
            self.devices.is_online(name),
            report.get("readings"),
            None if own is None else values.whole(own, name),
            None if shared is None else values.whole(shared, name),
            values.behind_s(shared, name, now_s),
            None if last_s is None else now_s - last_s,
            (*report.get("alarms", ()), *report.get("notices", ())),
            report.get("refused"),
            report.get("refused_because", {}),
            report.get("sent_bytes"),
        )
