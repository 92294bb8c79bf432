"""The options about waiting: for which devices, and how long; alike for gateways and lakes."""

import argparse
from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from lasp_edge.errors import UsageError
from lasp_edge.protocol.limits import NEVER, NEVER_US
from lasp_edge.protocol.waiting import (
    DEAD_AFTER_US,
    DEAD_AFTER_WITH_X_US,
    WaitingWindow,
    waits_of,
)
from lasp_edge.units import SECOND_US

_MOST: Final = {"seconds": 10**9, "days": 10**5}
"""The most of an option: thirty years, and as many days as their microseconds have room for."""


class Patience(NamedTuple):
    """The times for which a sink waits.

    Attributes:
        dead_after_us: for a device that is silent.
        tentative_after_us: before a window that is not final is shown; a window may have its own.
        waits: the same for each window by name.
    """

    dead_after_us: int
    tentative_after_us: int
    waits: dict[str, int]

    @classmethod
    def of(cls, arguments: argparse.Namespace, windows: Iterable[WaitingWindow] = ()) -> Self:
        """Return the choice of `add_patience_arguments`.

        Raises:
            UsageError: it is no time.
        """
        tentative_us = wait_us("--tentative-after", arguments.tentative_after)
        waits = waits_of(windows, tentative_us)
        has_x = tentative_us > 0 or any(waits.values())
        dead_us = DEAD_AFTER_WITH_X_US if has_x else DEAD_AFTER_US
        need_numbers(arguments, "--dead-after")
        if arguments.dead_after is not None:
            dead_us = round(arguments.dead_after * SECOND_US)
        return cls(dead_us, tentative_us, waits)

    @property
    def tick_us(self) -> int:
        """The longest time between two looks at the clock."""
        waits_us = (max(span_us // 4, SECOND_US) for span_us in self.waits.values() if span_us)
        return min([self.dead_after_us // 4, *waits_us])

    def in_words(self) -> str:
        """Return the waiting times for people; "" if no window waits."""
        if not any(self.waits.values()):
            return ""
        usual = _when(self.tentative_after_us)
        own = [
            f"{name} {_when(span_us)}"
            for name, span_us in self.waits.items()
            if span_us != self.tentative_after_us
        ]
        text = f"windows that wait for devices are shown {'; '.join([usual, *own])}"
        return f"{text}; devices are waited for {_seconds(self.dead_after_us)}"


def add_waiting_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare for whom windows wait, and for how long."""
    parser.add_argument(
        "--roster",
        type=lambda text: tuple(name for name in text.split(",") if name),
        metavar="A,B,..",
        help="the devices that are waited for (default: whichever were heard)",
    )
    add_patience_arguments(parser)


def add_patience_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare for how long windows wait."""
    add = parser.add_argument
    dead = "a device that is silent for longer is not waited for (default: 600; with "
    add("--dead-after", type=float, metavar="S", help=f"{dead}--tentative-after a day, 86400)")
    tentative = (
        "show a window that waits for devices as tentative when the first of them has been done "
        f"with it for S seconds; `{NEVER}`: wait for all (default: 0, show it at once)"
    )
    add("--tentative-after", default="0", metavar="S", help=tentative)


def need_numbers(arguments: argparse.Namespace, *options: str) -> None:
    """Check options that are seconds, or days where their names end so; None is not given.

    Raises:
        UsageError: one is below 0, too great, or no number.
    """
    for option in options:
        value = getattr(arguments, option.removeprefix("--").replace("-", "_"))
        most = _MOST["days" if option.endswith("-days") else "seconds"]
        if value is not None and not 0 <= value <= most:
            raise UsageError(f"{option}: a number from 0 to {most:,}, not {value:g}")


def wait_us(option: str, text: str) -> int:
    """Return seconds that were written, or `never`, in microseconds.

    Raises:
        UsageError: they are neither.
    """
    if text == NEVER:
        return NEVER_US
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _MOST["seconds"]:
        most = f"{_MOST['seconds']:,}"
        raise UsageError(f"{option}: a number from 0 to {most}, or `{NEVER}`, not {text!r}")
    return round(seconds * SECOND_US)


def _when(span_us: int) -> str:
    if span_us >= NEVER_US:
        return "when they are final"
    return f"as tentative after {_seconds(span_us)}" if span_us else "at once"


def _seconds(span_us: int) -> str:
    return f"{span_us / SECOND_US:g} s"
