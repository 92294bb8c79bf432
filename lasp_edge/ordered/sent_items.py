"""Items as they travel: a pane entry for each cell of an event and device, and all are united.

Several lives of a device may each have a part of a cell, as a store may have been lost: no entry
takes the place of another one, and an item that one of them has taken back is taken back.

    >>> from lasp_edge.ordered.cells import PRESENT, RETRACTED
    >>> first, second = Item(1_000_000, 7, ""), Item(2_000_000, 8, "")
    >>> ours, theirs = {first: PRESENT, second: PRESENT}, {second: RETRACTED}
    >>> united([ours, theirs]) == {first: PRESENT, second: RETRACTED}
    True
    >>> form = ItemForm(text=False)
    >>> form.within_limits((packed(ours),)), form.within_limits((b"",))
    (True, False)
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain
from math import gcd
from typing import Any, NamedTuple

import msgpack

from crdts.plain import pack
from lasp_edge.event import tags_of_stream, tags_text, text_of_stream
from lasp_edge.folds.packed import MAX_BINARY_BYTES
from lasp_edge.ordered.cells import CELL_US, PRESENT, Cell, Item, packed, unpacked
from lasp_edge.protocol.lake_columns import ITEMS

_LIMIT = 2**62
_TEXT_BYTES = 1_024
"""Bytes of a reading that is a text, at most."""


def united(cells: Iterable[Mapping[Item, int]]) -> Cell:
    """Return the items of several cells: what one of them has taken back is taken back."""
    found: Cell = {}
    for cell in cells:
        for item, state in cell.items():
            found[item] = max(state, found.get(item, PRESENT))
    return found


class ItemForm(NamedTuple):
    """The form of a cell of items, as it travels; the items are texts, or else numbers in steps."""

    text: bool

    @property
    def columns_named(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return (ITEMS,)

    def within_limits(self, partial: Sequence[Any]) -> bool:
        """Return whether `partial`, which may hold anything, is a cell of items."""
        if len(partial) != 1 or type(partial[0]) is not bytes or len(partial[0]) > MAX_BINARY_BYTES:
            return False
        try:
            columns = msgpack.unpackb(partial[0])
            return pack(columns) == partial[0] and self._is_cell(columns, partial[0])
        except Exception:  # noqa: BLE001 - a stranger may send anything
            return False

    def _is_cell(self, columns: list[Any], data: bytes) -> bool:
        """Return whether columns are those of a cell: a look at them, and not at each item."""
        first_us, unit, steps, values, tags, numbers, retracted = columns
        lists = (first_us, steps, values, tags, numbers, retracted)
        if not {list}.issuperset(map(type, lists)) or len(first_us) != 1:
            return False
        if not {int}.issuperset(map(type, chain(first_us, [unit], steps, numbers, retracted))):
            return False
        count = len(steps) + 1
        if not self._are_values(values, count) or not _are_tags(tags, numbers, count):
            return False
        # Times in their greatest common step, or in 1 where all are one time.
        is_greatest = gcd(*steps) == 1 if any(steps) else unit == 1
        if unit < 1 or min(steps, default=1) < 0 or not is_greatest:
            return False
        last_us = first_us[0] + unit * sum(steps)
        is_one_cell = first_us[0] // CELL_US == last_us // CELL_US and abs(last_us) < _LIMIT
        are_numbers = not retracted or retracted == sorted({*retracted} & {*range(count)})
        if not is_one_cell or not are_numbers:
            return False
        # Where two are of one time, the order of all is looked at.
        return 0 not in steps or packed(unpacked(data)) == data

    def _are_values(self, values: Any, count: int) -> bool:
        """Return whether these are the values of a cell: texts, or the differences of numbers."""
        if len(values) != count:
            return False
        if self.text:
            return all(type(each) is str and len(each.encode()) <= _TEXT_BYTES for each in values)
        if not {int}.issuperset(map(type, values)):
            return False
        numbers = list(accumulate(values))
        return bool(min(numbers) > -_LIMIT and max(numbers) < _LIMIT)


def _are_tags(tags: Any, numbers: Any, count: int) -> bool:
    """Return whether these are the tags of a cell, and the number of that of each item."""
    if not {str}.issuperset(map(type, tags)) or not all(map(_are_canonical, tags)):
        return False
    if len(tags) == 1:
        return not numbers
    if tags != sorted({*tags}):
        return False
    return len(numbers) == count and {*numbers} == {*range(len(tags))}


@lru_cache(maxsize=4_096)
def _are_canonical(text: str) -> bool:
    tags = json.loads(tags_of_stream(text) or "{}")
    place = text.rpartition("\n")[0]
    is_canonical = all(type(each) is str for each in tags.values())
    return is_canonical and text_of_stream(place, tags_text(tags)) == text
