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
from cloud_tier.lake.times import read_time
from lasp_edge.errors import Exit, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("name", metavar="NAME", help="the window's name")
    table.add_arguments(parser)
    add("--key", help="only this key")
    for option, meaning in (
        ("--since", "only windows that start then or later"),
        ("--until", "only windows that start before then"),
        ("--as-of", "as they were when results were final up to then"),
    ):
        add(option, metavar="TIME", help=f"{meaning}: ISO 8601, in UTC unless it says otherwise")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    windows = Lake(arguments.lake).windows(arguments.name)
    found = (windows.revisions if arguments.all_revisions else windows.current)(
        key=arguments.key,
        since=_time("--since", arguments.since),
        until=_time("--until", arguments.until),
        as_of=_time("--as-of", arguments.as_of),
    )
    table.show(found, as_csv=arguments.csv)
    return Exit.FINE


def _time(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else read_time(text)
    except ValueError:
        raise UsageError(f"{option}: a time such as 2025-01-01T00:00:50, not {text!r}") from None
