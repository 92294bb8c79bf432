"""Sensors that the kernel shows as files: what hwmon, IIO and 1-wire have in common.

A source looks for its sensors at the start, says which it found, and looks again where it found
nothing or one went away. All sensors of one kind give readings of one event, distinguished by the
tags `chip` and `sensor`. Values are exact: a file says whole thousandths, and no double is made of
them.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from device_agent.agent.intake.batch import Batch
from device_agent.agent.sources.mapping_options import WITH_TAG
from device_agent.agent.sources.nearest import quoted
from device_agent.agent.sources.periods import EVERY, NAMES, ONLY, ReadingPeriod
from device_agent.agent.sources.source import Source, SourceContext
from lasp_edge.folds.decimals import exact
from lasp_edge.folds.numbers import Refused
from lasp_edge.units import SECOND_US

LOOK_AGAIN_US = 60 * SECOND_US
"""Microseconds between two looks for sensors, where one is missing."""
NOT_READ = "the sensor cannot be read"


class Sensor(NamedTuple):
    """One sensor.

    Attributes:
        event: what it measures.
        chip, sensor: its name; the kernel's.
        read: returns its value; raises Refused with the reason where it has no value.
    """

    event: str
    chip: str
    sensor: str
    read: Callable[[], Fraction]


class Measured(NamedTuple):
    """What one look at all sensors gave: readings, refusals, and whether a sensor has gone."""

    readings: list[tuple[str, Fraction, Mapping[str, str]]]
    refused: dict[str, int]
    is_missing: bool


class SensorFiles(Source):
    """A source of the sensors of one kind.

    Args:
        name: the source's name.
        context: the events of the program, and the options.
        root: what stands for `/`.
        period_us: time between readings, where none is asked for.

    Attributes:
        where: the directory in which they are looked for.
        help: what to do where there are no sensors.
    """

    where: str
    help: str

    def __init__(
        self,
        name: str,
        context: SourceContext,
        root: Path = Path("/"),
        period_us: int = SECOND_US,
    ) -> None:
        self.name = name
        self._root, self._events = root, frozenset(context.events)
        self._period = ReadingPeriod(context.get(EVERY) or period_us)
        self._only, self._names = frozenset(context.get(ONLY)), context.get(NAMES)
        self._constant_tags = context.get(WITH_TAG)
        self._tags: dict[tuple[str, str], Mapping[str, str]] = {}
        self._sensors: list[Sensor] = []
        self._looked_us: int | None = None

    @property
    def has_own_times(self) -> bool:
        return False

    @abstractmethod
    def look(self, directory: Path) -> Iterable[Sensor]:
        """Yield every sensor of a directory, whatever it measures."""

    def open(self, cursor: str | None) -> None:  # noqa: ARG002 - there is nothing to resume
        self._find()

    def poll(self, now_us: int) -> Batch | None:
        if self._period.begin(now_us) is None:
            return None
        return self._batch(self._measure(now_us))

    def due_us(self, now_us: int) -> int | None:
        return self._period.due_us(now_us)

    def says(self) -> str:
        """Return in words which sensors were found, and what they measure."""
        found = [
            f"{sensor.chip} {sensor.sensor} ({sensor.event})".strip() for sensor in self._sensors
        ]
        if found:
            return f"found {', '.join(found)}"
        others = sorted({sensor.event for sensor in self._all()} - self._events)
        if others:
            wanted = quoted(sorted(self._events))
            return f"the sensors here measure {quoted(others)}; the program has only {wanted}"
        return f"no sensor in /{self.where}; {self.help}"

    def _all(self) -> list[Sensor]:
        directory = self._root / self.where
        found = [sensor for each in sorted(directory.glob("*")) for sensor in self.look(each)]
        only = self._only
        return [one for one in found if not only or {one.chip, one.sensor} & only]

    def _find(self) -> None:
        self._sensors = [sensor for sensor in self._all() if sensor.event in self._events]

    def _measure(self, now_us: int) -> Measured:
        """Read all sensors, and look for more where one is missing."""
        measured = Measured([], {}, is_missing=not self._sensors)
        for sensor in self._sensors:
            try:
                measured.readings.append((sensor.event, sensor.read(), self._tags_of(sensor)))
            except (OSError, ValueError, Refused) as error:
                reason = str(error) if isinstance(error, Refused) else NOT_READ
                measured.refused[reason] = measured.refused.get(reason, 0) + 1
        is_missing = measured.is_missing or NOT_READ in measured.refused
        if is_missing and (self._looked_us is None or now_us >= self._looked_us + LOOK_AGAIN_US):
            self._looked_us = now_us
            self._find()
        return measured

    def _batch(self, measured: Measured) -> Batch | None:
        readings, refused, _ = measured
        if not readings and not refused:
            return None
        return Batch(
            self.name,
            names=[event for event, _, _ in readings],
            times_us=[None] * len(readings),
            values=[value for _, value, _ in readings],
            tags=[tags for _, _, tags in readings],
            refused=refused,
        )

    def _tags_of(self, sensor: Sensor) -> Mapping[str, str]:
        known = self._tags.get(sensor[1:3])
        if known is None:
            name = self._names.get(sensor.sensor, sensor.sensor)
            tags = {"chip": sensor.chip, "sensor": name, **self._constant_tags}
            known = {tag: text for tag, text in tags.items() if text}
            self._tags[sensor[1:3]] = known
        return known


def text_of(path: Path) -> str | None:
    """Return the text of a file of the kernel's; None where it is not there."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None


def number_in(path: Path) -> Fraction:
    """Return the number in a file of the kernel's, exactly.

    Raises:
        OSError: it cannot be read.
        ValueError: it holds no number.
    """
    return exact(path.read_text(encoding="ascii", errors="replace").strip(), path.name)
