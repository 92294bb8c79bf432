"""Print the rows of a stream's result in a lake, without Spark.

They are printed as they stand now. Columns: device, key, time_us, place, one for each part and its
integers (in steps), present, status, revision; sorted by (key, time_us). What was taken back is not
printed, but for --history, where `present` is false in its last row. The place, which --csv prints,
is where a row stands among those of its device: the texts are ordered as the rows are.

  lasp-edge results used --lake ./lake --as-of '2025-01-01 00:00:50'
  lasp-edge results used --lake ./lake --key kitchen --history

The first prints the rows as they were when results were final up to that time (UTC) and no further.
"""

import argparse

from cloud_tier.command import table
from cloud_tier.lake.lake import Lake
from lasp_edge.errors import Exit
from lasp_edge.tool.printing import add_choice, rows_wanted, show_rows

SECTION = "windows of a fleet"
EXTRA = "lake"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", metavar="NAME", help="the stream's name")
    table.add_lake_argument(parser)
    add_choice(parser, "rows that date from")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    wanted = rows_wanted(arguments)
    columns, rows = table.chosen(Lake(arguments.lake).results(wanted.name), wanted)
    show_rows(columns, rows, as_csv=arguments.csv, as_json=arguments.json)
    return Exit.FINE
