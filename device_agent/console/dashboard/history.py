"""The fleet's values of the last hours, in bounded memory.

A series holds at most `MOST_POINTS` points, none older than `SPAN_S`. When it is full its older
half loses every other point: the older, the coarser. A value that stays the same takes two points,
the first and the last time that it was seen, and a time without any message takes one.

    >>> history = History()
    >>> for at_s, value in enumerate([20.0, 20.0, 20.0, 21.5]):
    ...     history.note(("mean", "", "mean"), value, at_s, settled=True)
    >>> [series] = history.plain()
    >>> series["points"]
    [[0, 20.0, 1], [2, 20.0, 1], [3, 21.5, 1]]
"""

from itertools import pairwise
from typing import Any, NamedTuple

SPAN_S = 6 * 3_600
"""Seconds that are remembered."""
MOST_POINTS = 360
"""Points of a series: more than a chart has pixels for, apart."""
MOST_SERIES = 200
"""Series that are remembered: with all their points some 20 MB."""


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

    def plain(self) -> list[dict[str, Any]]:
        """Return all series as JSON has them; whether it was settled is 1, 0 or null."""
        return [
            {**name._asdict(), "points": [_row(point) for point in points]}
            for name, points in sorted(self._series.items())
        ]


def _row(point: Point) -> list[float | int | None]:
    return [point.at_s, point.value, None if point.settled is None else int(point.settled)]


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
