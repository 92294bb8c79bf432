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
from typing import Any, NamedTuple

from lasp_edge.event import StreamItem, tags_of_stream, tags_text, text_of_stream
from lasp_edge.folds.packed import MAX_BINARY_BYTES
from lasp_edge.ordered.cells import CELL_US, PRESENT, Cell, Item, made_item, packed, unpacked
from lasp_edge.protocol.lake_columns import ITEMS

_LIMIT = 2**62
_TEXT_BYTES = 1_024
"""Bytes of a reading that is a text, at most."""


def item_of(taken: StreamItem) -> Item:
    """Return what a reading is within its event and device."""
    return made_item((taken.time_us, taken.value, taken.tags))


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
            cell = unpacked(partial[0])
            tags = {item.tags for item in cell}
            starts = {item.time_us // CELL_US for item in cell}
            is_item = all(_is_item(item, is_text=self.text) for item in cell)
            are_tags = all(map(_are_tags, tags))
            return is_item and are_tags and len(starts) == 1 and packed(cell) == partial[0]
        except Exception:  # noqa: BLE001 - a stranger may send anything
            return False


def _is_item(item: Item, *, is_text: bool) -> bool:
    time_us, value, _ = item
    if is_text:
        is_value = type(value) is str and len(value.encode()) <= _TEXT_BYTES
    else:
        is_value = type(value) is int and -_LIMIT < value < _LIMIT
    return is_value and type(time_us) is int and abs(time_us) < _LIMIT


def _are_tags(text: Any) -> bool:
    return type(text) is str and _are_canonical(text)


@lru_cache(maxsize=4_096)
def _are_canonical(text: str) -> bool:
    tags = json.loads(tags_of_stream(text) or "{}")
    place = text.rpartition("\n")[0]
    is_canonical = all(type(each) is str for each in tags.values())
    return is_canonical and text_of_stream(place, tags_text(tags)) == text
