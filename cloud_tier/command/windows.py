"""Print the rows of a window, of a lake or of a gateway, without Spark.

There is one row for each key and start, as it stands now. Columns: key, start_us, end_us, one for
each part of the fold and its integers (in steps of the event's resolution), and how the row came
about, such as devices_in and status; sorted by (key, start_us). Devices that are missing are named
at the end for people: under `waiting_for` where a row is tentative (they have not sent all that
belongs to it, and others have), else under `without`. Windows are [start, end), microseconds since
the epoch; without readings there is no row. The values of a fold that is not built in are left
empty; its integers are there. --json has every column, binary ones (sketches) as hexadecimal text.
No Spark is needed.

  lasp-edge windows temperature_by_room --lake ./lake --as-of '2025-01-01 00:00:50'
  lasp-edge windows temperature_by_room --gateway ~/lasp/gateway

`--as-of` prints the rows as they were when results were final up to that time (UTC) and no further.
"""

import argparse

from lasp_edge.errors import Exit
from lasp_edge.tool.printing import FoundRows, RowsWanted, add_choice, rows_wanted, show_rows

SECTION = "windows of a fleet"
EXTRA = "lake"
ADDITIONS = "lasp_edge.windows"
"""The entry points of where else windows are kept: each finds the rows that are wanted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("name", metavar="NAME", help="the window's name")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--lake", metavar="DIR", help="the lake")
    where.add_argument("--gateway", metavar="DIR", help="the --data-dir of a gateway")
    add_choice(parser, "windows that start")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    wanted = rows_wanted(arguments)
    find = _in_lake if arguments.lake else _in_gateway
    columns, rows = find(arguments.lake or arguments.gateway, wanted)
    show_rows(columns, rows, as_csv=arguments.csv, as_json=arguments.json)
    return Exit.FINE


def _in_lake(root: str, wanted: RowsWanted) -> FoundRows:
    from cloud_tier.command.table import chosen  # noqa: PLC0415 - a Pi need not have Arrow
    from cloud_tier.lake.lake import Lake  # noqa: PLC0415

    return chosen(Lake(root).windows(wanted.name), wanted)


def _in_gateway(directory: str, wanted: RowsWanted) -> FoundRows:
    from importlib.metadata import entry_points  # noqa: PLC0415 - rarely needed

    (point,) = entry_points(group=ADDITIONS, name="gateway")
    found: FoundRows = point.load()(directory, wanted)
    return found
