"""Print a window of the lake: one row for each key and start, as it stands now. No Spark needed.

Columns: key, start_us, end_us, one for each part of the fold and its integers (in steps of the
event's resolution), devices_in, devices_expected, status, revision; sorted by (key, start_us).
Windows are [start, end), microseconds since the epoch; without readings there is no row. The
values of a fold that is not built in are left empty; its integers are there. Binary columns
(sketches) are not printed; any Delta reader finds them in the table.

  lasp-edge windows temperature_by_room --lake ./lake --as-of '2025-01-01 00:00:50'

prints the rows as they were when results were final up to that time (UTC) and no further.
"""

import argparse

from cloud_tier.command import table
from cloud_tier.lake.lake import Lake
from lasp_edge.errors import Exit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", metavar="NAME", help="the window's name")
    table.add_choice(parser, "windows that start")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    table.show_chosen(Lake(arguments.lake).windows(arguments.name), arguments)
    return Exit.FINE
