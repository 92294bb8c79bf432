"""Lines of the cost table: what was measured, by which way, and how the ways compare.

A benchmark gives its lines by `table(quick)`; ours comes first and its peers after it, measured in
the same run. A peer that is not installed gets a line that says so, and never fails the run.

>>> ours, peer = rates("sums", "sums/s", 10_000, {"ours": 0.01, "a bare loop": 0.002}, goal=5e5)
>>> quantity(ours.figure, ours.unit), ours.goal
('1 M sums/s', '>= 500 k sums/s: met')
>>> quantity(peer.figure, peer.unit), peer.shown_ratio
('5 M sums/s', '0.2x')
"""

import importlib.util
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

OURS = "lasp-edge"
MET, MISSED = ": met", ": NOT met"
"""How a goal in words ends, or goes on."""
WIDTHS = (13, 9, 16, 9)
WIDTH = 100


class Line(NamedTuple):
    """One line of the table.

    Attributes:
        what: what was measured, the same for all ways of one comparison.
        way: who did it.
        cpu_s: CPU seconds of the run; None where nothing was timed.
        figure: the rate, time or size; None where there is no such way.
        unit: of the figure; it tells whether more or less of it is better, see `rates`, `sizes`.
        ratio: how many times better ours is than this way; None on our own line.
        goal: what ours is to reach, and whether it does, in words.
        note: what has to be known to read the figure.
    """

    what: str
    way: str
    cpu_s: float | None = None
    figure: float | None = None
    unit: str = ""
    ratio: float | None = None
    goal: str = ""
    note: str = ""

    @property
    def shown_ratio(self) -> str:
        """The ratio to two digits, as in `2.5x`; empty for a line without a ratio."""
        return "" if self.ratio is None else f"{float(f'{self.ratio:.2g}'):,g}x"


def cpu_s(
    work: Callable[[Any], object], prepare: Callable[[], Any] = lambda: None, rounds: int = 5
) -> float:
    """Return the least CPU seconds of `work` over some rounds, each on what `prepare` gave.

    All threads of this process count, so a peer's own ones do too.
    """
    least = float("inf")
    for _ in range(rounds):
        given = prepare()
        before = time.process_time()
        work(given)
        least = min(least, time.process_time() - before)
    return max(least, 1e-9)  # a clock may tick too slowly to see it


def rates(
    what: str,
    unit: str,
    count: int,
    seconds: Mapping[str, float],
    *,
    goal: float | None = None,
    notes: Mapping[str, str] | None = None,
) -> Iterator[Line]:
    """Yield a line a way for `count` things done in some CPU seconds; ours is the first.

    More is better: `goal` is the least rate of ours. `seconds` and `notes` are by way.
    """
    ours = count / next(iter(seconds.values()))
    for at, (way, spent_s) in enumerate(seconds.items()):
        rate = count / spent_s
        ratio, words = (ours / rate, "") if at else (None, at_least(ours, goal, unit))
        yield Line(what, way, spent_s, rate, unit, ratio, words, (notes or {}).get(way, ""))


def times(
    what: str,
    seconds: Mapping[str, float],
    *,
    goal_s: float | None = None,
    notes: Mapping[str, str] | None = None,
) -> Iterator[Line]:
    """Yield a line a way for what took some CPU seconds; ours is the first, less is better."""
    for line in sizes(what, "s", seconds, goal=goal_s, notes=notes):
        yield line._replace(cpu_s=line.figure)


def sizes(
    what: str,
    unit: str,
    figures: Mapping[str, float],
    *,
    goal: float | None = None,
    notes: Mapping[str, str] | None = None,
) -> Iterator[Line]:
    """Yield a line a way for sizes; ours is the first, less is better.

    Arguments as for `rates`; `goal` is the greatest size that ours is to have.
    """
    ours = next(iter(figures.values()))
    for at, (way, size) in enumerate(figures.items()):
        ratio, words = (size / ours, "") if at else (None, at_most(ours, goal, unit))
        yield Line(what, way, None, size, unit, ratio, words, (notes or {}).get(way, ""))


def at_least(figure: float, goal: float | None, unit: str) -> str:
    """Return the goal in words, and whether `figure` reaches it."""
    if goal is None:
        return ""
    return f">= {quantity(goal, unit)}{MET if figure >= goal else MISSED}"


def at_most(figure: float, goal: float | None, unit: str) -> str:
    """Return the goal in words, and whether `figure` stays within it."""
    if goal is None:
        return ""
    return f"<= {quantity(goal, unit)}{MET if figure <= goal else MISSED}"


def quantity(figure: float | None, unit: str) -> str:
    """Return a figure for people: three digits, with a prefix for what is large or short.

    >>> quantity(1_034_567, "adds/s"), quantity(0.00251, "s"), quantity(275.0, "B")
    ('1.03 M adds/s', '2.51 ms', '275 B')
    """
    if figure is None:
        return "-"
    scales = ((1.0, ""), (1e-3, "m"), (1e-6, "µ")) if unit == "s" else ((1e6, "M"), (1e3, "k"))
    space = " " if len(unit) > 1 else ""  # kB, but M adds/s
    for scale, prefix in scales:
        if abs(figure) >= scale:
            return f"{figure / scale:.3g} {prefix}{space if prefix else ''}{unit}"
    return f"{figure:.3g} {unit}"


def missing(what: str, way: str, bring: str) -> Line:
    """Return the line of a peer that is not there; `bring` says how to get it."""
    return Line(what, way, note=f"skipped: {bring}")


def is_installed(module: str) -> bool:
    """Return whether `module` can be imported here."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the package that it is part of
        return False


def show(lines: Iterable[Line]) -> Iterator[str]:
    """Yield the table's lines of text: a block a comparison, its notes below it."""
    for what, block in groupby(lines, key=lambda line: line.what):
        yield what
        notes = []
        for line in block:
            notes += [f"{line.way}: {line.note}" if line.way else line.note] if line.note else []
            if not line.way:
                continue
            spent = "" if line.cpu_s is None else f"{line.cpu_s:.4f}"
            figure = quantity(line.figure, line.unit) if line.figure is not None else "-"
            ratio = f"({line.shown_ratio})" if line.ratio is not None else ""
            cells = (line.way, spent, figure, ratio)
            row = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS, strict=True))
            yield f"  {row}  {line.goal}".rstrip()
        for note in notes:
            yield from textwrap.wrap(note, WIDTH, initial_indent="    ", subsequent_indent="      ")


HEAD = "  " + "  ".join(
    f"{title:<{width}}"
    for title, width in zip(("way", "CPU s", "figure", "(ours)"), WIDTHS, strict=True)
)
