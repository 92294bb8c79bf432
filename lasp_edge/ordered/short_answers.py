"""Answers as they travel: without what all of them have alike.

A row of an entry of outputs is (time, tie, path, content). That of an answer is

    (time, device, name, tags, value, path, basis, made, incarnation, beats)

where device to value are the event in order; and that of what a device states of a cell is

    (number of the cell, bases, incarnation, beats)

Law: `long_row(short_row(row)) == row`, where what it is about is of a device or a cell.

    >>> tie = (OF_DEVICE + "desk", "end", '{"room":"attic"}', 1)
    >>> row = (20_000_000, tie, (1,), ("", (ANSWER, b"basis", (), 1, 3), "", ""))
    >>> short_row(row)
    (20000000, 'desk', 'end', ('room', 'attic'), 1, (1,), b'basis', (), 1, 3)
    >>> long_row(short_row(row)) == row
    True
"""

from typing import Any, Final

from lasp_edge.event import short_tags, tags_of_short
from lasp_edge.ordered.cells import CELL_US
from lasp_edge.ordered.places import OF_DEVICE, Tie

ANSWER: Final = "a"
"""What stands first in an answer."""
GONE_ON: Final = "g"
"""What stands first where a device states from which shares it has gone on."""
OF_CELL: Final[Tie] = (OF_DEVICE, "")
"""The tie of what is about a cell of events in order: no device has this name."""
_LONG: Final = 4
"""Parts of a long row."""
_READING: Final = 4
"""Parts of the tie of what is about a reading."""


def short_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row of an entry as it travels; one that is no answer and no statement stays."""
    time_us, tie, path, content = row
    if content is None or content[::3] != ("", "") or content[2] or type(content[1]) is not tuple:
        return row
    first, *rest = content[1]
    is_of_cell = (tie, path, time_us % CELL_US) == (OF_CELL, (), 0)
    if first == GONE_ON and is_of_cell and len(rest) == _LONG - 1 and type(rest[0]) is bytes:
        return time_us // CELL_US, *rest
    if first == ANSWER and len(tie) == _READING:
        of, name, tags, value = tie
        return time_us, of.removeprefix(OF_DEVICE), name, short_tags(tags), value, path, *rest
    return row


def long_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the row that `short_row` was given."""
    if len(row) == _LONG and type(row[1]) is bytes:
        number, *rest = row
        return number * CELL_US, OF_CELL, (), ("", (GONE_ON, *rest), "", "")
    if len(row) > _LONG:
        time_us, device, name, tags, value, path, *rest = row
        tie = (OF_DEVICE + device, name, tags_of_short(tags), value)
        return time_us, tie, path, ("", (ANSWER, *rest), "", "")
    return row
