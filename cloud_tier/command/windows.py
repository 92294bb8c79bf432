"""Print a window of a lake or of a gateway: one row for each key and start, as it stands now.

Columns: key, start_us, end_us, one for each part of the fold and its integers (in steps of the
event's resolution), devices_in, devices_expected, status, revision; sorted by (key, start_us).
Windows are [start, end), microseconds since the epoch; without readings there is no row. The
values of a fold that is not built in are left empty; its integers are there. Binary columns
(sketches) are not printed; any Delta reader finds them in a lake's table. No Spark is needed.

  lasp-edge windows temperature_by_room --lake ./lake --as-of '2025-01-01 00:00:50'
  lasp-edge windows temperature_by_room --gateway ~/lasp/gateway

`--as-of` prints the rows as they were when results were final up to that time (UTC) and no further.
"""

import argparse

from lasp_edge.errors import Exit, UsageError
from lasp_edge.tool.printing import FoundRows, RowsWanted, add_printing_arguments, show_rows
from lasp_edge.tool.times import read_time

ADDITIONS = "lasp_edge.windows"
"""The entry points of where else windows are kept: each finds the rows that are wanted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("name", metavar="NAME", help="the window's name")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--lake", metavar="DIR", help="the lake")
    where.add_argument("--gateway", metavar="DIR", help="the --data-dir of a gateway")
    add_printing_arguments(parser)
    add("--key", help="only this key")
    for option, meaning in (
        ("--since", "only windows that start then or later"),
        ("--until", "only windows that start before then"),
        ("--as-of", "as they were when results were final up to then"),
    ):
        add(option, metavar="TIME", help=f"{meaning}: ISO 8601, in UTC unless it says otherwise")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    wanted = RowsWanted(
        arguments.name,
        arguments.key,
        _time("--since", arguments.since),
        _time("--until", arguments.until),
        _time("--as-of", arguments.as_of),
        arguments.all_revisions,
    )
    find = _in_lake if arguments.lake else _in_gateway
    columns, rows = find(arguments.lake or arguments.gateway, wanted)
    show_rows(columns, rows, as_csv=arguments.csv)
    return Exit.FINE


def _in_lake(root: str, wanted: RowsWanted) -> FoundRows:
    from cloud_tier.command.table import printable  # noqa: PLC0415 - a Pi need not have Arrow
    from cloud_tier.lake.lake import Lake  # noqa: PLC0415

    windows = Lake(root).windows(wanted.name)
    return printable(
        (windows.revisions if wanted.all_revisions else windows.current)(
            key=wanted.key,
            since=wanted.since_us,
            until=wanted.until_us,
            as_of=wanted.as_of_us,
        )
    )


def _in_gateway(directory: str, wanted: RowsWanted) -> FoundRows:
    from importlib.metadata import entry_points  # noqa: PLC0415 - rarely needed

    (point,) = entry_points(group=ADDITIONS, name="gateway")
    found: FoundRows = point.load()(directory, wanted)
    return found


def _time(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else read_time(text)
    except ValueError:
        raise UsageError(f"{option}: a time such as 2025-01-01T00:00:50, not {text!r}") from None
