"""The fleet's values of the last hours, in bounded memory.

A series holds at most `MOST_POINTS` points, none older than `SPAN_S`. When it is full its older
half loses every other point: the older, the coarser. A value that stays the same takes two points,
the first and the last time that it was seen, and a time without any message takes one.

    >>> history = History()
    >>> for at_s, value in enumerate([20.0, 20.0, 20.0, 21.5]):
    ...     history.note(("mean", "", "mean"), value, at_s, settled=True)
    >>> [series] = history.plain().values()
    >>> series["points"]
    {'0': [20.0, 1], '2': [20.0, 1], '3': [21.5, 1]}
"""

import json
from itertools import groupby, islice, pairwise
from typing import Any, NamedTuple

SPAN_S = 6 * 3_600
"""Seconds that are remembered."""
MOST_POINTS = 360
"""Points of a series: more than a chart has pixels for, apart."""
MOST_SERIES = 200
"""Series that are remembered: with all their points some 20 MB."""
MOST_SHOWN = 6
"""Series of a value that a page gets, the first ones in the order of their keys."""


class SeriesName(NamedTuple):
    """The name of a value, its key ("" without keys) and its part."""

    value: str
    key: str
    part: str


class Point(NamedTuple):
    """A value at a time, in seconds since the epoch; None without any message."""

    at_s: float
    value: float | None
    settled: bool | None

    def equals(self, other: "Point") -> bool:
        """Return whether both have the same value, each at its time."""
        return self[1:] == other[1:]


class History:
    """The series of all values."""

    def __init__(self) -> None:
        self._series: dict[SeriesName, list[Point]] = {}

    def note(
        self, name: tuple[str, str, str], value: float, at_s: float, *, settled: bool | None
    ) -> None:
        """Note the present value."""
        series = SeriesName(*name)
        if series in self._series or len(self._series) < MOST_SERIES:
            _add(self._series.setdefault(series, []), Point(at_s, value, settled))

    def interrupt(self, at_s: float) -> None:
        """Note that no message arrives any more."""
        for points in self._series.values():
            _add(points, Point(at_s, None, None))

    def plain(self) -> dict[str, Any]:
        """Return the series that are shown, each point by its time, as [number, settled].

        The number is null without any message; settled is 1, 0 or null.
        """
        shown: dict[str, Any] = {}
        for _, series in groupby(sorted(self._series), key=lambda name: name.value):
            for name in islice(series, MOST_SHOWN):
                points = {
                    str(at_s): [value, None if settled is None else int(settled)]
                    for at_s, value, settled in self._series[name]
                }
                shown[json.dumps(name)] = {**name._asdict(), "points": points}
        return shown


def _add(points: list[Point], point: Point) -> None:
    if len(points) > 1 and point.equals(points[-1]) and point.equals(points[-2]):
        points.pop()
    points.append(point)
    if len(points) <= MOST_POINTS and points[0].at_s >= point.at_s - SPAN_S:
        return
    points[:] = [each for each in points if each.at_s >= point.at_s - SPAN_S]
    if len(points) > MOST_POINTS:
        half = len(points) // 2
        kept = [each for at, each in enumerate(points[:half]) if at % 2 == 0 or each.value is None]
        points[:half] = _without_repeated_gaps(kept)


def _without_repeated_gaps(points: list[Point]) -> list[Point]:
    later = [b for a, b in pairwise(points) if a.value is not None or b.value is not None]
    return [*points[:1], *later]
