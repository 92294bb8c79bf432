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


class ResultRowId(NamedTuple):
    """The name of a row of a result: its stream, its time, and what tells it from others then."""

    stream: int
    at_us: int
    name: str
