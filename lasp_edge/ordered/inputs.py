"""What an engine takes: readings, and outputs of devices' streams; both stand in cells.

A reading is there or was taken back, for good. An output is replaced by a newer version.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from lasp_edge.event import Event, StreamColumn, StreamItem
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
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.sent_outputs import OutputAt, OutputContent, OutputItem, event_of
from lasp_edge.ordered.sent_rows import Version

InputCell = dict[Any, Any]
"""A `Cell` of items, or an `OutputCell`."""
PlacedCell = tuple[CellId, InputCell]
"""A cell, or a part of one, and where it belongs."""
TakenItem = StreamItem | OutputItem
Inputs = Mapping[str, Resolution | None]
"""By event the resolution; None for the outputs of a device's stream."""


def is_newer(state: Any, before: Any) -> bool:
    """Return whether what stands in a cell differs from what stood there; None: nothing did."""
    if before is None:
        return True
    return bool(state[0] > before[0] if type(state) is tuple else state > before)


def in_cells(taken: Iterable[TakenItem]) -> Iterator[PlacedCell]:
    """Yield items in parts of cells, in their order: what comes twice is in two parts."""
    where, cell = made_id(("", "", 0)), InputCell()
    for each in taken:
        if type(each) is StreamItem:
            item: Any = made_item(each[1:4])
            state: Any = RETRACTED if each.retracted else PRESENT
        else:
            assert isinstance(each, OutputItem)
            item, state = each.at, (each.version, each.content)
        of = made_id((each.event, each.device, cell_of(each.time_us)))
        if of != where or item in cell:
            if cell:
                yield where, cell
            where, cell = of, {}
        cell[item] = state
    if cell:
        yield where, cell


def column_cells(columns: Iterable[StreamColumn]) -> Iterator[PlacedCell]:
    """Yield the readings of columns in parts of cells."""
    for event, device, tags, retracted, times_us, values in columns:
        readings = zip(times_us, values, repeat(tags))
        items = sorted(map(made_item, readings))
        state, start = RETRACTED if retracted else PRESENT, 0
        while start < len(items):
            cell_us = cell_of(items[start].time_us)
            stop = bisect_left(items, (cell_us + CELL_US,), start)
            yield made_id((event, device, cell_us)), dict.fromkeys(items[start:stop], state)
            start = stop


def put_cell(
    inputs: Inputs,
    where: CellId,
    cell: InputCell,
    came: InputCell,
    delta: Delta,
    retracted: list[StreamItem],
) -> bool:
    """Put what came into its cell, and how its event changes by that into `delta`.

    A reading that was present and is taken back goes to `retracted`. New readings go by columns.

    Returns:
        Whether anything is new.
    """
    event, device, _ = where
    resolution = inputs[event]
    if resolution is None and cell:
        return any([_put_output(cell, at, device, state, delta) for at, state in came.items()])  # noqa: C419 - all of them
    fresh = came
    if not cell.keys().isdisjoint(came):
        fresh = {item: state for item, state in came.items() if item not in cell}
    again = len(came) - len(fresh)
    back = [
        item
        for item, state in (came.items() if again else ())
        if state == RETRACTED and cell.get(item) == PRESENT
    ]
    cell.update(fresh)
    insert_cell(inputs, where, fresh, delta)
    for item in back:
        assert resolution is not None
        cell[item] = RETRACTED
        time_us, value, tags = item
        retracted.append(StreamItem(event, time_us, value, tags, device, retracted=True))
        place = item.place(event, device)
        if delta.pop(place, None) is None:  # else it came with what takes it back
            delta[place] = (item.event(event, device, resolution), None)
    return bool(fresh or back)


def _put_output(
    cell: InputCell,
    at: OutputAt,
    device: str,
    state: tuple[Version, OutputContent | None],
    delta: Delta,
) -> bool:
    known = cell.get(at)
    if known is not None and known[0] >= state[0]:
        return False
    cell[at] = state
    before = None if known is None else event_of(at, device, known[1])
    compose_into(delta, {at.place(device): (before, event_of(at, device, state[1]))})
    return True


def inserted_cells(inputs: Inputs, cells: Mapping[CellId, InputCell]) -> dict[str, Delta]:
    """Return the deltas that lead from nothing to what is present in cells, by event."""
    found: dict[str, Delta] = {event: {} for event in inputs}
    for at, cell in cells.items():
        insert_cell(inputs, at, cell, found[at.event])
    return found


def insert_cell(inputs: Inputs, at: CellId, cell: InputCell, delta: Delta) -> None:
    """Insert what is present in a cell, or in a part of one, of which nothing was there."""
    event, device, _ = at
    if inputs[event] is None:
        for here, (_, content) in cell.items():
            made = event_of(here, device, content)
            if made is not None:
                delta[here.place(device)] = (None, made)
        return
    places, events = columns_of(inputs, at, cell)
    delta.update(zip(places, zip(repeat(None), events)))  # noqa: B905 - endless


def columns_of(
    inputs: Inputs, at: CellId, cell: InputCell
) -> tuple[Iterable[Place], Iterable[Event[Any]]]:
    """Return places and events of the readings that are present in a cell.

    It is `Item.place` and `Item.event` of each item, by columns.
    """
    event, device, _ = at
    resolution = inputs[event]
    assert resolution is not None, "outputs of devices are no readings"
    items: Iterable[Item] = cell
    if RETRACTED in cell.values():
        items = [item for item, state in cell.items() if state == PRESENT]
    if not items:
        return (), ()
    times_us, values, tags = zip(*items, strict=True)
    alone = tags.count(tags[0]) == len(tags)
    labels = repeat(tags_in(tags[0])) if alone else map(tags_in, tags)
    above, below = resolution.numerator, resolution.denominator
    reals: Sequence[Any] = values
    if type(values[0]) is not str:
        reals = [value * above / below for value in values]
    devices, named = repeat(device), repeat(event)
    events = map(made_event, zip(named, reals, times_us, devices, labels, repeat("")))
    places = zip(times_us, devices, zip(named, tags, values), repeat(()))  # noqa: B905 - endless
    return places, events


def in_order(places: list[Place], events: list[Event[Any]]) -> tuple[list[Place], list[Event[Any]]]:
    """Return events, and their places, which differ, in the order of these."""
    ordered = sorted(places)
    if ordered != places:
        by_place = dict(zip(places, events, strict=True))
        events = [by_place[place] for place in ordered]
    return ordered, events
