"""Rows of a store in which streams stand, and their names."""

from typing import NamedTuple


class HistoryId(NamedTuple):
    """The name of what is kept of a stream for a time; names are ordered by time first."""

    at_us: int
    stream: int


class HistoryRow(NamedTuple):
    """What is kept of a stream: a cell of items or rows, or a cut; it goes to no sink.

    Attributes:
        end_us: until when it may be needed: below the floor, it is deleted.
        content: packed.
    """

    end_us: int
    content: bytes


class RowsPartId(NamedTuple):
    """The name of a part of the rows of a result's cell: later parts have greater numbers."""

    stream: int
    cell_us: int
    number: int
