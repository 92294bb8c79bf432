"""Where the rows of each kind of result are, and the columns that they have beside the fold's."""

from typing import Final, NamedTuple

import pyarrow as pa
from pyarrow import compute

from lasp_edge.language.described import FOLD, RESULT, WINDOW, ResultDefinition
from lasp_edge.protocol.lake_columns import (
    ROW_IDENTITY,
    ROW_RECORD,
    VALUE_IDENTITY,
    VALUE_RECORD,
)
from lasp_edge.protocol.window_rows import SERVED_BEFORE, SERVED_BEHIND


class Shape(NamedTuple):
    """Which table a kind of result is in, and its columns beside the fold's.

    Attributes:
        named: the column that holds the result's name.
        entry: the columns whose newest revision counts.
        before: the columns that stand before the values.
        after: the columns that stand behind them.
        time: the column of the rows' time; "" without one.
    """

    table: str
    named: str
    entry: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    time: str = ""


SHAPES: Final = {
    WINDOW: Shape(
        "windows", "window", ("key", "start_us"), SERVED_BEFORE, SERVED_BEHIND, "start_us"
    ),
    FOLD: Shape(
        "globals",
        "name",
        ("key",),
        tuple(VALUE_IDENTITY),
        tuple(name for name in VALUE_RECORD if name != "stream"),
    ),
    RESULT: Shape(
        "results",
        "result",
        ("time_us", "device", "place"),
        tuple(name for name in ROW_IDENTITY if name != "result"),
        tuple(name for name in ROW_RECORD if name != "stream"),
        "time_us",
    ),
}


def rows_of(meaning: ResultDefinition) -> str:
    """Return which rows of a result's name are of its present definition, as SQL text.

    Windows of another size or slide are made of the same stream.
    """
    where = f"stream = {meaning.stream}"
    if meaning.varies or not meaning.size_us:
        return where
    sizes = f"end_us - start_us = {meaning.size_us} AND start_us % {meaning.slide_us} = 0"
    return f"{where} AND {sizes}"


def are_rows_of(meaning: ResultDefinition, rows: pa.Table) -> pa.ChunkedArray:
    """Return for each of some rows what `rows_of` says."""
    found = compute.equal(rows.column("stream"), meaning.stream)
    if meaning.varies or not meaning.size_us:
        return found
    starts, slide_us = rows.column("start_us"), pa.scalar(meaning.slide_us)
    length_us = compute.subtract(rows.column("end_us"), starts)
    on_slide = compute.equal(compute.multiply(compute.divide(starts, slide_us), slide_us), starts)
    is_long = compute.equal(length_us, meaning.size_us)
    return compute.and_(found, compute.and_(is_long, on_slide))
