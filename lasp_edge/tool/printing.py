"""Printing rows of results: CSV or JSON for programs, aligned columns for people.

CSV and JSON have numbers in full. People see values as finely as the event's step, since what is
finer is made by dividing.
"""

import argparse
import csv
import json
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lasp_edge.errors import UsageError
from lasp_edge.folds.numbers import Resolution, decimals
from lasp_edge.language.declarations import TEXT
from lasp_edge.language.described import ResultDefinition
from lasp_edge.language.shown_names import free_name, shown_names
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import COUNTED, COVERED, MOST_NAMES, NOT_PRINTED
from lasp_edge.tool.screen import aligned
from lasp_edge.tool.times import shown_time, typed_time

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
        program: of an agent's data directory, which does not hold what its rows mean.
    """

    name: str
    key: str | None = None
    since_us: int | None = None
    until_us: int | None = None
    as_of_us: int | None = None
    all_revisions: bool = False
    with_bytes: bool = False
    program: str | None = None


class FoundRows(NamedTuple):
    """Rows of a window or result.

    Attributes:
        columns: their names.
        rows: a value for each column.
        meaning: what they mean; None of several results in one table.
    """

    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]
    meaning: ResultDefinition | None = None


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
    follow = "print each row that is new or has changed, from the last hour on, or --since"
    parser.add_argument("--follow", action="store_true", help=follow)
    add_selection(parser, rows)


def add_selection(parser: argparse.ArgumentParser, rows: str) -> None:
    """Declare the arguments that choose rows by key and time; `rows` as for `add_choice`."""
    parser.add_argument("--key", help="only this key")
    for option, meaning in (
        ("--since", f"only {rows} then or later"),
        ("--until", f"only {rows} before then"),
        ("--as-of", "as they were when results were final up to then"),
    ):
        words = f"{meaning}: ISO 8601, in UTC unless it says otherwise"
        parser.add_argument(option, metavar="TIME", help=words)


def rows_wanted(arguments: argparse.Namespace) -> RowsWanted:
    """Return the choice of `add_choice` or `add_selection`, with the argument `name`.

    Raises:
        UsageError: a time cannot be read.
    """
    return RowsWanted(
        arguments.name,
        arguments.key,
        _time("--since", arguments.since),
        _time("--until", arguments.until),
        _time("--as-of", arguments.as_of),
        vars(arguments).get("all_revisions", False),
        vars(arguments).get("json", False),
        vars(arguments).get("program"),
    )


def _time(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else typed_time(text)
    except ValueError:
        raise UsageError(f"{option}: a time such as 2025-01-01T00:00:50, not {text!r}") from None


class RowPrinter:
    """Prints rows to stdout, with one head however often rows are added.

    Args:
        as_csv: for programs.
        as_json: the same, with every column.
        goes_on: more rows may come, so every column that one of them needs is there.
    """

    def __init__(
        self, *, as_csv: bool = False, as_json: bool = False, goes_on: bool = False
    ) -> None:
        self._as_csv, self._as_json, self._goes_on = as_csv, as_json, goes_on
        self._widest: list[str] = []

    def show(self, found: FoundRows) -> None:
        """Print rows; nothing for a missing value."""
        if self._as_json:
            for row in found.rows:
                plain = dict(zip(found.columns, row, strict=True))
                print(json.dumps(plain, default=_in_json))  # noqa: T201
        elif self._as_csv:
            self._show_csv(found)
        else:
            self._show_table(found)
        sys.stdout.flush()

    def _show_csv(self, found: FoundRows) -> None:
        printed = _printed(found.columns, NOT_PRINTED)
        writer = csv.writer(sys.stdout, lineterminator="\n")
        if not self._widest:
            self._widest = [found.columns[place] for place in printed]
            writer.writerow(self._widest)
        writer.writerows([_text(row[place]) for place in printed] for row in found.rows)

    def _show_table(self, found: FoundRows) -> None:
        columns, rows = found.columns, list(found.rows)
        printed, places = _printed(columns, NOT_PRINTED | _NOT_FOR_PEOPLE), _places(found.meaning)
        names = shown_names(columns, found.meaning)
        head = [names[columns[place]] for place in printed]
        lines = [
            [_shown(names, columns[place], row[place], places) for place in printed] for row in rows
        ]
        for name, cells in _missing(columns, rows, every=self._goes_on).items():
            head.append(free_name(name, head, "_devices"))
            for line, cell in zip(lines, cells, strict=True):
                line.append(cell)
        if not self._widest:
            lines.insert(0, head)
        if lines:
            table_words = [self._widest or head, *lines]
            print("\n".join(aligned(table_words, left=range(len(head)))[1:]))  # noqa: T201
            self._widest = [max(column, key=len) for column in zip(*table_words, strict=True)]


def _printed(columns: Sequence[str], hidden: Container[str]) -> list[int]:
    return [place for place, name in enumerate(columns) if name not in hidden]


def _places(meaning: ResultDefinition | None) -> dict[str, int]:
    """Return part -> decimals that show its step."""
    if meaning is None:
        return {}
    steps = meaning.steps or [meaning.resolution.text] * len(meaning.parts)
    of_numbers = zip(meaning.parts, steps, strict=True)
    return {part: decimals(Resolution(step)) for part, step in of_numbers if step != TEXT}


def _missing(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, every: bool
) -> dict[str, list[str]]:
    """Return the columns of missing devices that some row needs."""
    if "excluded" not in columns:
        return {}
    names, status = columns.index("excluded"), columns.index("status")
    counts = [columns.index(name) for name in COUNTED if name in columns]
    found: dict[str, list[str]] = {_WAITING_FOR: [], _WITHOUT: []}
    covered = columns.index(COVERED) if COVERED in columns else None
    parts = [covered is not None and row[covered] is False for row in rows]
    for row in rows:
        text = (row[names] or "").replace(",", ", ")
        more = max((row[at] or 0 for at in counts), default=0) - MOST_NAMES
        text += f" and {more:,} more" if more > 0 else ""
        is_open = row[status] == TENTATIVE
        found[_WAITING_FOR].append(text if is_open else "")
        found[_WITHOUT].append("" if is_open else text)
    shown = {name: cells for name, cells in found.items() if every or any(cells)}
    return shown | ({COVERED: ["no" if each else "" for each in parts]} if any(parts) else {})


def _in_json(value: Any) -> int | str:
    """Return a value that JSON does not know: an integer that a table holds as decimal, bytes."""
    return value.hex() if isinstance(value, bytes) else int(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def _shown(names: Mapping[str, str], column: str, value: Any, places: Mapping[str, int]) -> str:
    if names[column] != column and isinstance(value, int):
        return shown_time(value)
    if isinstance(value, float):
        return f"{value:.{places[column]}f}" if column in places else f"{value:.10g}"
    return _text(value)
