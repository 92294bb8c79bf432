"""What a lake holds of the streams over a fleet: cells, cuts, and rows of results.

    items of a cell     pane entries of `lattice`, those of all lives of a device
    cuts, and progress  rows of `lattice` of the kind `cut`: `stream` and `pane_us` name one, the
                        greatest `seq` counts; `said` is its content, and `low_us` its end
    marks               rows of the kind `mark`, in the same form: of scans with local events, of
                        each cell the events in order, and which of them all devices have answered;
                        `done`: what a device makes its part of is the same at each of them
    rows of results     rows of `results` without a device

What a step changes is kept here until it is committed: rows first, then cuts, in one commit. So a
cut says that all rows before it are there. The progress is stored with a cut alone: what lies
behind the last one is evaluated at each start.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import date
from functools import partial
from typing import Any, Final

import pyarrow as pa

from cloud_tier.job.job import Job
from cloud_tier.job.results import MOST_ROWS, chunks
from cloud_tier.lake.items import cells_of
from cloud_tier.lake.sqltext import newest_of, standard_identifier, within
from cloud_tier.lake.tables import ABSENT, CUT, MARK, PANE, arrow_schema, row_types
from lasp_edge.evaluation.fleet import FleetHistory
from lasp_edge.evaluation.packed_rows import ChangedRows, Rows, place_of
from lasp_edge.evaluation.stored import HistoryRow
from lasp_edge.event import Event
from lasp_edge.language.declarations import StreamResult
from lasp_edge.language.halves import shares_stream
from lasp_edge.language.streaming import FLEET, parts_of, value_in
from lasp_edge.ordered.cells import CELL_US, Cell, CellId, cell_of
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.outputs import NO_TAGS
from lasp_edge.ordered.places import Place, place_in, place_text
from lasp_edge.ordered.results import ResultRow
from lasp_edge.protocol.lake_columns import (
    LANDED,
    PANE_DATE,
    RESULT_ROW,
    ROW_IDENTITY,
    ROW_RECORD,
)
from lasp_edge.protocol.spans import Span, joined
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import missing_record, names_in

NEAR_US: Final = 60_000_000
"""Microseconds between two times that are looked up as one span."""

_NOBODY: Final = missing_record((), TENTATIVE)
"""What a row states in which no device is missing."""

RowsByCell = dict[int, dict[Place, ResultRow]]


class LakeHistory(FleetHistory):
    """What a lake holds of a program's streams over the fleet.

    Args:
        job: the program over the lake.

    Attributes:
        floor_us: marks that are needed only before it are not read.
        frontier_us: F in the present step; None for nothing yet.
        appended: how many rows were appended.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(job.plan, self._cuts)
        scans = job.plan.functions.streams
        self._marks = {
            shares_stream(job.plan, name): scans[name].is_share_constant
            for name in self.parted.scans
        }
        self._job, self._plan = job, job.plan
        self._numbers = {name for name, event in job.plan.events.items() if not event.text}
        self._changed: dict[str, dict[Place, ResultRow]] = defaultdict(dict)
        self._known: dict[str, tuple[Span, RowsByCell]] = {}
        self.floor_us = BEFORE_ALL_US
        self.frontier_us: int | None = None
        self.appended = 0
        self._seq: int | None = None

    def stored_cells(self, event: str, least_us: int, end_us: int) -> Iterator[tuple[CellId, Cell]]:
        """Return the cells of an event that are stored, with least_us <= start < end_us."""
        return self._cells_of(event, [Span(least_us, end_us - 1)])

    def cells(self, event: str, least_us: int, end_us: int) -> Iterator[tuple[CellId, Cell]]:
        """Yield the cells of an event: what was taken of them the table does not tell."""
        if self.parted.has(event):
            return self.parted.marks(event, least_us, end_us)
        return self.stored_cells(event, least_us, end_us)

    def cells_at(self, event: str, starts_us: Collection[int]) -> Iterator[tuple[CellId, Cell]]:
        """Yield the cells of an event that begin at these times."""
        if self.parted.has(event) and starts_us:
            for at, cell in self.parted.marks(event, min(starts_us), max(starts_us) + 1):
                if at.cell_us in starts_us:
                    yield at, cell
            return
        spans = joined((Span(start_us, start_us) for start_us in starts_us), NEAR_US)
        for at, cell in self._cells_of(event, spans) if starts_us else ():
            if at.cell_us in starts_us:
                yield at, cell

    def _cells_of(self, event: str, spans: Iterable[Span]) -> Iterator[tuple[CellId, Cell]]:
        select = partial(self._job.tables.select, self._job.lake.lattice)
        return cells_of(select, self._plan, event, spans)

    def starts_us(self, event: str, least_us: int) -> dict[int, int]:
        """Return the start of each cell of an event from a time on, and how many entries it has."""
        if self.parted.has(event):
            marks = self.parted.marks(event, least_us, FOR_EVER_US)
            return {at.cell_us: len(cell) for at, cell in marks}
        query = (
            "SELECT pane_us, count(*) AS entries FROM source "  # noqa: S608 - numbers
            f"WHERE kind = '{PANE}' AND stream = {self._plan.item_streams[event].stream} "
            f"AND pane_us >= {least_us} GROUP BY pane_us"
        )
        return dict(_listed(self._job.tables.select(self._job.lake.lattice, query)))

    def _kind(self, stream: int) -> str:
        return MARK if stream in self._marks else CUT

    def _cuts(self, stream: int, least_us: int, end_us: int) -> list[tuple[int, HistoryRow]]:
        kind = self._kind(stream)
        query = (
            f"SELECT pane_us, low_us, {RESULT_ROW} FROM source "  # noqa: S608 - numbers
            f"WHERE kind = '{kind}' AND stream = {stream} AND pane_us >= {least_us} "
            f"AND pane_us < {end_us}{self._needed(kind)} ORDER BY seq"
        )
        rows = _listed(self._job.tables.select(self._job.lake.lattice, query))
        return sorted(
            {at_us: HistoryRow(last_us, content) for at_us, last_us, content in rows}.items()
        )

    def _needed(self, kind: str) -> str:
        return f" AND low_us > {self.floor_us}" if kind == MARK else ""

    def rows(self, result: str, least_us: int, end_us: int) -> Iterator[tuple[int, Rows]]:
        """Yield the start and rows of each cell of a result with least_us <= start < end_us."""
        span, cells = self._known.get(result, (Span(0, 0), {}))
        if least_us < span.first or end_us > span.last:
            cells = self._read_rows(self._plan.stream_results[result], least_us, end_us)
            self._known[result] = Span(least_us, end_us), cells
        first_us, starts_us = cell_of(least_us), sorted(cells)
        if (end_us - first_us) // CELL_US < len(cells):
            starts_us = list(range(first_us, end_us, CELL_US))
        for start_us in starts_us:
            if first_us <= start_us < end_us and start_us in cells:
                yield start_us, dict(cells[start_us])

    def _read_rows(self, result: StreamResult, least_us: int, end_us: int) -> RowsByCell:
        cells: RowsByCell = {}
        where = f"time_us >= {least_us} AND time_us < {end_us}"
        for place, row in self._newest(result, where):
            cells.setdefault(cell_of(place[0]), {})[place] = row
        for place, found in self._changed[result.name].items():
            if least_us <= place[0] < end_us:
                cells.setdefault(cell_of(place[0]), {})[place] = found
        return cells

    def naming(
        self, result: str, spans_us: Iterable[tuple[int, int]], *, every: bool
    ) -> Iterator[Rows]:
        """Yield the rows of spans of time that name devices, or every row, some thousand together.

        A week has more than fit into memory: what has changed is committed when it is as much.
        """
        spans = joined((Span(first_us, end_us - 1) for first_us, end_us in spans_us), CELL_US)
        if not spans:
            return
        made, changed = self._plan.stream_results[result], self._changed[result]
        named = "" if every else " AND excluded <> ''"
        query = (
            f"SELECT time_us - time_us % {CELL_US} AS cell_us, count(*) AS rows FROM source "  # noqa: S608
            f"WHERE stream = {made.stream} AND {within('time_us', spans)}{named} GROUP BY 1"
        )
        cells = dict(_listed(self._job.tables.select(self._job.lake.results, query)))
        for chunk in chunks(cells):
            here = joined((Span(at_us, at_us + CELL_US - 1) for at_us in chunk), CELL_US)
            found = self._newest(made, within("time_us", here), named)
            yield {place: row for place, row in found if place not in changed}
            if sum(map(len, self._changed.values())) >= MOST_ROWS:
                self.commit_rows()

    def _newest(
        self, result: StreamResult, where: str, among: str = ""
    ) -> Iterator[tuple[Place, ResultRow]]:
        """Yield the newest rows of a result, of those that fulfil a condition."""
        listed = ("place", "key", "present", "status", "revision", "excluded", *result.columns)
        named, ours = ", ".join(map(standard_identifier, listed)), f"stream = {result.stream}"
        query = newest_of("source", named, f"{ours} AND {where}", "place") + among
        for row in self._job.tables.select(self._job.lake.results, query).to_pylist():
            place, event, gone_key = place_in(row["place"], self._numbers), None, row["key"]
            if row["present"]:
                gone_key = ""
                value = value_in(result, [row[name] for name in result.columns])
                event = Event(result.name, value, place[0], place[1], NO_TAGS, row["key"])
            excluded = names_in(row["excluded"]) if row["excluded"] else ()
            yield place, ResultRow(event, row["status"], row["revision"], gone_key, excluded)

    def newest_row_us(self, since_us: int) -> int:
        """Return the time of the newest row from a time on; before all times without any."""
        streams = ", ".join(str(each.stream) for each in self._plan.fleet_results.values())
        query = (
            "SELECT max(time_us) AS newest FROM source "  # noqa: S608 - numbers
            f"WHERE time_us >= {since_us} AND stream IN ({streams})"
        )
        found: list[int | None] = (
            self._job.tables.select(self._job.lake.results, query).column("newest").to_pylist()
        )
        return BEFORE_ALL_US if found[0] is None else found[0]

    def put_rows(self, result: str, changed: ChangedRows, rows: Rows) -> None:  # noqa: ARG002
        """Keep rows that have changed until they are committed.

        One that was never final and is gone stays in the table as it is, taken back.
        """
        cells = self._known[result][1] if result in self._known else {}
        for place, row in changed:
            if row is not None:
                self._changed[result][place] = row
                if result in self._known:
                    cells.setdefault(cell_of(place[0]), {})[place] = row

    def commit_rows(self) -> None:
        """Append the rows that have changed, a commit for each result."""
        frontier_us = self.frontier_us
        for name, changed in sorted(self._changed.items()):
            result = self._plan.stream_results[name]
            rows = [
                _columns(result, place, row, frontier_us)
                for place, row in sorted(changed.items(), key=place_of)
            ]
            schema = arrow_schema({**ROW_IDENTITY, **row_types([result]), **ROW_RECORD})
            made = pa.Table.from_pylist(rows, schema)
            self._job.tables.append(self._job.lake.results, made, frontier_us)
            self.appended += len(rows)
        self._changed.clear()
        self._known.clear()

    def commit_cuts(self) -> None:
        """Append cuts that are new or have changed, and the progress with them, in one commit."""
        changes = self.take_changes()
        if all(at.stream == self._progress for at in changes):
            return
        tables, lattice = self._job.tables, self._job.lake.lattice
        if self._seq is None:
            query = f"SELECT max(seq) AS seq FROM source WHERE kind IN ('{CUT}', '{MARK}')"  # noqa: S608
            self._seq = tables.select(lattice, query).column("seq").to_pylist()[0] or 0
        self._seq += 1
        absent = dict.fromkeys(LANDED) | dict(ABSENT) | {"received_us": 0}
        schema = arrow_schema({**LANDED, RESULT_ROW: "binary"})
        rows = [
            absent
            | {
                "kind": self._kind(at.stream),
                "stream": at.stream,
                "pane_us": at.at_us,
                "seq": self._seq,
                "low_us": row.end_us,
                "done": self._marks.get(at.stream),
            }
            | {RESULT_ROW: row.content, PANE_DATE: date(1970, 1, 1)}
            for at, row in changes.items()
        ]
        dated = schema.append(pa.field(PANE_DATE, pa.date32()))
        tables.append(lattice, pa.Table.from_pylist(rows, dated))


def _columns(
    result: StreamResult, place: Place, row: ResultRow, frontier_us: int | None
) -> dict[str, Any]:
    """Return a row of the table."""
    event = row.event
    parts = {} if event is None else parts_of(result, event.value)
    return {
        "result": result.name,
        "device": FLEET,
        "key": row.key,
        "time_us": place[0],
        "place": place_text(place),
        **dict(zip(result.columns, parts.values(), strict=event is not None)),
        "present": event is not None,
        "status": row.status,
        "revision": row.revision,
        "frontier": frontier_us,
        "stream": result.stream,
        **(missing_record(row.excluded, row.status) if row.excluded else _NOBODY),
    }


def _listed(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)
