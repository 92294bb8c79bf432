"""Print the rows of a stream's result, of a lake, a gateway or one device, without Spark.

They are printed as they stand now. Columns: device, key, time_us, place, one for each part and its
integers (in steps), present, status, revision; of a --data-dir without device, place and integers;
sorted by (key, time_us). What was taken back is not printed, but for --history, where `present` is
false in its last row. The place, which --csv prints, is where a row stands among those of its
device: the texts are ordered as the rows are.

  lasp-edge results used --lake ./lake --as-of '2025-01-01 00:00:50'
  lasp-edge results used --lake ./lake --key kitchen --history
  lasp-edge results visits --gateway ~/lasp/gateway
  lasp-edge results used --data-dir ~/lasp/data --program water:program --follow

The first prints the rows as they were when results were final up to that time (UTC) and no further.
A gateway has the rows of streams over the whole fleet, which are of no device, each as it stands
now. With --follow what is taken back is printed as well.
"""

import argparse
from functools import partial

from cloud_tier.command.places import RESULTS, add_place, find
from lasp_edge.tool.following import show
from lasp_edge.tool.printing import add_choice

SECTION = "windows of a fleet"
EXTRA = "lake"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", metavar="NAME", help="the stream's name")
    add_place(parser, RESULTS)
    add_choice(parser, "rows that date from")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    return show(partial(find, RESULTS, arguments), arguments, takes_back=True)
