"""What an engine takes: readings, and outputs of devices' streams; both stand in cells.

A reading is there or was taken back, for good. An output is replaced by a newer version.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from lasp_edge.event import StreamItem
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.cells import (
    CELL_US,
    PRESENT,
    RETRACTED,
    CellId,
    Item,
    cell_of,
    made_id,
    made_item,
    tags_in,
)
from lasp_edge.ordered.deltas import Delta, compose_into
from lasp_edge.ordered.outputs import made_event
from lasp_edge.ordered.sent_outputs import OutputAt, OutputItem, event_of

InputCell = dict[Any, Any]
"""A `Cell` of items, or an `OutputCell`."""
PlacedCell = tuple[CellId, InputCell]
"""A cell, or a part of one, and where it belongs."""
TakenItem = StreamItem | OutputItem
Inputs = Mapping[str, Resolution | None]
"""By event the resolution; None for the outputs of a device's stream."""
_WHOLE: Final = Resolution("1")
"""Stands for the resolution of outputs, which have none."""


def taken_item(event: str, device: str, item: Any, state: Any) -> TakenItem:
    """Return what stands in a cell as an engine takes it."""
    if type(item) is OutputAt:
        return OutputItem(event, item, device, *state)
    time_us, value, tags = item
    return StreamItem(event, time_us, value, tags, device, state == RETRACTED)


def is_newer(state: Any, before: Any) -> bool:
    """Return whether what stands in a cell differs from what stood there; None: nothing did."""
    if before is None:
        return True
    return bool(state[0] > before[0] if type(state) is tuple else state > before)


def in_cells(taken: Iterable[TakenItem]) -> Iterator[tuple[CellId, list[TakenItem]]]:
    """Yield items with their cell: those together that follow each other and have the same one."""
    together: list[TakenItem] = []
    event = device = ""
    first_us = end_us = 0
    for each in taken:
        time_us = each.time_us
        if first_us <= time_us < end_us and each.device == device and each.event == event:
            together.append(each)
            continue
        if together:
            yield made_id((event, device, first_us)), together
        event, device, together = each.event, each.device, [each]
        first_us = cell_of(time_us)
        end_us = first_us + CELL_US
    if together:
        yield made_id((event, device, first_us)), together


def put_items(
    inputs: Inputs,
    where: CellId,
    cell: InputCell,
    taken: Iterable[TakenItem],
    delta: Delta,
    retracted: list[StreamItem],
) -> bool:
    """Put items into their cell, and how its event changes by that into `delta`.

    A reading that was present and is taken back goes to `retracted`. It is `Item.place` and
    `Item.event` of each item, without a call for any.

    Returns:
        Whether any is new.
    """
    event, device, _ = where
    resolution = inputs[event] or _WHOLE
    above, below = resolution.numerator, resolution.denominator
    known, labels, is_new = "", tags_in(""), False
    for each in taken:
        if type(each) is not StreamItem:
            assert isinstance(each, OutputItem)
            is_new |= _put_output(cell, each, delta)
            continue
        _, time_us, value, tags, _, is_taken_back = each
        item = made_item((time_us, value, tags))
        if is_taken_back:
            is_new |= _take_back(cell, item, each, resolution, delta, retracted)
            continue
        if item in cell:
            continue
        cell[item] = PRESENT
        is_new = True
        if tags != known:
            known, labels = tags, tags_in(tags)
        real = value if isinstance(value, str) else value * above / below
        made = made_event((event, real, time_us, device, labels, ""))
        delta[(time_us, device, (event, tags, value), ())] = (None, made)
    return is_new


def _take_back(
    cell: InputCell,
    item: Item,
    taken: StreamItem,
    resolution: Resolution,
    delta: Delta,
    retracted: list[StreamItem],
) -> bool:
    """Take a reading back, for good; return whether it was not taken back yet."""
    before = cell.get(item)
    if before == RETRACTED:
        return False
    cell[item] = RETRACTED
    if before is None:
        return True  # it came before what it takes back
    retracted.append(taken)
    place = item.place(taken.event, taken.device)
    if delta.pop(place, None) is None:  # else it came with what it takes back
        delta[place] = (item.event(taken.event, taken.device, resolution), None)
    return True


def _put_output(cell: InputCell, taken: OutputItem, delta: Delta) -> bool:
    _, at, device, version, content = taken
    known = cell.get(at)
    if known is not None and known[0] >= version:
        return False
    cell[at] = (version, content)
    before = None if known is None else event_of(at, device, known[1])
    compose_into(delta, {at.place(device): (before, event_of(at, device, content))})
    return True


def inserted_cells(inputs: Inputs, cells: Mapping[CellId, InputCell]) -> dict[str, Delta]:
    """Return the deltas that lead from nothing to what is present in cells, by event."""
    found: dict[str, Delta] = {event: {} for event in inputs}
    for at, cell in cells.items():
        insert_cell(inputs, at, cell, found[at.event])
    return found


def insert_cell(inputs: Inputs, at: CellId, cell: InputCell, delta: Delta) -> None:
    """Insert what is present in a cell of which nothing was there.

    It is `Item.place` and `Item.event` of each item, without a call for any.
    """
    event, device, _ = at
    resolution = inputs[event]
    if resolution is None:
        for here, (_, content) in cell.items():
            made = event_of(here, device, content)
            if made is not None:
                delta[here.place(device)] = (None, made)
        return
    above, below = resolution.numerator, resolution.denominator
    known, labels = None, tags_in("")
    for (time_us, value, tags), state in cell.items():
        if state != PRESENT:
            continue
        if tags != known:
            known, labels = tags, tags_in(tags)
        real = value if type(value) is str else value * above / below
        made = made_event((event, real, time_us, device, labels, ""))
        delta[(time_us, device, (event, tags, value), ())] = (None, made)
