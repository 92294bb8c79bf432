"""The header row of a table in a file, and what stands between its columns.

>>> header_of(["time;room;temperature"])
(['time', 'room', 'temperature'], ';')
"""

import csv
from collections.abc import Iterator
from typing import IO

SEPARATORS = (";", "\t", "|")
"""What may stand between the columns in place of commas, if the header has no comma."""


def header_of(lines: list[str]) -> tuple[list[str], str]:
    """Return the columns of a file's first line, and what stands between them.

    Args:
        lines: the line; none of an empty file.
    """
    columns, delimiter = next(csv.reader(lines), []), ","
    for other in SEPARATORS:
        if len(columns) == 1 and other in columns[0]:
            columns, delimiter = next(csv.reader(lines, delimiter=other)), other
    return columns, delimiter


def csv_records(file: IO[str]) -> Iterator[dict[str, str]]:
    """Yield each row by its columns."""
    columns, delimiter = header_of([file.readline()])
    yield from csv.DictReader(file, columns, delimiter=delimiter)
