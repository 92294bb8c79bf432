"""Printing Arrow tables: CSV for programs, aligned columns for people."""

import argparse
import csv
import sys
from typing import Any

import pyarrow as pa

from cloud_tier.lake.results import WindowRows
from cloud_tier.lake.rows import StreamRows
from cloud_tier.lake.times import read_time, shown_time
from lasp_edge.errors import UsageError

_NOT_PRINTED = frozenset({"excluded", "frontier"})
"""What a row records for whoever looks into the table itself."""
_NOT_FOR_PEOPLE = frozenset({"place"})
"""What only programs read."""


def add_lake_argument(parser: argparse.ArgumentParser) -> None:
    """Declare which lake a command reads."""
    parser.add_argument("--lake", required=True, metavar="DIR", help="the lake")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that commands have that print results."""
    add_lake_argument(parser)
    parser.add_argument("--csv", action="store_true", help="print comma-separated values")
    parser.add_argument(
        "--all-revisions",
        "--history",
        action="store_true",
        help="every revision, not only the current ones",
    )


def add_choice(parser: argparse.ArgumentParser, since: str) -> None:
    """Declare the arguments that say which rows with times are printed.

    Args:
        parser: of the command.
        since: the rows that have a time, and what they do then, such as "windows that start".
    """
    add_arguments(parser)
    parser.add_argument("--key", help="only this key")
    for option, meaning in (
        ("--since", f"only {since} then or later"),
        ("--until", f"only {since} before then"),
        ("--as-of", "as they were when results were final up to then"),
    ):
        words = f"{meaning}: ISO 8601, in UTC unless it says otherwise"
        parser.add_argument(option, metavar="TIME", help=words)


def show_chosen(rows: WindowRows | StreamRows, arguments: argparse.Namespace) -> None:
    """Print the rows that `add_choice` lets people choose.

    Raises:
        UsageError: a time cannot be read.
    """
    found = (rows.revisions if arguments.all_revisions else rows.current)(
        key=arguments.key,
        since=_time("--since", arguments.since),
        until=_time("--until", arguments.until),
        as_of=_time("--as-of", arguments.as_of),
    )
    show(found, as_csv=arguments.csv)


def _time(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else read_time(text)
    except ValueError:
        raise UsageError(f"{option}: a time such as 2025-01-01T00:00:50, not {text!r}") from None


def show(table: pa.Table, *, as_csv: bool) -> None:
    """Print a table to stdout; floats in full, nothing for a missing value, no bytes."""
    hidden = _NOT_PRINTED if as_csv else {*_NOT_PRINTED, *_NOT_FOR_PEOPLE}
    columns = [
        field.name
        for field in table.schema
        if field.name not in hidden and not pa.types.is_binary(field.type)
    ]
    rows = list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([list(map(_text, row)) for row in rows])
        return
    shown = [[_shown(*pair) for pair in zip(columns, row, strict=True)] for row in rows]
    lines = [[column.removesuffix("_us") for column in columns], *shown]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        print("  ".join(cells).rstrip())  # noqa: T201


def _text(value: Any) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def _shown(column: str, value: Any) -> str:
    if column.endswith("_us") and value is not None:
        return shown_time(value)
    return f"{value:.10g}" if isinstance(value, float) else _text(value)
