"""The fleet as the page has it, made from the table of `lasp-edge watch`."""

from collections.abc import Iterator
from typing import Any

from device_agent.console.command.session import FleetSession
from device_agent.console.command.watch import FleetTable, in_text, measure_of
from device_agent.console.view.fleet_view import DeviceView, FleetView
from device_agent.console.view.published import Plain
from lasp_edge.release import RELEASE
from lasp_edge.tool.screen import UNKNOWN, in_words, number

MOST_DEVICES = 500
"""Rows of the table; further ones are counted."""
MOST_KEYS = 200
"""Keys of a value that are shown; further ones are counted."""


def picture(session: FleetSession, table: FleetTable) -> dict[str, Any]:
    """Return all that is known of a fleet at this moment, but its past."""
    view = session.view
    return {
        "fleet": table.fleet,
        "release": RELEASE,
        "broker": {
            "url": str(session.broker),
            "connected": table.connected,
            "trouble": table.trouble,
        },
        "own": table.own,
        "shared": table.shared,
        "reporting": sum(each.readings is not None for each in table.devices),
        "connected": sum(each.connected for each in table.devices),
        "count": len(table.devices),
        "devices": [_device(table, each) for each in table.devices[:MOST_DEVICES]],
        "values": [
            _value(view, name) for name in view.values.names if view.values.is_of_fleet(name)
        ],
        "alerts": [
            address._asdict()
            | {name: alert.get(name) for name in ("state", "fold", "part", "value", "since")}
            for address, alert in sorted(view.alerts.items(), key=str)[:MOST_KEYS]
        ],
    }


def _device(table: FleetTable, each: DeviceView) -> dict[str, Any]:
    return {
        "device": each.device,
        "connected": each.connected,
        "agreed": table.agreed(each),
        "readings": each.readings,
        "own": table.text(each.own),
        "fleet": table.text(each.fleet),
        "heard_s": None if each.heard_s is None else round(each.heard_s),
        "refused": each.refused,
        "refused_because": each.refused_because,
        "alarms": each.alarms,
    }


def _value(view: FleetView, name: str) -> dict[str, Any]:
    """Return one of the fleet's values: in words, and as numbers for the chart."""
    unit, places = measure_of(view.plan, name)
    value = view.values.whole(name)
    by_key: dict[str, Plain | None] = (value or {}).get("keys", {})
    keys = [
        {"key": key, "text": in_text(each, unit, places)}
        for key, each in list(by_key.items())[:MOST_KEYS]
        if each is not None
    ]
    whole = None if value is None or "keys" in value else value
    parts: dict[str, Any] = whole["parts"] if whole else {}
    return {
        "name": name,
        "unit": unit,
        "places": places,
        "settled": view.values.is_settled(name),
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
