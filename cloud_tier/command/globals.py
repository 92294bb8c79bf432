"""Print the fleet-wide values (dynamic folds) of the lake, as they stand now. No Spark needed.

Columns: name, key, one for each part of the folds and their integers, devices_in, inputs, revision.
Equal `inputs` mean that the value was made from the same entries as on a device. A key that no
device has any more, or only retired ones, stays with 0 in `devices_in`. Binary columns (sketches)
are not printed; any Delta reader finds them in the table.
"""

import argparse

from cloud_tier.command import table
from cloud_tier.lake.reading import fleet_values


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="one of them (default: all)")
    table.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    return table.show(arguments, fleet_values)
