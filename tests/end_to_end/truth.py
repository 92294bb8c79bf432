"""What must come out, by brute force from the recorded lines, with none of the project's code."""

import csv
import gzip
import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

MICROSECOND = 1_000_000


class RecordedReading(NamedTuple):
    """One reading; equal ones are one."""

    device: str
    time_us: int
    steps: int
    light: str


class Sums(NamedTuple):
    """The integers of a window, and how many devices have a reading in it."""

    count: int
    total: int
    least: int
    greatest: int
    devices: int


Truth = dict[tuple[str, int, int], Sums]
"""(key, start_us, end_us) -> integers."""


class Expected(NamedTuple):
    """A window of the program, as a person would define it."""

    field: str
    resolution: Fraction
    size_s: int
    slide_s: int
    key: Callable[[RecordedReading], str]


def _light(reading: RecordedReading) -> str:
    return f'light, "{reading.light}" → ☀'


_HUNDREDTH, _TENTH = Fraction(1, 100), Fraction(1, 10)
WINDOWS: Mapping[str, Expected] = {
    "temp_60s": Expected("temp", _HUNDREDTH, 60, 10, lambda _: ""),
    "temp_by_device": Expected("temp", _HUNDREDTH, 50, 20, lambda reading: reading.device),
    "humidity_by_light": Expected("humidity", _TENTH, 50, 20, _light),
}


def recorded(path: Path) -> list[str]:
    """Return the lines of a recording."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.readlines()


def readings_of(
    lines: Iterable[str], field: str, resolution: Fraction
) -> tuple[RecordedReading, ...]:
    """Return the different readings of one field, in the order in which they come first."""
    return _readings_of(tuple(lines), field, resolution)


@lru_cache(maxsize=4)
def _readings_of(
    lines: tuple[str, ...], field: str, resolution: Fraction
) -> tuple[RecordedReading, ...]:
    found = {}
    for line in lines:
        message = json.loads(line)
        steps = round(Fraction(message["data"][field]) / resolution)  # half to even
        time_us = round(Fraction(message["ts"]) * MICROSECOND)
        light = json.dumps(message["data"]["light"])
        found[RecordedReading(message["device"], time_us, steps, light)] = None
    return tuple(found)


def windows(lines: Iterable[str], name: str) -> Truth:
    """Return every window of a definition that holds a reading."""
    held = placed(lines, WINDOWS[name])
    size_us = WINDOWS[name].size_s * MICROSECOND
    return {
        (key, start_us, start_us + size_us): sums(readings)
        for (key, start_us), readings in held.items()
    }


def placed(lines: Iterable[str], window: Expected) -> dict[tuple[str, int], list[RecordedReading]]:
    """Return the readings of every window by key and start."""
    field, resolution, size_s, slide_s, key = window
    held: dict[tuple[str, int], list[RecordedReading]] = defaultdict(list)
    for reading in readings_of(lines, field, resolution):
        last = reading.time_us // (slide_s * MICROSECOND)
        for number in range(last, last - size_s // slide_s - 2, -1):
            start_us = number * slide_s * MICROSECOND
            if start_us <= reading.time_us < start_us + size_s * MICROSECOND:
                held[key(reading), start_us].append(reading)
    return held


def sums(readings: Iterable[RecordedReading]) -> Sums:
    """Return the integers of readings."""
    steps = [(reading.steps, reading.device) for reading in readings]
    values = [value for value, _ in steps]
    devices = len({device for _, device in steps})
    return Sums(len(values), sum(values), min(values), max(values), devices)


def last(lines: Iterable[str], number: int) -> dict[str, Sums]:
    """Return the integers of each device's last temperatures, in the order of the lines."""
    by_device: dict[str, list[RecordedReading]] = defaultdict(list)
    for reading in readings_of(lines, "temp", _HUNDREDTH):
        by_device[reading.device].append(reading)
    return {device: sums(readings[-number:]) for device, readings in by_device.items()}


class Spread(NamedTuple):
    """What the samples of a window are like, by the definition of each word."""

    deviation: float | None
    variance: float
    first: Fraction
    last: Fraction
    bins: tuple[int, ...]
    median: Fraction
    p99: Fraction
    distinct: int
    top: tuple[Fraction, ...]
    any: bool
    all: bool


SPREAD = Expected("temp", _HUNDREDTH, 600, 300, lambda reading: reading.device)
EDGES = (Fraction(20), Fraction(45, 2), Fraction(25))


def spread(readings: Sequence[RecordedReading]) -> Spread:
    """Return what the temperatures of a window are like."""
    values = sorted(reading.steps * _HUNDREDTH for reading in readings)
    in_time = sorted((reading.time_us, reading.steps) for reading in readings)
    limits = [-Fraction(10**9), *EDGES, Fraction(10**9)]
    return Spread(
        statistics.stdev(values) if len(values) > 1 else None,
        float(statistics.pvariance(values)),
        in_time[0][1] * _HUNDREDTH,
        in_time[-1][1] * _HUNDREDTH,
        tuple(sum(low <= value < high for value in values) for low, high in pairwise(limits)),
        values[(len(values) - 1) // 2],
        values[99 * (len(values) - 1) // 100],
        len(set(values)),
        tuple(values[::-1][:3]),
        any(values),
        all(values),
    )


def last_by_light(lines: Iterable[str], number: int) -> dict[tuple[str, str], Sums]:
    """Return the integers of the last humidities of each (light, device)."""
    held: dict[tuple[str, str], list[RecordedReading]] = defaultdict(list)
    for reading in readings_of(lines, "humidity", _TENTH):
        held[reading.light, reading.device].append(reading)
    return {at: sums(readings[-number:]) for at, readings in held.items()}


def of_file(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a reference file, numbers as int."""
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else path.open()  # noqa: SIM115
    with opened as file:
        return [{name: _plain(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _plain(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdecimal() else text


def written(folder: Path, lines: Sequence[str]) -> Path:
    """Write lines into a new file."""
    path = folder / "messages.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def speed(lines: Sequence[str], lasts_s: float) -> list[str]:
    """Return the arguments with which a replay of these lines takes so long."""
    first, last_ = (json.loads(line)["ts"] for line in (lines[0], lines[-1]))
    return ["--speed", f"{(last_ - first) / lasts_s:.3f}"]
