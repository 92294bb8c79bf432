"""Where the rows of each kind of result are, and the columns that they have beside the fold's."""

from typing import Final, NamedTuple

from lasp_edge.language.described import FOLD, RESULT, WINDOW
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
