"""Print the rows of a window, of a lake, a gateway or an agent, without Spark.

There is one row for each key and start, as it stands now. Columns: key, start_us, end_us, one for
each part of the fold and its integers (in steps of the event's resolution), and how the row came
about, such as status, devices_in (those with readings of its key) and devices_expected (those of
the whole fleet that counted); sorted by (key, start_us). Devices that are missing are named at the
end for people: under `waiting_for` where a row is tentative (they have not sent all that belongs to
it, and others have), else under `without`. Windows are [start, end), microseconds since the epoch;
where no reading ever was there is no row. The values of a fold that is not built in are left empty;
its integers are there. The table for people has values as fine as the event's step; --csv
and --json have them in full, --json with every column, binary ones (sketches) as hexadecimal text.
No Spark is needed.

  lasp-edge windows temperature_by_room --lake ./lake --as-of '2025-01-01 00:00:50'
  lasp-edge windows temperature_by_room --gateway ~/lasp/gateway --follow
  lasp-edge windows temperature_by_room --data-dir ~/lasp/data --program greenhouse:program

`--as-of` prints the rows as they were when results were final up to that time (UTC) and no further.
"""

import argparse
from functools import partial

from cloud_tier.command.places import WINDOWS, add_place, find
from lasp_edge.tool.following import show
from lasp_edge.tool.printing import add_choice

SECTION = "windows of a fleet"
EXTRA = "lake"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", metavar="NAME", help="the window's name")
    add_place(parser, WINDOWS)
    add_choice(parser, "windows that start")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    return show(partial(find, WINDOWS, arguments), arguments)
