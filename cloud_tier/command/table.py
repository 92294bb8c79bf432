"""Printing Arrow tables: CSV or JSON for programs, aligned columns for people."""

import argparse
import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa

from cloud_tier.lake.results import TimedRows
from lasp_edge.language.described import ResultDefinition
from lasp_edge.tool.printing import FoundRows, RowPrinter, RowsWanted, add_printing_arguments


def add_lake_argument(parser: argparse.ArgumentParser) -> None:
    """Declare which lake a command reads."""
    parser.add_argument("--lake", required=True, metavar="DIR", help="the lake")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that commands have that print results."""
    add_lake_argument(parser)
    add_printing_arguments(parser)


def leave_pandas_out() -> None:
    """Have pyarrow not import pandas in this process, unless something asks for its frames.

    At the first conversion pyarrow imports it, where it is installed, to recognise its series: half
    of the time that a command takes, and 40 MB. No command converts any.
    """
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas)
        try:
            pa.array(())
        finally:
            sys.meta_path.remove(_NoPandas)


class _NoPandas(MetaPathFinder):
    """Finds no pandas."""

    @classmethod
    def find_spec(cls, fullname: str, *_: object) -> None:
        """Say that pandas is not installed; others are found elsewhere."""
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def show(table: pa.Table, *, as_csv: bool = False, as_json: bool = False) -> None:
    """Print a table to stdout; bytes only as JSON."""
    RowPrinter(as_csv=as_csv, as_json=as_json).show(printable(table, with_bytes=as_json))


def printable(
    table: pa.Table, *, with_bytes: bool, meaning: ResultDefinition | None = None
) -> FoundRows:
    """Return the columns of a table, those of bytes only where they are wanted, and its rows."""
    columns = [
        field.name for field in table.schema if with_bytes or not pa.types.is_binary(field.type)
    ]
    rows = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
    return FoundRows(columns, list(rows), meaning)


def chosen(rows: TimedRows, wanted: RowsWanted) -> FoundRows:
    """Return the columns and rows of a window or result that are wanted."""
    return printable(
        (rows.revisions if wanted.all_revisions else rows.current)(
            key=wanted.key,
            since=wanted.since_us,
            until=wanted.until_us,
            as_of=wanted.as_of_us,
        ),
        with_bytes=wanted.with_bytes,
        meaning=rows.meaning,
    )
