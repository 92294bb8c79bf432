"""Printing rows: CSV for programs, aligned columns for people."""

import argparse
import csv
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cloud_tier.lake.reading import Table
from cloud_tier.lake.tables import LakeTables
from lasp_edge.errors import Exit

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that every reading command has."""
    parser.add_argument("--lake", required=True, metavar="DIR", help="the lake")
    parser.add_argument("--csv", action="store_true", help="print comma-separated values")
    parser.add_argument(
        "--all-revisions", action="store_true", help="every revision, not only the current ones"
    )


def show(arguments: argparse.Namespace, read: Callable[..., Table]) -> int:
    """Print what the lake holds under the name that was asked for; return the exit code.

    Args:
        arguments: those of `add_arguments`, and `name`.
        read: takes the lake, the name and `all_revisions`; gives the table.
    """
    lake = LakeTables(arguments.lake)
    found = read(lake, arguments.name, all_revisions=arguments.all_revisions)
    _write(found.columns, found.rows, as_csv=arguments.csv)
    return Exit.FINE


def _write(columns: Sequence[str], rows: Sequence[dict[str, Any]], *, as_csv: bool) -> None:
    """Print rows to stdout; floats in full, nothing for a missing value."""
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([[_text(row.get(column)) for column in columns] for row in rows])
        return
    shown = [[_shown(column, row.get(column)) for column in columns] for row in rows]
    table = [[column.removesuffix("_us") for column in columns], *shown]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        print("  ".join(cells).rstrip())  # noqa: T201


def _text(value: Any) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def _shown(column: str, value: Any) -> str:
    if column.endswith("_us") and value is not None:
        moment = _EPOCH + timedelta(microseconds=value)
        return moment.isoformat(sep=" ").removesuffix("+00:00")
    return f"{value:.10g}" if isinstance(value, float) else _text(value)
