"""Ready mappings: what the programs in many houses publish, by a name in one line.

| name            | topic, for example                        | a message, for example            |
|-----------------|-------------------------------------------|-----------------------------------|
| `zigbee2mqtt`   | `zigbee2mqtt/{room}`                      | `{"temperature": 21.5, ...}`      |
| `tasmota`       | `tele/{room}/SENSOR`                      | `{"AM2301": {"Temperature": 21}}` |
| `esphome`       | `{room}/sensor/{event}/state`             | `21.5`                            |
| `homeassistant` | `homeassistant/sensor/{room}_{event}/state` | `21.5`                          |

An event of the program is looked up under its own name unless the mapping knows a better place.
Options beside `mapping` are laid over it. All four stamp readings when they arrive, as these
programs tell no time by default.

Sources: www.zigbee2mqtt.io (MQTT topics and messages), tasmota.github.io/docs (MQTT; AM2301),
esphome.io/components/mqtt, www.home-assistant.io/integrations/mqtt_statestream.
"""

from collections.abc import Mapping
from typing import Any

_NO_VALUE = ("unknown", "unavailable", "none", "nan")

READY: Mapping[str, Mapping[str, Any]] = {
    # Availability and commands stand below a device's topic; the bridge has one of its own.
    "zigbee2mqtt": {
        "ignore": (
            *("+/bridge/#", "+/+/availability", "+/+/+/availability"),
            *("+/+/set", "+/+/get", "+/+/+/set", "+/+/+/get"),
        ),
    },
    # Each sensor is an object under its own name: two DS18B20 are DS18B20-1 and DS18B20-2.
    "tasmota": {
        "event": {
            "temperature": "{sensor}.Temperature",
            "humidity": "{sensor}.Humidity",
            "dew_point": "{sensor}.DewPoint",
            "pressure": "{sensor}.Pressure",
            "illuminance": "{sensor}.Illuminance",
            "co2": "{sensor}.CarbonDioxide",
            "power": "ENERGY.Power",
            "energy": "ENERGY.Total",
            "voltage": "ENERGY.Voltage",
            "current": "ENERGY.Current",
            "state": "POWER",
        },
        "expect": {"TempUnit": "C"},
    },
    "esphome": {"absent": _NO_VALUE},
    "homeassistant": {"absent": _NO_VALUE},
}
