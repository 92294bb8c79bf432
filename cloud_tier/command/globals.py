"""Print the fleet-wide values in a lake, without Spark.

They (dynamic folds) are printed as they stand now. Columns: name, key, one for each part of the
folds and their integers, devices_in, inputs, revision. Equal `inputs` mean that the value was made
from the same entries as on a device. A key that no device has any more, or only retired ones, stays
with 0 in `devices_in`. Binary columns (sketches) are printed by --json alone, as hexadecimal text.
"""

import argparse

import pyarrow as pa

from cloud_tier.command import table
from cloud_tier.lake.lake import Lake
from lasp_edge.errors import Exit
from lasp_edge.protocol.lake_columns import VALUE_RECORD

SECTION = "windows of a fleet"
EXTRA = "lake"
_LAST = tuple(name for name in VALUE_RECORD if name != "stream")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="one of them (default: all)")
    table.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    table.leave_pandas_out()
    lake = Lake(arguments.lake)
    names = [arguments.name] if arguments.name is not None else lake.value_names()
    found = [_read(lake, name, all_revisions=arguments.all_revisions) for name in names]
    if found:
        table.show(_together(found), as_csv=arguments.csv, as_json=arguments.json)
    return Exit.FINE


def _read(lake: Lake, name: str, *, all_revisions: bool) -> pa.Table:
    values = lake.values(name)
    return values.revisions() if all_revisions else values.current()


def _together(tables: list[pa.Table]) -> pa.Table:
    """Return one table of folds whose parts differ; a column that a fold lacks is null there."""
    together = pa.concat_tables(tables, promote_options="permissive")
    values = [name for name in together.column_names if name not in _LAST]
    return together.select([*values, *_LAST])
