"""What a device's store holds of scans with local events: the places of gateways, too."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from lasp_edge.evaluation.history import Read, StreamHistory
from lasp_edge.evaluation.stored import HistoryId, HistoryRow
from lasp_edge.language.halves import parted_scans, shares_of, shares_stream
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET
from lasp_edge.ordered.cells import CELL_US, CellId
from lasp_edge.ordered.inputs import InputCell
from lasp_edge.ordered.item_store import BLOCK_US
from lasp_edge.ordered.parted import sent_at
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import decoded, encoded
from lasp_edge.ordered.shared_places import SharedPlace, packed_places, places_in


class TakenCell(NamedTuple):
    """What was taken of a cell.

    Attributes:
        gateway: that published it.
        version: of what it published.
        number: grows with each change here, whoever published it.
        places: the events in order.
        resumed: the resumptions in it (`lasp_edge.ordered.resuming`).
    """

    gateway: str
    version: int
    number: int
    places: dict[Place, SharedPlace]
    resumed: dict[Place, SharedPlace]


NO_CELL: Final = TakenCell("", 0, 0, {}, {})
"""Nothing was taken of a cell."""


class PartedHistory(StreamHistory):
    """What a device's store holds of streams: of scans with local events, the places, too."""

    def __init__(self, plan: Plan, device: str, read: Read) -> None:
        super().__init__(plan, device, read)
        self.shared = {
            shares_of(f"{name}: "): shares_stream(plan, name) for name in parted_scans(plan)
        }
        self._ends: dict[tuple[str, int], int] = {}

    def taken(self, event: str, least_us: int, end_us: int) -> Iterator[tuple[int, TakenCell]]:
        """Yield what was taken of each cell with least_us <= start < end_us."""
        for cell_us, row in self._entries(self.shared[event], least_us, end_us):
            gateway, version, number, packed, *resumed = decoded(row.content)
            places = [places_in(each, cell_us) for each in (packed, *resumed)]
            yield cell_us, TakenCell(gateway, version, number, places[0], *(places[1:] or [{}]))

    def places(self, event: str, least_us: int, end_us: int) -> Iterator[tuple[Place, str]]:
        """Yield the events in order that were taken of some cells, with their keys."""
        for _, cell in self.taken(event, least_us, end_us):
            for place, shared in cell.places.items():
                yield place, shared.key

    def put_taken(self, event: str, cell_us: int, cell: TakenCell) -> None:
        """Store what was taken of a cell, after the engine has taken it."""
        end_us = self._ends.pop((event, cell_us), cell_us + CELL_US + BLOCK_US)
        resumed = (packed_places(cell.resumed, cell_us),) if cell.resumed else ()
        content = encoded((*cell[:3], packed_places(cell.places, cell_us), *resumed))
        self.changes[HistoryId(cell_us, self.shared[event])] = HistoryRow(end_us, content)

    def cells(self, event: str, least_us: int, end_us: int) -> Iterator[tuple[CellId, InputCell]]:
        if event not in self.shared:
            yield from super().cells(event, least_us, end_us)
            return
        for cell_us, (_, _, number, *places) in self.taken(event, least_us, end_us):
            yield (
                CellId(event, FLEET, cell_us),
                {
                    sent_at(place): ((number, 0, 0), (event, (known, share), key, ""))
                    for place, (key, known, share) in (places[0] | places[1]).items()
                },
            )

    def put_cell(self, where: CellId, cell: InputCell, end_us: int) -> None:
        if where.event not in self.shared:
            super().put_cell(where, cell, end_us)
            return
        self._ends[where.event, where.cell_us] = end_us
        for cell_us, taken in self.taken(where.event, where.cell_us, where.cell_us + 1):
            self.put_taken(where.event, cell_us, taken)
            self._ends[where.event, where.cell_us] = end_us

    def keep_cell(self, where: CellId, cell: InputCell, end_us: int) -> None:
        if where.event in self.shared:
            self.put_cell(where, cell, end_us)
        else:
            super().keep_cell(where, cell, end_us)
