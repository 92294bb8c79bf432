"""Sensors of the kernel's industrial I/O: BME280, SHT3x, light sensors, converters.

A processed value (`in_temp_input`) is taken as it is; a raw one is (raw + offset) times scale.

| channel            | event           | in the files | as a reading |
|--------------------|-----------------|--------------|--------------|
| `temp`             | `temperature`   | m°C          | °C           |
| `humidityrelative` | `humidity`      | m%           | %            |
| `pressure`         | `pressure`      | kPa          | hPa          |
| `illuminance`      | `illuminance`   | lx           | lx           |
| `concentration_co2` | `co2`          | %            | ppm          |
| `voltage`          | `voltage`       | mV           | V            |
| `current`          | `current`       | mA           | A            |
| `power`            | `power`         | mW           | W            |
| `resistance`       | `resistance`    | Ω            | Ω            |

The tag `chip` is the device's name, `sensor` its label or channel, such as `voltage0`.

Source: the kernel's Documentation/ABI/testing/sysfs-bus-iio.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

from device_agent.agent.sources.sensors import Sensor, SensorFiles, number_in, text_of
from device_agent.agent.sources.source import SourceContext

_MILLI = Fraction(1, 1_000)
_KINDS = {
    "temp": ("temperature", _MILLI),
    "humidityrelative": ("humidity", _MILLI),
    "pressure": ("pressure", Fraction(10)),
    "illuminance": ("illuminance", Fraction(1)),
    "concentration_co2": ("co2", Fraction(10_000)),
    "voltage": ("voltage", _MILLI),
    "current": ("current", _MILLI),
    "power": ("power", _MILLI),
    "resistance": ("resistance", Fraction(1)),
}
_CHANNEL = re.compile(r"in_(([a-z]+(?:_co2)?)(\d*)(?:_[a-z]+)?)_(raw|input)")


class Iio(SensorFiles):
    """A source of the devices of industrial I/O."""

    where = "sys/bus/iio/devices"
    help = "is the chip's overlay in /boot/firmware/config.txt, and does `i2cdetect -y 1` show it?"

    def look(self, directory: Path) -> Iterator[Sensor]:
        chip = text_of(directory / "name") or directory.name
        place = text_of(directory / "label") or ""
        seen = set()
        for path in sorted(directory.glob("in_*")):  # `input` comes before `raw`
            found = _CHANNEL.fullmatch(path.name)
            if found is None or found[2] not in _KINDS or found[1] in seen:
                continue
            seen.add(found[1])
            event, unit = _KINDS[found[2]]
            label = text_of(directory / f"in_{found[1]}_label") or place or found[1]
            yield Sensor(event, chip, label, partial(_read, path, found[1], found[2], unit))


def _read(path: Path, channel: str, kind: str, unit: Fraction) -> Fraction:
    value = number_in(path)
    if path.name.endswith("_raw"):
        offset, scale = (
            _read_number(path.parent, channel, kind, what) for what in ("offset", "scale")
        )
        value = (value + (offset or 0)) * (1 if scale is None else scale)
    return value * unit


def _read_number(directory: Path, channel: str, kind: str, what: str) -> Fraction | None:
    """Return a channel's scale or offset, which it may share with all channels of its kind."""
    for name in (channel, kind):
        path = directory / f"in_{name}_{what}"
        if path.exists():
            return number_in(path)
    return None


def make(name: str, _place: str, context: SourceContext) -> Iio:
    """Return the source; see `SourceKind.make`."""
    return Iio(name, context)
