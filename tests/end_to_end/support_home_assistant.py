"""A real Home Assistant without a screen, which writes each second what it shows."""

import json
import os
import subprocess
from pathlib import Path

from tests.brokers import PATIENCE_S

HASS = os.environ.get("HASS", "")
"""The command `hass`; Home Assistant has a Python and pins of its own, so it is no dependency."""
NEEDED = (
    "needs a real Home Assistant: python3.13 -m venv ha; ha/bin/pip install homeassistant "
    "paho-mqtt PyTurboJPEG; HASS=ha/bin/hass"
)
_DUMP = """
import datetime, json, os
from homeassistant.helpers import area_registry, device_registry, entity_registry
from homeassistant.helpers.event import async_track_time_interval

def shown(hass):
    entities, devices = entity_registry.async_get(hass), device_registry.async_get(hass).devices
    areas = area_registry.async_get(hass)
    for each in entities.entities.values():
        state, device = hass.states.get(each.entity_id), devices.get(each.device_id)
        if each.platform != "mqtt":
            continue
        via, area = devices.get(device.via_device_id), areas.async_get_area(device.area_id or "")
        yield each.entity_id, {
            "name": each.original_name, "device": device.name, "via": via and via.name,
            "area": area and area.name, "url": device.configuration_url,
            "state": state and state.state, **(dict(state.attributes) if state else {}),
        }

async def async_setup(hass, config):
    path = hass.config.path("shown.json")

    def write(text):
        with open(path + ".new", "w") as file:
            file.write(text)
        os.replace(path + ".new", path)

    async def dump(_now):
        text = json.dumps(dict(shown(hass)), default=str)
        await hass.async_add_executor_job(write, text)

    async_track_time_interval(hass, dump, datetime.timedelta(seconds=1))
    return True
"""
_MANIFEST = {"domain": "shown", "name": "shown", "version": "1.0.0", "codeowners": []}
_ENTRY = {
    "created_at": "2026-01-01T00:00:00+00:00",
    "modified_at": "2026-01-01T00:00:00+00:00",
    "disabled_by": None,
    "discovery_keys": {},
    "domain": "mqtt",
    "entry_id": "mqtt",
    "minor_version": 2,
    "version": 1,
    "options": {},
    "pref_disable_new_entities": False,
    "pref_disable_polling": False,
    "source": "user",
    "title": "mqtt",
    "unique_id": None,
    "subentries": [],
}


class RealHomeAssistant:
    """One process of Home Assistant, with nothing but its MQTT integration.

    Args:
        directory: receives its configuration and what it shows.
        port: of the broker, on this machine.
    """

    def __init__(self, directory: Path, port: int) -> None:
        self._shown = directory / "shown.json"
        component = directory / "custom_components" / "shown"
        for each in (component, directory / ".storage"):
            each.mkdir(parents=True)
        (directory / "configuration.yaml").write_text("shown:\nlogger:\n  default: warning\n")
        (component / "manifest.json").write_text(json.dumps(_MANIFEST))
        (component / "__init__.py").write_text(_DUMP)
        entry = _ENTRY | {"data": {"broker": "127.0.0.1", "port": port, "discovery": True}}
        entries = {"version": 1, "minor_version": 5, "key": "core.config_entries"}
        entries["data"] = {"entries": [entry]}
        (directory / ".storage" / "core.config_entries").write_text(json.dumps(entries))
        self._log = (directory / "hass.log").open("wb")
        words = [HASS, "--config", str(directory)]
        self._process = subprocess.Popen(words, stdout=self._log, stderr=self._log)

    def shown(self) -> dict[str, dict]:
        """Return entity id -> what is shown of it, of all that came by MQTT."""
        return json.loads(self._shown.read_text()) if self._shown.exists() else {}

    def warnings(self) -> list[str]:
        """Return the lines of its log that are about MQTT."""
        text = Path(self._log.name).read_text(errors="replace")
        return [line for line in text.splitlines() if "components.mqtt" in line]

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        self._log.close()
