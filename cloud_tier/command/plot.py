"""Draw a window over time, of a lake, a gateway or an agent, into a PNG or SVG file.

There is a line for each key. It is dashed where a row is tentative, and broken where a window has
no readings. A point is at its window's end; times are those of this machine's zone.

  lasp-edge plot temperature_by_room --gateway ~/lasp/gateway -o week.png
  lasp-edge plot temperature_by_room --lake ./lake --since 2026-11-01 --key attic -o attic.svg
  lasp-edge plot by_room --data-dir ~/lasp/data --program house:program --part max -o day.png
"""

import argparse
from pathlib import Path

from cloud_tier.command.places import WINDOWS, add_place, find
from lasp_edge.errors import Exit
from lasp_edge.tool.printing import add_selection, rows_wanted
from lasp_edge.tool.signals import interrupts_end

SECTION = "windows of a fleet"
EXTRA = "lake"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("name", metavar="NAME", help="the window's name")
    add_place(parser, WINDOWS)
    add("-o", "--output", type=Path, metavar="FILE", help="what to write; its ending says the form"
        " (default: NAME.png)")  # fmt: skip
    add("--part", metavar="NAME", help="which part of the fold, or column (default: the first)")
    zone = "of the time axis, such as Europe/Berlin (default: this machine's)"
    add("--time-zone", metavar="ZONE", help=zone)
    add_selection(parser, "windows that start")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    with interrupts_end():
        from cloud_tier.command.chart import Chart  # noqa: PLC0415 - needs matplotlib

    file = arguments.output or Path(f"{arguments.name}.png")
    chart = Chart(file, arguments.part, arguments.time_zone)
    print(chart.draw(find(WINDOWS, arguments, rows_wanted(arguments))))  # noqa: T201
    return Exit.FINE
