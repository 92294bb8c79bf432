"""Output for people: aligned tables, and in a terminal lines that stay up to date."""

import os
from collections.abc import Sequence
from typing import Any, Final, TextIO

UNKNOWN: Final = "-"
_IN_WORDS: Final = {"mean": "average", "min": "minimum", "max": "maximum"}


def in_words(part: str) -> str:
    """Return the name of a fold's part in plain language."""
    return _IN_WORDS.get(part, part)


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


def ago(seconds: float) -> str:
    """Return a time that has passed, for people.

    >>> ago(4.2), ago(90), ago(7_300), ago(200_000)
    ('4 s', '90 s', '2 h', '2 days')
    """
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def lag(behind_s: float | None, newest: str = "newest") -> str:
    """Return how far a device is behind the others, for people.

    >>> lag(4.2), lag(0.3), lag(0.0), lag(None)
    ('4 s behind', '<1 s behind', 'newest', '-')
    """
    if behind_s is None:
        return UNKNOWN
    if not behind_s:
        return newest
    return f"{ago(behind_s) if behind_s >= 1 else '<1 s'} behind"


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
    """Where a command writes.

    Args:
        out: the stream, such as standard output.
        is_terminal: whether lines can be taken back; by default that of `out`.
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
    """Return the lines that fit in the window: one that wraps could not be taken back."""
    import shutil  # noqa: PLC0415 - with bz2 and lzma, which no agent needs

    size = shutil.get_terminal_size()
    most = max(2, size.lines - 2)
    fitting = [line[: size.columns - 1] for line in lines[:most]]
    if len(lines) > most:
        fitting[-1] = f"... and {len(lines) - most + 1} more"
    return fitting
