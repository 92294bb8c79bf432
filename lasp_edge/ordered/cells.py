"""Items: the readings that streams are made from, in cells of ten seconds of an event and device.

An item is present, or it was retracted, and that is for good: a retraction that comes before its
reading takes it back, too. A cell is stored as columns: times in their greatest common step, each
less the one before, as values are, and tags by number.

    >>> cell = {Item(20_000_000, 2150, ""): PRESENT, Item(21_000_000, 2149, ""): RETRACTED}
    >>> unpacked(packed(cell)) == cell, len(packed(cell))
    (True, 24)
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from itertools import accumulate
from math import gcd
from operator import sub
from types import MappingProxyType
from typing import Any, NamedTuple

import msgpack

from crdts.plain import pack
from lasp_edge.event import Event, tags_of_stream
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.outputs import made_event
from lasp_edge.ordered.places import Place, Tie, reading_place

CELL_US = 10_000_000
"""Microseconds of a cell: what is written again with each commit of a reading in it."""
PRESENT, RETRACTED = 1, 2


class Item(NamedTuple):
    """A reading by its identity among those of its event: time, value and tags.

    Attributes:
        value: quantised, or a text.
        tags: as canonical text; before them what it came on (`lasp_edge.event.text_of_stream`).
    """

    time_us: int
    value: int | str
    tags: str

    def place(self, event: str, device: str) -> Place:
        """Return its place in the order."""
        return self.time_us, device, _tie(event, self.tags, self.value), ()

    def event(self, name: str, device: str, resolution: Resolution) -> Event[Any]:
        """Return it as scans see it."""
        value = self.value if isinstance(self.value, str) else resolution.real(self.value)
        return made_event((name, value, self.time_us, device, tags_in(self.tags), ""))


made_item: Callable[[Iterable[Any]], Item] = partial(tuple.__new__, Item)
"""Makes an item without the Python function of a NamedTuple."""


class CellId(NamedTuple):
    """A cell: its event, its device, and where it begins."""

    event: str
    device: str
    cell_us: int


made_id: Callable[[Iterable[Any]], CellId] = partial(tuple.__new__, CellId)
"""Makes a cell's name without the Python function of a NamedTuple."""


def cell_of(time_us: int) -> int:
    """Return where the cell of a time begins."""
    return time_us - time_us % CELL_US


Cell = dict[Item, int]
"""Item -> PRESENT or RETRACTED."""


def packed(cell: Cell) -> bytes:
    """Return the bytes of a cell."""
    items = sorted(cell)
    times_us, values, named = zip(*items, strict=True) if items else ((), (), ())
    steps = list(map(sub, times_us[1:], times_us))
    unit = gcd(*steps) or 1
    tags = sorted(set(named))
    columns = [
        times_us[:1],
        unit,
        [step // unit for step in steps],
        values if not items or isinstance(values[0], str) else _steps(values),
        tags,
        list(map(tags.index, named)) if len(tags) > 1 else [],
        [at for at, item in enumerate(items) if cell[item] == RETRACTED]
        if RETRACTED in cell.values()
        else [],
    ]
    return pack(columns)


def unpacked(data: bytes) -> Cell:
    """Return the cell that gave the bytes."""
    first_us, unit, steps, values, tags, numbers, retracted = msgpack.unpackb(data)
    if not first_us:
        return {}
    times_us = accumulate([step * unit for step in steps], initial=first_us[0])
    if not isinstance(values[0], str):
        values = accumulate(values)
    named = map(tags.__getitem__, numbers) if numbers else tags * (len(steps) + 1)
    found = list(map(made_item, zip(times_us, values, named, strict=True)))
    cell = dict.fromkeys(found, PRESENT)
    for at in retracted:
        cell[found[at]] = RETRACTED
    return cell


def _steps(values: tuple[int, ...]) -> list[int]:
    """Return numbers as the first one and differences, which are small."""
    return [values[0], *map(sub, values[1:], values)]


@lru_cache(maxsize=1_000)
def _tie(event: str, tags: str, value: int | str) -> Tie:
    """Return what tells readings of one time apart: one object for a value that comes again."""
    return reading_place(event, tags, value, 0)[2]


@lru_cache(maxsize=1_000)
def tags_in(text: str) -> Mapping[str, Any]:
    """Return the labels that the tags of an item hold."""
    text = tags_of_stream(text)
    return MappingProxyType(json.loads(text) if text else {})
