"""The fleet as the page has it, made from the table of `lasp-edge watch`.

Times are seconds of one clock that never goes back, and `at` is its present: what nothing new was
received of stays as it is, second after second, and costs no byte.
"""

from collections.abc import Iterator
from typing import Any

from device_agent.console.command.session import FleetSession
from device_agent.console.command.watch import FleetTable, in_text, measure_of
from device_agent.console.view.fleet_view import DeviceView, FleetView
from device_agent.console.view.published import Plain
from lasp_edge.release import RELEASE
from lasp_edge.tool.screen import UNKNOWN, in_words, number

MOST_DEVICES = 2_000
"""Devices of the page, those that are away first; further ones are counted."""
MOST_KEYS = 200
"""Keys of a value, and alerts, that are shown; further ones are counted."""
SLOW_S = 600.0
"""Seconds behind the others after which a connected device is one to look at. All values move while
devices measure, so each is behind by up to an --interval or two."""


def picture(
    session: FleetSession, table: FleetTable, at_s: float, began_s: float
) -> dict[str, Any]:
    """Return all that is known of a fleet now, but its past; it is watched since `began_s`."""
    view = session.view
    devices = sorted(table.devices, key=lambda each: (each.connected, each.device))
    alerts = sorted(view.alerts.items(), key=lambda each: (each[1]["state"] != "on", str(each[0])))
    return {
        "at": round(at_s),
        "began": round(began_s),
        "fleet": table.fleet,
        "release": RELEASE,
        "broker": {
            "url": str(session.broker),
            "connected": table.connected,
            "trouble": table.trouble,
        },
        "own": table.own,
        "shared": table.shared,
        "reporting": sum(each.readings is not None for each in devices),
        "connected": sum(each.connected for each in devices),
        "count": len(devices),
        "devices": {each.device: _device(table, each, at_s) for each in devices[:MOST_DEVICES]},
        "values": {
            name: _value(view, table, name, at_s)
            for name in view.values.names
            if view.values.is_of_fleet(name)
        },
        "alerts": [
            address._asdict()
            | {name: alert.get(name) for name in ("state", "fold", "part", "value", "since")}
            for address, alert in alerts[:MOST_KEYS]
        ],
        "more_alerts": max(0, len(alerts) - MOST_KEYS),
        "gateways": dict(view.values.gateways),
    }


def _device(table: FleetTable, each: DeviceView, at_s: float) -> dict[str, Any]:
    behind_s = each.behind_s if each.connected else None
    return {
        "connected": each.connected,
        "agreed": "behind" if behind_s else table.agreed(each),
        "behind_since": None if not behind_s else round(at_s - behind_s),
        "readings": each.readings,
        "own": table.text(each.own),
        "fleet": table.text(each.fleet),
        "last": None if each.silent_s is None else round(at_s - each.silent_s),
        "refused_because": dict(each.refused_because),
        "alarms": each.alarms,
    }


def _value(view: FleetView, table: FleetTable, name: str, at_s: float) -> dict[str, Any]:
    """Return one of the fleet's values: in words, and as numbers for the chart."""
    unit, places = measure_of(view.plan, name)
    value, agreed_s = view.values.whole(name), view.values.agreed_s.get(name)
    by_key: dict[str, Plain | None] = (value or {}).get("keys", {})
    keys = {
        key: in_text(each, unit, places)
        for key, each in list(by_key.items())[:MOST_KEYS]
        if each is not None
    }
    whole = None if value is None or "keys" in value else value
    parts: dict[str, Any] = whole["parts"] if whole else {}
    behind_s = {
        each.device: view.values.behind_s(name, each.device, at_s) or 0.0
        for each in table.devices
        if each.connected
    }
    return {
        "unit": unit,
        "places": places,
        "settled": view.values.is_settled(name),
        "agreed": None if agreed_s is None else round(agreed_s),
        "slow": sorted(device for device, behind in behind_s.items() if behind > SLOW_S),
        "away": view.values.away_in(name),
        "devices": whole.get("devices") if whole else None,
        "parts": [
            {"part": part, "title": in_words(part), "text": _text(each, places)}
            for part, each in parts.items()
        ],
        "keyed": bool(by_key),
        "keys": keys,
        "more_keys": max(0, len(by_key) - MOST_KEYS),
    }


def _text(part: Any, places: int) -> str:
    return UNKNOWN if part is None else number(part, places)


def numbers(view: FleetView) -> Iterator[tuple[tuple[str, str, str], float, bool | None]]:
    """Yield (value, key, part), the number, and whether it is settled, of the fleet's values."""
    for name in view.values.names:
        value = view.values.whole(name) if view.values.is_of_fleet(name) else None
        settled = view.values.is_settled(name) if value else None
        for key, whole in (value or {}).get("keys", {"": value}).items():
            for part, each in (whole or {}).get("parts", {}).items():
                if type(each) in {int, float}:
                    yield (name, key, part), float(each), settled
