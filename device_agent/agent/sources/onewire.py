"""Thermometers on a 1-wire bus, such as the DS18B20, as the kernel's w1_therm shows them.

A sensor needs up to 0.75 s to measure, and the file is not there before. So they are read in a
thread of their own, one after the other, and the agent goes on. The checksum that the kernel has
verified must be right. A sensor that was just switched on says 85 °C; that counts only where the
reading before it was near.

The tag `sensor` is the sensor's number on the bus, such as `28-000005e2fdc3`, unless `names` gives
it another.

Source: docs.kernel.org/w1/slaves/w1_therm; Maxim's data sheet of the DS18B20 (power-on value).
"""

import re
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

from device_agent.agent.intake.batch import Batch
from device_agent.agent.sources.sensors import Measured, Sensor, SensorFiles, number_in
from device_agent.agent.sources.source import SourceContext
from lasp_edge.folds.numbers import Refused
from lasp_edge.units import SECOND_US

PERIOD_US = 10 * SECOND_US
"""Microseconds between two readings: ten sensors need 7.5 s."""
_LOOK_US = 100_000
"""Microseconds between two looks whether the thread has read all sensors."""
BAD_CHECKSUM = "checksum of the 1-wire sensor is wrong: a bad contact, or a cable too long"
POWER_ON = "85 °C, which a 1-wire sensor says before it has measured"
_POWER_ON_MC, _NEAR_MC = 85_000, 10_000
_FAMILIES = ("10", "22", "28", "3b", "42")
_NUMBER = re.compile(r"(..)-[0-9a-f]{12}")
_MILLI = Fraction(1, 1_000)


def in_thread(work: Callable[[], None]) -> None:
    """Do some work in a thread that does not keep the agent from ending."""
    threading.Thread(target=work, name="onewire", daemon=True).start()


class OneWire(SensorFiles):
    """A source of all thermometers on the 1-wire buses.

    Args:
        name: the source's name.
        context: the events of the program, and the options.
        root: what stands for `/`.
        run: does the reading, which takes long; in a thread.
    """

    where = "sys/bus/w1/devices"
    help = "is dtoverlay=w1-gpio in /boot/firmware/config.txt, and the sensor wired?"

    def __init__(
        self,
        name: str,
        context: SourceContext,
        root: Path = Path("/"),
        run: Callable[[Callable[[], None]], None] = in_thread,
    ) -> None:
        super().__init__(name, context, root, PERIOD_US)
        self._run = run
        self._is_reading = False
        self._measured: Measured | None = None
        self._last_mc: dict[str, int] = {}

    def look(self, directory: Path) -> Iterator[Sensor]:
        found = _NUMBER.fullmatch(directory.name)
        if found and found[1] in _FAMILIES:
            yield Sensor("temperature", "", directory.name, partial(self._read, directory))

    def poll(self, now_us: int) -> Batch | None:
        if not self._is_reading and self._period.begin(now_us) is not None:
            self._is_reading = True
            self._run(partial(self._work, now_us))
        measured, self._measured = self._measured, None
        if measured is None:
            return None
        self._is_reading = False
        return self._batch(measured)

    def due_us(self, now_us: int) -> int | None:
        return now_us + _LOOK_US if self._is_reading else self._period.due_us(now_us)

    def _work(self, now_us: int) -> None:
        try:
            self._measured = self._measure(now_us)
        finally:
            if self._measured is None:
                self._measured = Measured([], {}, is_missing=True)

    def _read(self, directory: Path) -> Fraction:
        celsius_m = _thousandths(directory)
        before_mc = self._last_mc.get(directory.name)
        if celsius_m == _POWER_ON_MC and (
            before_mc is None or abs(before_mc - _POWER_ON_MC) > _NEAR_MC
        ):
            raise Refused(POWER_ON)
        self._last_mc[directory.name] = celsius_m
        return celsius_m * _MILLI


def _thousandths(directory: Path) -> int:
    """Return what a sensor measures now, in thousandths of a degree.

    Raises:
        OSError, ValueError: it cannot be read.
        Refused: the checksum is wrong.
    """
    slave = directory / "w1_slave"
    if not slave.exists():
        return int(number_in(directory / "temperature"))
    # 50 05 4b 46 7f ff 0c 10 1c : crc=1c YES
    # 50 05 4b 46 7f ff 0c 10 1c t=85000
    first, _, second = slave.read_text(encoding="ascii", errors="replace").partition("\n")
    if not first.rstrip().endswith("YES"):
        raise Refused(BAD_CHECKSUM)
    return int(second.rpartition("t=")[2])


def make(name: str, _place: str, context: SourceContext) -> OneWire:
    """Return the source; see `SourceKind.make`."""
    return OneWire(name, context)
