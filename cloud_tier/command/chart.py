"""A chart of a window's rows: which lines there are, and how matplotlib draws them.

>>> day = [WindowPoint(10, 20.0, False), WindowPoint(20, 21.0, False), WindowPoint(30, 22.0, True)]
>>> later = [WindowPoint(60, 23.0, False)]
>>> for piece in pieces([*day, *later], slide_us=10):
...     print(piece.tentative, [point.value for point in piece.points])
False [20.0, 21.0]
True [21.0, 22.0]
False [23.0]
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import matplotlib as mpl
from dateutil.tz import tzlocal
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lasp_edge.errors import NotFound, UsageError
from lasp_edge.language.described import ResultDefinition
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.tool.printing import FoundRows
from lasp_edge.tool.screen import ago, in_words
from lasp_edge.units import SECOND_US

SIZE_INCHES: Final = (11.0, 5.0)
DOTS_PER_INCH: Final = 110
MOST_NAMED: Final = 20
"""Keys that the legend names; all of them have a line."""
_FEW_COLOURS, _MANY_COLOURS = "tab10", "turbo"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STYLE: Final = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dde3e0",
    "axes.edgecolor": "#55625f",
    "svg.fonttype": "none",  # a text stays a text
    "svg.hashsalt": "lasp-edge",  # the same rows, the same file
}


class WindowPoint(NamedTuple):
    """A window at its end, in microseconds since the epoch."""

    end_us: int
    value: float
    tentative: bool


class LinePiece(NamedTuple):
    """Points that are joined by one line; a single one is drawn as a dot."""

    tentative: bool
    points: list[WindowPoint]


def pieces(points: Sequence[WindowPoint], slide_us: int) -> Iterator[LinePiece]:
    """Yield the pieces of a line, which is broken where a window lacks.

    Args:
        points: in the order of their times.
        slide_us: the distance of two windows.
    """
    run: list[WindowPoint] = []
    for point in points:
        if run and point.end_us - run[-1].end_us > slide_us:
            yield from _styled(run)
            run = []
        run.append(point)
    if run:
        yield from _styled(run)


def _styled(run: list[WindowPoint]) -> Iterator[LinePiece]:
    if len(run) == 1:
        yield LinePiece(run[0].tentative, run)
    steps = [(a.tentative or b.tentative, a, b) for a, b in pairwise(run)]
    for tentative, group in groupby(steps, key=lambda step: step[0]):
        joined = list(group)
        yield LinePiece(tentative, [joined[0][1], *(b for _, _, b in joined)])


class Chart:
    """A file with a chart.

    Args:
        file: where it is written; its ending says the form.
        part: which part or column is drawn; None for the first part.
        zone: the name of the time axis's zone; None for this machine's.

    Raises:
        UsageError: there is no such form or zone.
    """

    def __init__(self, file: Path, part: str | None, zone: str | None) -> None:
        self._file, self._part, self._zone_name = file, part, zone
        self._zone: tzinfo = tzlocal()
        if zone is not None:
            try:
                self._zone = ZoneInfo(zone)
            except (KeyError, OSError, ValueError):
                raise UsageError(f"--time-zone: no zone {zone!r} on this machine") from None
        self._figure = Figure(SIZE_INCHES, dpi=DOTS_PER_INCH, layout="constrained")
        forms = self._figure.canvas.get_supported_filetypes()
        if file.suffix.removeprefix(".").lower() not in forms:
            few = "week.png or week.svg"
            raise UsageError(f"-o {file}: the ending says the form, as in {few}")

    def draw(self, found: FoundRows) -> str:
        """Write the file; return in words what is in it.

        Raises:
            CommandError: there is nothing to draw, or the file cannot be written.
        """
        meaning = found.meaning
        assert meaning is not None
        part = self._chosen_part(meaning)
        by_key = _points(found, part)
        if not any(by_key.values()):
            what = "no row fits" if not by_key else f"no row has a number as {part!r}"
            raise NotFound(f"nothing to draw of {meaning.name!r}: {what}")
        with mpl.rc_context(_STYLE):
            axes = self._figure.subplots()
            gaps = self._lines(axes, by_key, meaning.slide_us)
            self._label(axes, meaning, part, _is_in_unit(found, part))
            try:
                self._figure.savefig(self._file, metadata=_undated(self._file) or None)
            except OSError as error:
                raise UsageError(f"cannot write {self._file}: {error.strerror}") from None
            except ValueError as error:  # a form that nothing here writes
                raise UsageError(f"{self._file}: a .png or .svg is needed ({error})") from None
        return self._in_words(by_key, gaps)

    def _chosen_part(self, meaning: ResultDefinition) -> str:
        known = [each for each in meaning.value_columns if each not in meaning.binary]
        if self._part is not None and self._part not in known:
            raise UsageError(f"--part: {meaning.name} has {', '.join(known)}, not {self._part!r}")
        return self._part or known[0]

    def _lines(self, axes: Axes, by_key: dict[str, list[WindowPoint]], slide_us: int) -> int:
        """Draw a line for each key; return how many gaps there are."""
        colours = mpl.colormaps[_FEW_COLOURS if len(by_key) <= 10 else _MANY_COLOURS]  # noqa: PLR2004
        legend, gaps, is_open = [], 0, False
        for number, (key, points) in enumerate(by_key.items()):
            share = number if len(by_key) <= 10 else number / (len(by_key) - 1)  # noqa: PLR2004
            colour = colours(share)
            legend.append(Line2D([], [], color=colour, label=key or "(no key)"))
            for piece in pieces(points, slide_us):
                is_open |= piece.tentative
                axes.plot(
                    [_moment(point.end_us) for point in piece.points],
                    [point.value for point in piece.points],
                    color=colour,
                    linestyle="--" if piece.tentative else "-",
                    linewidth=1.0 if piece.tentative else 1.6,
                    alpha=0.6 if piece.tentative else 1.0,
                    marker="." if len(piece.points) == 1 else "",
                    gid=f"{key} {TENTATIVE if piece.tentative else 'final'}".strip(),
                )
            gaps += sum(b.end_us - a.end_us > slide_us for a, b in pairwise(points))
        _add_legend(axes, legend, is_open=is_open)
        return gaps

    def _label(
        self,
        axes: Axes,
        meaning: ResultDefinition,
        part: str,
        in_unit: bool,  # noqa: FBT001
    ) -> None:
        size, slide = (ago(each / SECOND_US) for each in (meaning.size_us, meaning.slide_us))
        axes.set_title(f"{meaning.name}: windows of {size}, every {slide}", loc="left")
        unit = f" ({meaning.unit})" if meaning.unit and in_unit else ""
        axes.set_ylabel(f"{in_words(part)}{unit}")
        locator = AutoDateLocator(tz=self._zone)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=self._zone))
        axes.set_xlabel(f"end of the window, {self._zone_name or 'local time'}")
        axes.margins(x=0.01)

    def _in_words(self, by_key: dict[str, list[WindowPoint]], gaps: int) -> str:
        times = [point.end_us for points in by_key.values() for point in points]
        first, last = (
            _moment(each).astimezone(self._zone).strftime("%Y-%m-%d %H:%M %Z")
            for each in (min(times), max(times))
        )
        keys = f"{len(by_key)} key{'' if len(by_key) == 1 else 's'}"
        broken = f", {gaps:,} gap{'' if gaps == 1 else 's'}" if gaps else ""
        return f"{self._file}: {len(times):,} windows of {keys}, {first} to {last}{broken}"


def _points(found: FoundRows, part: str) -> dict[str, list[WindowPoint]]:
    """Return key -> its points, in the order of their times; rows without a number are gaps."""
    by_key: dict[str, list[WindowPoint]] = defaultdict(list)
    for values in found.rows:
        row = dict(zip(found.columns, values, strict=True))
        points = by_key[row["key"]]
        if row[part] is not None and math.isfinite(row[part]):
            points.append(WindowPoint(row["end_us"], float(row[part]), row["status"] == TENTATIVE))
    return {key: sorted(points) for key, points in sorted(by_key.items())}


def _is_in_unit(found: FoundRows, part: str) -> bool:
    """Return whether a part is in the unit of the samples: a mean is, and a count is not."""
    assert found.meaning is not None
    at = list(found.columns).index(part)
    of_part: Iterable[Any] = (row[at] for row in found.rows)
    return part in found.meaning.parts and any(isinstance(each, float) for each in of_part)


def _add_legend(axes: Axes, legend: list[Line2D], *, is_open: bool) -> None:
    more = len(legend) - MOST_NAMED
    named = legend[:MOST_NAMED] if len(legend) > 1 or legend[0].get_label() != "(no key)" else []
    if more > 0:
        named.append(Line2D([], [], linestyle="", label=f"and {more} more"))
    if is_open:
        dashed = Line2D([], [], color="#55625f", linestyle="--", linewidth=1.0, label="tentative")
        named.append(dashed)
    if named:
        axes.legend(handles=named, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _moment(time_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_us)


def _undated(file: Path) -> dict[str, None]:
    """Return the metadata without the time of drawing, where a form would have it."""
    return {"Date": None} if file.suffix.lower() == ".svg" else {}
