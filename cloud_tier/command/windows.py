"""Print a window of the lake: one row for each key and start, as it stands now. No Spark needed.

Columns: key, start_us, end_us, one for each part of the fold and its integers (in steps of the
event's resolution), devices_in, devices_expected, status, revision; sorted by (key, start_us).
Windows are [start, end), microseconds since the epoch; without readings there is no row. The
values of a fold that is not built in are left empty; its integers are there. Binary columns
(sketches) are not printed; any Delta reader finds them in the table.
"""

import argparse

from cloud_tier.command import table
from cloud_tier.lake.reading import windows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", metavar="NAME", help="the window's name")
    table.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    return table.show(arguments, windows)
