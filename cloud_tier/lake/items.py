"""The items of a lake, in cells: what devices sent of their readings for an order over the fleet.

A row of `landing` or `lattice` holds what one life of a device had of a cell. Readings are united,
so it does not matter how many rows there are of it, or which is newer; of outputs of a device's
streams the newest row that has a place counts there.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa

from cloud_tier.lake.query import selected
from cloud_tier.lake.sqltext import within
from cloud_tier.lake.tables import PANE, LakeTables
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import cell_in
from lasp_edge.ordered.cells import CellId
from lasp_edge.ordered.inputs import InputCell
from lasp_edge.ordered.sent_items import united
from lasp_edge.ordered.sent_outputs import newest
from lasp_edge.protocol.lake_columns import ITEMS
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.protocol.spans import Span

Select = Callable[[str], pa.Table]
"""Returns what a query gives of `landing` or `lattice`, which it calls `source`."""


def cells_of(
    select: Select, plan: Plan, name: str, spans: Iterable[Span]
) -> Iterator[tuple[CellId, InputCell]]:
    """Yield the cells of an event, or of outputs of a stream, whose beginning lies in a span.

    Of all devices.
    """
    made = plan.item_streams.get(name)
    if made is None:
        return
    where = f"kind = '{PANE}' AND stream = {made.stream} AND {within('pane_us', spans)}"
    columns = f"device, pane_us, {ITEMS}, incarnation, nonce, seq"
    found = select(f"SELECT {columns} FROM source WHERE {where}")  # noqa: S608 - ours
    parts: dict[CellId, list[InputCell]] = {}
    rows = zip(*(each.to_pylist() for each in found.columns), strict=True)
    for device, pane_us, packed, *version in rows:
        cell = cell_in(made, packed, (version[0], version[1], version[2]))
        parts.setdefault(CellId(name, device, pane_us), []).append(cell)
    for at in sorted(parts):
        yield at, newest(parts[at]) if made.outputs else united(parts[at])


def stored_cells(
    tables: LakeTables, plan: Plan, name: str, until_us: int
) -> Iterator[tuple[CellId, InputCell]]:
    """Yield the cells of an event or stream that begin before a time, from both tables.

    Raises:
        NotFound: there is no such lake.
    """
    parts: dict[CellId, list[InputCell]] = {}
    for path in (tables.landing, tables.lattice):
        table = tables.table(path)
        if ITEMS not in {field.name for field in table.schema().fields}:
            continue  # no program with streams over the fleet has run on it
        spans = [Span(EARLIEST_PANE_US, until_us - 1)]
        for at, cell in cells_of(partial(selected, table), plan, name, spans):
            parts.setdefault(at, []).append(cell)
    for at in sorted(parts):
        yield at, newest(parts[at]) if plan.item_streams[name].outputs else united(parts[at])
