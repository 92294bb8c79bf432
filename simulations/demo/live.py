"""What is seen of the demo: plain lines, and in a terminal a table that stays up to date below."""

import os
import shutil
from collections.abc import Iterable, Sequence
from math import ceil, log10
from typing import Any, NamedTuple, Self, TextIO

from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.plan import Plan
from simulations.demo.devices import Condition, Device, Report, Value

UNKNOWN = "-"
_MOST_DEVICES = 32
_IN_WORDS = {"mean": "average", "min": "minimum", "max": "maximum"}


class Measure(NamedTuple):
    """What of a program people are shown: the first part of its first fleet-wide value.

    Attributes:
        own: name of the device's own value.
        fleet: name of the fleet's.
        part: name of the part.
        decimals: how many of the part's decimals are shown.
        unit: such as "°C".
        keyed: there is a value for each key; how many keys there are is shown instead.
    """

    own: str
    fleet: str
    part: str
    decimals: int
    unit: str
    keyed: bool = False

    @classmethod
    def of(cls, plan: Plan) -> Self | None:
        """Return the measure of a program; None where it has no fleet-wide value."""
        for name, fold in plan.dynamic_folds.items():
            units = {e.unit for e in plan.events.values() if e.resolution == fold.resolution}
            unit = units.pop() if len(units) == 1 else ""
            part, places = fold.fold.parts[0], decimals(fold.resolution)
            return cls(fold.source.name, name, part, places, unit, fold.keyed)
        return None

    @property
    def word(self) -> str:
        """What is shown, in plain language."""
        return "keys" if self.keyed else in_words(self.part)

    def text(self, value: Value) -> str:
        """Return the value of the part with its unit, or how many keys have one."""
        if self.keyed:
            return f"{len(value.keys):,}"
        return f"{number(value.keys[''].parts.get(self.part), self.decimals)} {self.unit}".strip()


def in_words(part: str) -> str:
    """Return the name of a fold's part in plain language."""
    return _IN_WORDS.get(part, part)


def decimals(resolution: Resolution) -> int:
    """Return how many decimals show a step.

    >>> decimals(Resolution("0.01")), decimals(Resolution("0.5")), decimals(Resolution("10"))
    (2, 1, 0)
    """
    return max(0, ceil(-log10(resolution.exact)))


def number(value: Any, places: int) -> str:
    """Return a value for people; a user's fold may give other things than numbers.

    >>> number(12345.678, 1), number(7, 2), number(None, 2), number("calm", 2)
    ('12,345.7', '7', '-', 'calm')
    """
    if value is None:
        return UNKNOWN
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.{places}f}" if isinstance(value, float) else str(value)


def rows(devices: Iterable[Device], measure: Measure | None) -> list[tuple[str, ...]]:
    """Return the live table: a head, and a row of words for each device."""
    if measure is None:
        head: tuple[str, ...] = ("device", "samples", "still to send", "")
    else:
        own = f"its own {measure.word}"
        seen = "as it sees them" if measure.keyed else "as it sees it"
        fleet = f"the fleet's {measure.word}, {seen}"
        head = ("device", "samples", own, fleet, "agreed")
    return [head, *(_row(device, measure) for device in devices)]


def _row(device: Device, measure: Measure | None) -> tuple[str, ...]:
    report = device.report
    if report is None:
        cells = [UNKNOWN] * (2 if measure is None else 3)
        return (device.name, *cells, str(device.condition))
    samples = f"{report.accepted:,}"
    if measure is None:
        state = "" if device.condition is Condition.RUNNING else str(device.condition)
        return (device.name, samples, f"{report.dirty:,}", state)
    held = [report.values.get(name) for name in (measure.own, measure.fleet)]
    texts = [UNKNOWN if value is None else measure.text(value) for value in held]
    return (device.name, samples, *texts, _agreed(device, report, held[1]))


def _agreed(device: Device, report: Report, fleet: Value | None) -> str:
    if device.condition is not Condition.RUNNING:
        return str(device.condition)
    if not report.connected:
        return "no connection"
    if fleet is None or not fleet.settled:
        return "not yet"
    return f"yes, without {', '.join(fleet.absent)}" if fleet.absent else "yes"


def aligned(table: Sequence[Sequence[str]], left: Sequence[int] = (0, -1)) -> list[str]:
    """Return rows of equally many words as lines with aligned columns.

    The head is among the rows. The columns `left` are aligned to the left, the others to the right.

    >>> for line in aligned([("device", "samples", ""), ("pi-1", "1,204", "killed")]):
    ...     print(line)
    device  samples
    pi-1      1,204  killed
    """
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    on_left = {column % len(widths) for column in left}
    lines = []
    for row in table:
        cells = [
            word.ljust(width) if column in on_left else word.rjust(width)
            for column, (word, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


class Screen:
    """Where the demo writes.

    Args:
        out: the stream, such as standard output.
        is_terminal: whether lines can be taken back; by default what `out` says.
    """

    def __init__(self, out: TextIO, *, is_terminal: bool | None = None) -> None:
        if is_terminal is None:
            is_terminal = out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.is_terminal = is_terminal
        self._out = out
        self._shown: list[str] = []

    def say(self, *lines: str) -> None:
        """Write lines that stay, above the live part."""
        shown = self._erase()
        for line in lines:
            self._out.write(f"{line}\n")
        self._draw(shown)

    def show(self, lines: Sequence[str]) -> None:
        """Replace the live part on a terminal; write nothing into a file or a pipe."""
        if self.is_terminal:
            self._erase()
            self._draw(_fitting(lines))

    def _erase(self) -> list[str]:
        if self._shown:
            self._out.write(f"\x1b[{len(self._shown)}A\x1b[J")
        shown, self._shown = self._shown, []
        return shown

    def _draw(self, lines: list[str]) -> None:
        for line in lines:
            self._out.write(f"{line}\n")
        self._out.flush()
        self._shown = lines


def _fitting(lines: Sequence[str]) -> list[str]:
    """Return what fits in the window: a line that wraps could not be taken back."""
    size = shutil.get_terminal_size()
    most = max(2, size.lines - 2)
    fitting = [line[: size.columns - 1] for line in lines[:most]]
    if len(lines) > most:
        fitting[-1] = f"... and {len(lines) - most + 1} more"
    return fitting
