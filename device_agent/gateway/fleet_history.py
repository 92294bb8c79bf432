"""What a gateway's file holds of the streams over the fleet: entries as they came, states and rows.

Rows of a cell come from many devices, over many turns, so what is written of it at a turn is a part
of its own, and a later part replaces rows of former ones.
"""

from collections.abc import Iterator
from typing import Final

from device_agent.gateway.kept import FleetKeeper, KeptEntry
from lasp_edge.evaluation.fleet import FleetHistory
from lasp_edge.evaluation.packed_rows import ChangedRows, Rows, packed_rows, place_of, rows_in
from lasp_edge.evaluation.stored import RowsPartId
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import cell_in
from lasp_edge.ordered.cells import CELL_US, CellId, cell_of
from lasp_edge.ordered.inputs import InputCell
from lasp_edge.ordered.sent_items import united
from lasp_edge.ordered.sent_outputs import newest

MOST_PARTS: Final = 64
"""Parts in which the rows of a cell are stored, at most; more of them are stored as one."""
MOST_KNOWN: Final = 2_000
"""Cells of rows of which it is known in memory which parts they have."""


class GatewayHistory(FleetHistory):
    """What a gateway's store holds of the streams.

    Args:
        plan: the plan.
        keeper: keeps the entries.

    Attributes:
        coming: entries that the engine takes in this turn.
    """

    def __init__(self, plan: Plan, keeper: FleetKeeper) -> None:
        super().__init__(plan, lambda *wanted: list(keeper.history(*wanted)))
        self._keeper = keeper
        self._streams = plan.item_streams
        self._rows_changed: dict[tuple[int, int], dict[int, bytes | None]] = {}
        self._parts: dict[tuple[int, int], list[int]] = {}
        self.coming: list[KeptEntry] = []
        self._came: list[KeptEntry] = []

    def taken(self) -> None:
        self._came = self.coming

    def committed(self) -> None:
        """What came with the last turn is in the store."""
        self._came = []

    def stored_cells(
        self, event: str, least_us: int, end_us: int
    ) -> Iterator[tuple[CellId, InputCell]]:
        """Yield the cells of an event that are stored, with least_us <= start < end_us."""
        made = self._streams.get(event)
        if made is None:
            return
        parts: dict[CellId, list[InputCell]] = {}
        stored = self._keeper.entries(made.stream, max(0, least_us), end_us - 1)
        for entry in (*stored, *self._came_between(made.stream, least_us, end_us)):
            at = CellId(event, entry.writer.device, entry.pane_us)
            version = (*entry.writer[1:], entry.seq)
            parts.setdefault(at, []).append(cell_in(made, entry.partial[0], version))
        for at, cells in parts.items():
            yield at, newest(cells) if made.outputs else united(cells)

    def _came_between(self, stream: int, least_us: int, end_us: int) -> Iterator[KeptEntry]:
        """Yield what the engine has taken in this turn, and the store has not yet."""
        for entry in self._came:
            if entry.stream == stream and least_us <= entry.pane_us < end_us:
                yield entry

    def rows(self, result: str, least_us: int, end_us: int) -> Iterator[tuple[int, Rows]]:
        """Yield the start and rows of each cell of a result with least_us <= start < end_us."""
        made = self._results[result]
        for cell_us, parts in sorted(self._parts_of(made.stream, least_us, end_us).items()):
            yield cell_us, rows_in(made, *[parts[number] for number in sorted(parts)])

    def _parts_of(self, stream: int, least_us: int, end_us: int) -> dict[int, dict[int, bytes]]:
        """Return cell -> number -> content of parts of rows, stored or to be committed."""
        found: dict[int, dict[int, bytes]] = {}
        for cell_us, number, packed in self._keeper.result_parts(stream, least_us, end_us):
            found.setdefault(cell_us, {})[number] = packed
        for cell_us in self._changed_in(stream, least_us, end_us):
            parts = {**found.get(cell_us, {}), **self._rows_changed[stream, cell_us]}
            found[cell_us] = {n: each for n, each in parts.items() if each is not None}
        return found

    def _changed_in(self, stream: int, least_us: int, end_us: int) -> list[int]:
        """Return the cells of changed rows; one alone is not looked for among all."""
        if end_us == least_us + 1:
            return [least_us] if (stream, least_us) in self._rows_changed else []
        cells = [at for of, at in self._rows_changed if of == stream]
        return [at for at in cells if least_us <= at < end_us]

    def put_rows(self, result: str, changed: ChangedRows, rows: Rows) -> None:  # noqa: ARG002
        """Store rows that have changed, those of a cell in one part.

        The rows of a cell come from many devices, over many turns, so what is written grows with
        what has changed and not with the cell.
        """
        by_cell: dict[int, ChangedRows] = {}
        several: ChangedRows = []
        first_us = end_us = 0
        for each in changed:
            if not first_us <= each[0][0] < end_us:  # most are in the cell of the row before
                first_us = cell_of(each[0][0])
                end_us, several = first_us + CELL_US, by_cell.setdefault(first_us, [])
            several.append(each)
        for cell_us, several in by_cell.items():
            self._put_part(result, cell_us, several)

    def _put_part(self, result: str, cell_us: int, changed: ChangedRows) -> None:
        """Store another part of a cell, and all parts as one where there are many."""
        made = self._results[result]
        at = (made.stream, cell_us)
        numbers = self._parts.pop(at, None)
        if numbers is None:
            numbers = sorted(self._parts_of(*at, cell_us + 1).get(cell_us, ()))
        number = numbers[-1] + 1 if numbers else 0
        packed = packed_rows(changed)
        if len(numbers) >= MOST_PARTS:
            before = self._parts_of(*at, cell_us + 1)[cell_us]
            whole = rows_in(made, *[before[each] for each in numbers], packed)
            packed = packed_rows(sorted(whole.items(), key=place_of))
            self._rows_changed.setdefault(at, {}).update(dict.fromkeys(numbers))
            numbers = []
        self._rows_changed.setdefault(at, {})[number] = packed
        self._parts[at] = [*numbers, number]
        while len(self._parts) > MOST_KNOWN:
            del self._parts[next(iter(self._parts))]

    def take_rows(self) -> dict[RowsPartId, bytes | None]:
        """Return the parts of rows that are to be committed and were not taken yet."""
        taken, self._rows_changed = self._rows_changed, {}
        return {
            RowsPartId(*at, number): content
            for at, parts in taken.items()
            for number, content in parts.items()
        }
