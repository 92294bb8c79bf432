"""Printing rows of results: CSV or JSON for programs, aligned columns for people."""

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from lasp_edge.errors import UsageError
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import COUNTED, MOST_NAMES, NOT_PRINTED
from lasp_edge.tool.screen import aligned
from lasp_edge.tool.times import read_time, shown_time

_NOT_FOR_PEOPLE = frozenset({"place"})
"""Columns that only programs read."""
_WAITING_FOR, _WITHOUT = "waiting_for", "without"
"""Columns with the devices that are missing in a row: some will deliver, others may not."""


class RowsWanted(NamedTuple):
    """Which rows of a window or result are to be printed.

    Attributes:
        name: the window's or the result's.
        key: only this key; None for all.
        since_us: only windows that start, and rows that were made, then or later.
        until_us: only windows that start, and rows that were made, before.
        as_of_us: as they were when results were final up to then.
        all_revisions: not only the current ones.
        with_bytes: with the columns of bytes, which only JSON has.
    """

    name: str
    key: str | None
    since_us: int | None
    until_us: int | None
    as_of_us: int | None
    all_revisions: bool
    with_bytes: bool = False


FoundRows = tuple[Sequence[str], Iterable[Sequence[Any]]]
"""The names of the columns, and the rows."""


def add_printing_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how rows are printed, and which of them."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print comma-separated values")
    every = "print a JSON object for each row, with every column; bytes are hexadecimal"
    form.add_argument("--json", action="store_true", help=every)
    parser.add_argument(
        "--all-revisions",
        "--history",
        action="store_true",
        help="every revision, not only the current ones",
    )


def add_choice(parser: argparse.ArgumentParser, rows: str) -> None:
    """Declare the arguments that choose rows by time, and how they are printed.

    Args:
        parser: of the command.
        rows: the noun and verb of a row's time, such as "windows that start".
    """
    add_printing_arguments(parser)
    parser.add_argument("--key", help="only this key")
    for option, meaning in (
        ("--since", f"only {rows} then or later"),
        ("--until", f"only {rows} before then"),
        ("--as-of", "as they were when results were final up to then"),
    ):
        words = f"{meaning}: ISO 8601, in UTC unless it says otherwise"
        parser.add_argument(option, metavar="TIME", help=words)


def rows_wanted(arguments: argparse.Namespace) -> RowsWanted:
    """Return the choice of `add_choice`, with the argument `name`.

    Raises:
        UsageError: a time cannot be read.
    """
    return RowsWanted(
        arguments.name,
        arguments.key,
        _time("--since", arguments.since),
        _time("--until", arguments.until),
        _time("--as-of", arguments.as_of),
        arguments.all_revisions,
        with_bytes=arguments.json,
    )


def _time(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else read_time(text)
    except ValueError:
        raise UsageError(f"{option}: a time such as 2025-01-01T00:00:50, not {text!r}") from None


def show_rows(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    as_csv: bool = False,
    as_json: bool = False,
) -> None:
    """Print rows to stdout; floats in full, nothing for a missing value.

    Args:
        columns: the names.
        rows: a value for each column.
        as_csv: for programs.
        as_json: the same, with every column.
    """
    if as_json:
        for row in rows:
            print(json.dumps(dict(zip(columns, row, strict=True)), default=_in_json))  # noqa: T201
        return
    hidden = NOT_PRINTED if as_csv else NOT_PRINTED | _NOT_FOR_PEOPLE
    printed = [place for place, name in enumerate(columns) if name not in hidden]
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([columns[place] for place in printed])
        writer.writerows([_text(row[place]) for place in printed] for row in rows)
        return
    rows = list(rows)
    lines = [[columns[place].removesuffix("_us") for place in printed]]
    lines += [[_shown(columns[place], row[place]) for place in printed] for row in rows]
    for name, cells in _missing(columns, rows).items():
        for line, cell in zip(lines, [name, *cells], strict=True):
            line.append(cell)
    print("\n".join(aligned(lines, left=range(len(lines[0])))))  # noqa: T201


def _missing(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[str]]:
    """Return the columns that name devices which are missing, as far as some row misses one."""
    if "excluded" not in columns:
        return {}
    names, status = columns.index("excluded"), columns.index("status")
    counts = [columns.index(name) for name in COUNTED if name in columns]
    found: dict[str, list[str]] = {_WAITING_FOR: [], _WITHOUT: []}
    for row in rows:
        text = (row[names] or "").replace(",", ", ")
        more = max((row[at] or 0 for at in counts), default=0) - MOST_NAMES
        text += f" and {more:,} more" if more > 0 else ""
        is_open = row[status] == TENTATIVE
        found[_WAITING_FOR].append(text if is_open else "")
        found[_WITHOUT].append("" if is_open else text)
    return {name: cells for name, cells in found.items() if any(cells)}


def _in_json(value: Any) -> int | str:
    """Return a value that JSON does not know: an integer that a table holds as decimal, bytes."""
    return value.hex() if isinstance(value, bytes) else int(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def _shown(column: str, value: Any) -> str:
    if column.endswith("_us") and value is not None:
        return shown_time(value)
    return f"{value:.10g}" if isinstance(value, float) else _text(value)
