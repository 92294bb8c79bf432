"""What an engine takes: readings, and outputs of devices' streams; both stand in cells.

A reading is there or was taken back, for good. An output is replaced by a newer version.
"""

from collections.abc import Mapping
from typing import Any

from lasp_edge.event import StreamItem
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.cells import PRESENT, RETRACTED, CellId, made_item, tags_in
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


def put(
    inputs: Inputs, cell: InputCell, taken: TakenItem, delta: Delta, retracted: list[StreamItem]
) -> bool:
    """Put an item into its cell, and how its event changes by that into `delta`.

    Returns:
        Whether it is new. A reading that was present and is taken back goes to `retracted`.
    """
    if type(taken) is OutputItem:
        return _put_output(cell, taken, delta)
    assert isinstance(taken, StreamItem)
    event, time_us, value, tags, device, is_taken_back = taken
    item = made_item((time_us, value, tags))
    before = cell.get(item)
    if before == RETRACTED or (before == PRESENT and not is_taken_back):
        return False
    cell[item] = RETRACTED if is_taken_back else PRESENT
    if before is None and is_taken_back:
        return True  # it came before what it takes back
    place = item.place(event, device)
    if is_taken_back:
        retracted.append(taken)
        if delta.pop(place, None) is not None:
            return True  # it came with what it takes back
    resolution = inputs[event]
    assert resolution is not None
    made = item.event(event, device, resolution)
    delta[place] = (made, None) if is_taken_back else (None, made)
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
