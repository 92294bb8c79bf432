"""The fleet as the page is told it, read off what `lasp-edge watch` knows."""

from typing import Any

from device_agent.console.command.looking import Looking
from device_agent.console.command.watch import View, fleet_value, in_text, measure_of
from device_agent.console.view.onlooker import DeviceView
from device_agent.console.view.told import Plain
from lasp_edge.release import RELEASE
from lasp_edge.tool.screen import UNKNOWN, in_words, number

MOST_DEVICES = 500
"""Rows of the table; what is more is counted."""
MOST_KEYS = 200
"""Keys of a value that are shown; what is more is counted."""


def picture(looked: Looking, view: View) -> dict[str, Any]:
    """Return all that is known of a fleet at this moment, but its past."""
    onlooker = looked.onlooker
    return {
        "fleet": looked.fleet,
        "release": RELEASE,
        "broker": {
            "url": str(looked.broker),
            "connected": looked.connected,
            "trouble": looked.trouble,
        },
        "own": view.own,
        "shared": view.shared,
        "told": sum(each.readings is not None for each in view.devices),
        "connected": sum(each.connected for each in view.devices),
        "count": len(view.devices),
        "devices": [_device(view, each) for each in view.devices[:MOST_DEVICES]],
        "values": [_value(looked, name) for name in onlooker.names if onlooker.is_of_fleet(name)],
        "alerts": [
            address._asdict()
            | {name: said.get(name) for name in ("state", "fold", "part", "value", "since")}
            for address, said in onlooker.alerts.all()[:MOST_KEYS]
        ],
    }


def _device(view: View, each: DeviceView) -> dict[str, Any]:
    return {
        "device": each.device,
        "connected": each.connected,
        "agreed": view.agreed(each),
        "readings": each.readings,
        "own": view.text(each.own),
        "fleet": view.text(each.fleet),
        "heard_s": None if each.heard_s is None else round(each.heard_s),
        "refused": each.refused,
        "refused_because": each.refused_because,
        "alarms": each.alarms,
    }


def _value(looked: Looking, name: str) -> dict[str, Any]:
    """Return one of the fleet's values: in words, and as numbers for the chart."""
    onlooker = looked.onlooker
    unit, places = measure_of(looked.plan, name)
    value = fleet_value(onlooker, name)
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
        "settled": onlooker.is_settled(name),
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


def numbers(looked: Looking) -> list[tuple[tuple[str, str, str], float, bool | None]]:
    """Return (value, key, part), the number, and whether it is settled, of the fleet's values."""
    onlooker = looked.onlooker
    found = []
    for name in filter(onlooker.is_of_fleet, onlooker.names):
        value = fleet_value(onlooker, name)
        if value is None:
            continue
        settled = onlooker.is_settled(name)
        by_key = value.get("keys", {"": value})
        found += [
            ((name, key, part), float(each), settled)
            for key, whole in by_key.items()
            for part, each in (whole or {}).get("parts", {}).items()
            if type(each) in {int, float}
        ]
    return found
