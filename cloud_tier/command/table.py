"""Printing Arrow tables: CSV for programs, aligned columns for people."""

import argparse
import csv
import sys
from typing import Any

import pyarrow as pa

from cloud_tier.lake.times import shown_time

_NOT_PRINTED = frozenset({"excluded", "frontier"})
"""What a window row records for whoever looks into the table itself."""


def add_lake_argument(parser: argparse.ArgumentParser) -> None:
    """Declare which lake a command reads."""
    parser.add_argument("--lake", required=True, metavar="DIR", help="the lake")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that commands have that print results."""
    add_lake_argument(parser)
    parser.add_argument("--csv", action="store_true", help="print comma-separated values")
    parser.add_argument(
        "--all-revisions", action="store_true", help="every revision, not only the current ones"
    )


def show(table: pa.Table, *, as_csv: bool) -> None:
    """Print a table to stdout; floats in full, nothing for a missing value, no bytes."""
    columns = [
        field.name
        for field in table.schema
        if field.name not in _NOT_PRINTED and not pa.types.is_binary(field.type)
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
