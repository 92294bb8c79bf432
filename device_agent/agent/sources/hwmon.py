"""Sensors of the kernel's hwmon class: chips on the board, on a HAT, in a power supply.

| file            | event         | in the file | as a reading |
|-----------------|---------------|-------------|--------------|
| `tempN_input`   | `temperature` | m°C         | °C           |
| `humidityN_input` | `humidity`  | m%          | %            |
| `inN_input`     | `voltage`     | mV          | V            |
| `currN_input`   | `current`     | mA          | A            |
| `powerN_input`  | `power`       | µW          | W            |
| `energyN_input` | `energy`      | µJ          | J            |
| `fanN_input`    | `fan`         | rpm         | rpm          |

The tag `chip` is the chip's name, `sensor` the label that the kernel gives, else `temp1` and so on.

Source: docs.kernel.org/hwmon/sysfs-interface.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

from device_agent.agent.sources.sensors import Sensor, SensorFiles, number_in, text_of
from device_agent.agent.sources.source import SourceContext
from lasp_edge.folds.numbers import Refused

FAULT = "the chip reports a fault of the sensor"
_MILLI, _MICRO = Fraction(1, 1_000), Fraction(1, 1_000_000)
_KINDS = {
    "temp": ("temperature", _MILLI),
    "humidity": ("humidity", _MILLI),
    "in": ("voltage", _MILLI),
    "curr": ("current", _MILLI),
    "power": ("power", _MICRO),
    "energy": ("energy", _MICRO),
    "fan": ("fan", Fraction(1)),
}
_INPUT = re.compile(r"([a-z]+)(\d+)_input")


class Hwmon(SensorFiles):
    """A source of the chips of hwmon."""

    where = "sys/class/hwmon"
    help = "does `ls /sys/class/hwmon/*/name` show the chip, and is its driver loaded?"

    def look(self, directory: Path) -> Iterator[Sensor]:
        chip = text_of(directory / "name") or directory.name
        for path in sorted(directory.glob("*_input"), key=_by_number):
            found = _INPUT.fullmatch(path.name)
            if found is None or found[1] not in _KINDS:
                continue
            event, unit = _KINDS[found[1]]
            own = f"{found[1]}{found[2]}"
            label = text_of(directory / f"{own}_label") or own
            yield Sensor(event, chip, label, partial(_read, path, unit))


def _by_number(path: Path) -> tuple[str, int]:
    found = _INPUT.fullmatch(path.name)
    return (found[1], int(found[2])) if found else (path.name, 0)


def _read(path: Path, unit: Fraction) -> Fraction:
    fault = path.with_name(path.name.replace("_input", "_fault"))
    if text_of(fault) == "1":
        raise Refused(FAULT)
    return number_in(path) * unit


def make(name: str, _place: str, context: SourceContext) -> Hwmon:
    """Return the source; see `SourceKind.make`."""
    return Hwmon(name, context)
