"""The items of a lake, in cells: what devices sent of their readings for an order over the fleet.

A row of `landing` or `lattice` holds what one life of a device had of a cell. They are united, so
it does not matter how many rows there are of it, or which is newer.
"""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from cloud_tier.lake.sqltext import within
from cloud_tier.lake.tables import PANE
from lasp_edge.language.plan import Plan
from lasp_edge.ordered.cells import Cell, CellId, unpacked
from lasp_edge.ordered.sent_items import united
from lasp_edge.protocol.lake_columns import ITEMS
from lasp_edge.protocol.spans import Span

Select = Callable[[str], pa.Table]
"""Returns what a query gives of `landing` or `lattice`, which it calls `source`."""


def cells_of(
    select: Select, plan: Plan, event: str, spans: Iterable[Span]
) -> Iterator[tuple[CellId, Cell]]:
    """Yield the cells of an event, of all devices, whose beginning lies in one of the spans."""
    made = plan.item_streams.get(event)
    if made is None:
        return
    where = f"kind = '{PANE}' AND stream = {made.stream} AND {within('pane_us', spans)}"
    found = select(f"SELECT device, pane_us, {ITEMS} FROM source WHERE {where}")  # noqa: S608 - ours
    parts: dict[CellId, list[Cell]] = {}
    for device, pane_us, packed in zip(*(each.to_pylist() for each in found.columns), strict=True):
        parts.setdefault(CellId(event, device, pane_us), []).append(unpacked(packed))
    for at in sorted(parts):
        yield at, united(parts[at])
