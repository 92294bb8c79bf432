"""Readings that are probably a mistake: a sudden other unit, lost digits, one reading twice.

Of each batch the last readings are looked at, at the tick after it: a sensor that measures
something else goes on doing so.

    >>> from lasp_edge.folds.numbers import Resolution
    >>> notices = Notices()
    >>> odd = OddReadings([EventType("power", Resolution("0.1"), "W")], notices)
    >>> for watts in (1500, 1520, 1510, 1.51, 1.5, 1.52):
    ...     odd.look(Batch("meter", ["power"], [None], [watts], [{}]))
    >>> notices.texts
    ['power went from 1510 to 1.52, as a factor of 1000 does it: is it still in W?']
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from device_agent.agent.intake.batch import MOST_READINGS, Batch
from device_agent.agent.intake.times_behind import TimesBehind
from device_agent.agent.notices import Notices
from lasp_edge.folds.numbers import LARGEST
from lasp_edge.language.declarations import EventType

LOOKED_AT = 8
"""Readings of a batch that are looked at, at most."""
MOST_BATCHES = 2 * MOST_READINGS
"""Batches that are looked at in a tick, at most: more than are committed at a time."""
SENSORS = 1_000
"""Sensors (an event and tags) of which the last readings are remembered, at most."""
SURE = 3
"""Readings that show a jump, one after the other: a glitch is over sooner."""
NEAR = 0.05
"""Part of a value by which a reading may differ from what another unit makes of the one before."""

_AGAIN = "readings of one event, time and value came more than once from"
_APART = "each counts once; if two sensors agree, tell them apart by --tag NAME=FIELD"
Change = Callable[[float], float]
_TEMPERATURES: Mapping[str, Mapping[str, Change]] = {
    "°C": {"°F": lambda x: 1.8 * x + 32, "K": lambda x: x + 273.15},
    "°F": {"°C": lambda x: (x - 32) / 1.8},
    "K": {"°C": lambda x: x - 273.15},
}
_FACTORS: Mapping[str, Change] = {
    "a factor of 1000 does it": lambda x: x / 1000,
    "a factor of 1/1000 does it": lambda x: x * 1000,
    "a factor of 100 does it": lambda x: x / 100,
    "a factor of 1/100 does it": lambda x: x * 100,
}


class Jump(NamedTuple):
    """A jump that may be another unit.

    Attributes:
        before: the last reading before it.
        words: what makes such a jump.
        change: what the other unit makes of a value.
        times: how many readings have shown it.
    """

    before: float
    words: str
    change: Change
    times: int

    def goes_on(self, value: float, *, is_factor: bool) -> bool:
        """Return whether a reading shows the jump; once it is sure, whether it is on its side."""
        before, after = self.before, self.change(self.before)
        if self.times < SURE:
            return _is_near(value, after)
        if is_factor:
            return (value * value > abs(before * after)) == (abs(after) > abs(before))
        return (2 * value > before + after) == (after > before)


class OddReadings:
    """Notes what is odd about readings.

    Args:
        events: the program's events.
        notices: where that is noted.

    Attributes:
        looks: any event has something to look at.
    """

    def __init__(self, events: Iterable[EventType], notices: Notices) -> None:
        self._notices, self.behind = notices, TimesBehind(notices)
        numbers = [event for event in events if not event.text]
        self._units = {event.name: event.unit for event in numbers if event.unit}
        self._unstepped = {event.name: event for event in numbers if event.is_unstepped}
        self.looks = bool(self._units or self._unstepped)
        self._last: dict[tuple[Any, ...], float] = {}
        self._jumps: dict[tuple[Any, ...], Jump] = {}

    def look(self, batch: Batch, *, is_again: bool = False) -> None:
        """Look at readings.

        Args:
            batch: the last readings of a batch.
            is_again: the batch has a reading that its source gave before to this process.
        """
        if is_again:
            self._notices.begin(f"again {batch.source}", f"{_AGAIN} {batch.source}: {_APART}")
        for name, value, tags in zip(batch.names, batch.values, batch.tags, strict=True):
            if (type(value) is not int and type(value) is not float) or not _is_small(value):
                continue
            if name in self._unstepped:
                self._look_at_digits(name, value)
            if name in self._units:
                self._look_at_unit(name, tags, value)

    def look_at_times(self, batch: Batch, newest_us: int | None, clock_us: int) -> None:
        """Look how far the newest own time of a batch is behind the clock.

        Args:
            batch: the batch.
            newest_us: the greatest own time among its accepted readings; None: all were stamped.
            clock_us: what time it is, unless the batch has what time it was.
        """
        if newest_us is not None and not batch.done:
            clock_us = batch.clocks_us[-1] if batch.clocks_us else clock_us
            self.behind.look(batch.source, newest_us, clock_us)

    def _look_at_digits(self, name: str, value: float) -> None:
        if value != round(value):
            del self._unstepped[name]
            self._notices.begin(
                f"digits of {name}",
                f"{name} counts in whole numbers, {value:g} as {round(value)}: its event has no "
                'resolution, such as resolution="0.1"',
            )

    def _look_at_unit(self, name: str, tags: Mapping[str, str], value: float) -> None:
        sensor = (name, *sorted(tags.items()))
        before, jump = self._last.get(sensor), self._jumps.get(sensor)
        if jump is not None and jump.goes_on(
            value, is_factor=self._units[name] not in _TEMPERATURES
        ):
            self._jumps[sensor] = jump = jump._replace(times=jump.times + 1)
            if jump.times == SURE:
                self._notices.begin(f"unit {sensor}", self._text(name, tags, jump, value))
            return
        if jump is not None:
            del self._jumps[sensor]
            self._notices.end(f"unit {sensor}")
        if before is not None and not _is_near(value, before):
            changes = _TEMPERATURES.get(self._units[name], _FACTORS)
            for words, change in changes.items():
                if _is_near(value, change(before)):
                    self._jumps[sensor] = Jump(before, words, change, 1)
                    return
        if before is not None or len(self._last) < SENSORS:
            self._last[sensor] = value

    def _text(self, name: str, tags: Mapping[str, str], jump: Jump, value: float) -> str:
        of = ", ".join(f"{tag}={text}" for tag, text in sorted(tags.items()))
        unit = self._units[name]
        does = f"if it were in {jump.words} now" if unit in _TEMPERATURES else jump.words
        return (
            f"{name}{f' of {of}' if of else ''} went from {jump.before:g} to {value:g}, as {does}: "
            f"is it still in {unit}?"
        )


def _is_small(value: float) -> bool:
    """Return whether a number is finite, and no integer that no float holds."""
    return -LARGEST < value < LARGEST


def _is_near(value: float, other: float) -> bool:
    if value < 0:
        value, other = -value, -other
    if value >= other:  # without a call, for it is asked several times of each reading
        return value - other <= NEAR * value
    return other - value <= NEAR * other
