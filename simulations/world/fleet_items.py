"""The items that have landed at a sink, and what the oracle takes of them.

A sink may lack readings that a device lost with its store; what it has is the union of all cells.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from device_agent.gateway.fleet_history import GatewayHistory
from lasp_edge.language.plan import Plan
from lasp_edge.ordered.cells import PRESENT, Cell, unpacked
from lasp_edge.ordered.deltas import Content
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.log import BEFORE_ALL_US
from simulations.world.landed import LandedState

_cell = lru_cache(maxsize=8_192)(unpacked)
ItemsByDevice = dict[str, Cell]


def landed_items(lander: LandedState, plan: Plan) -> dict[str, ItemsByDevice]:
    """Return event -> device -> the items that have landed: the union of all cells."""
    sent = plan.item_streams.items()
    events = {each.stream: event for event, each in sent if not each.outputs}
    found: dict[str, ItemsByDevice] = {event: {} for event in events.values()}
    for (stream, _, _, device, *_), (_, partial) in lander.panes.items():
        event = events.get(stream)
        if event is not None:
            content = partial[0]
            assert isinstance(content, bytes), "a cell of items"
            _join(found[event].setdefault(device, {}), _cell(content))
    return found


def joined(known: Cell, more: Cell) -> Cell:
    """Return the union of two cells: an item that was taken back stays so."""
    both = dict(known)
    _join(both, more)
    return both


def _join(known: Cell, more: Cell) -> None:
    """Put a cell into one that is being made."""
    for item, state in more.items():
        if state > known.get(item, 0):
            known[item] = state


def misread_items(
    lander: LandedState, plan: Plan, items: Mapping[str, ItemsByDevice]
) -> Iterator[str]:
    """Yield what a sink's streams do not read of its store as it has landed; see `landed_items`."""
    history = GatewayHistory(plan, lander.kept)
    for event, devices in items.items():
        read: ItemsByDevice = {}
        for at, cell in history.stored_cells(event, BEFORE_ALL_US, FOR_EVER_US):
            read.setdefault(at.device, {}).update(cell)
        for device, landed in devices.items():
            found = read.get(device, {})
            if found != landed:
                yield (
                    f"{lander.file}: of {len(landed)} items {event} of {device} that have landed "
                    f"its streams read {len(found)}"
                )


def content_of_items(
    plan: Plan, items: Mapping[str, ItemsByDevice], until_us: float
) -> dict[str, Content]:
    """Return what is present before a time, of all devices, as the oracle takes it."""
    return {
        event: {
            item.place(event, device): item.event(event, device, plan.events[event].resolution)
            for device, cell in devices.items()
            for item, state in cell.items()
            if state == PRESENT and item.time_us < until_us
        }
        for event, devices in items.items()
        if event in plan.events
    }
