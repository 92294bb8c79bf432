"""A gateway's rows of streams over the fleet, as a lake's table shows those of results.

A gateway keeps each row as it stands now; what was known at another time, a lake has.
"""

from pathlib import Path
from typing import Any

from device_agent.gateway.fleet_history import GatewayHistory
from device_agent.gateway.store import existing_fleet
from device_agent.gateway.table import meaning_in
from lasp_edge.errors import NotFound, UsageError
from lasp_edge.evaluation.packed_rows import place_of, rows_in
from lasp_edge.language.declarations import StreamResult
from lasp_edge.language.described import RESULT, ResultDefinition
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET, parts_of, shown_parts
from lasp_edge.ordered.cells import CellId, cell_of
from lasp_edge.ordered.inputs import InputCell
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.log import BEFORE_ALL_US as EARLIEST_US
from lasp_edge.ordered.places import Place, place_text
from lasp_edge.ordered.results import ResultRow
from lasp_edge.protocol.lake_columns import ROW_IDENTITY, ROW_RECORD
from lasp_edge.protocol.window_rows import missing_record
from lasp_edge.tool.printing import FoundRows, RowsWanted

_NOT_SHOWN = frozenset({"result", "frontier", "stream"})


def found(directory: str, wanted: RowsWanted) -> FoundRows:
    """Return rows of a result of a gateway's directory, with a lake's columns.

    What was taken back comes only where all revisions are wanted.

    Raises:
        NotFound: there is no such directory or result, or an older release wrote it.
        UsageError: it is wanted what was known at another time.
    """
    if wanted.as_of_us is not None:
        raise UsageError("--as-of: a gateway does not keep what was known when; a lake does")
    store = existing_fleet(Path(directory))
    try:
        if not store.has_results():
            raise NotFound(
                f"{store.path} is of an older release and keeps no rows of results: start "
                "`lasp-edge gateway` with it once"
            )
        meaning = meaning_in(store, RESULT, wanted.name)
        result = StreamResult(
            meaning.name, tuple(zip(meaning.parts, meaning.steps, strict=True)), meaning.stream
        )
        first_us = EARLIEST_US if wanted.since_us is None else wanted.since_us
        end_us = FOR_EVER_US if wanted.until_us is None else wanted.until_us
        parts = store.result_parts(meaning.stream, cell_of(first_us), end_us)
        rows = rows_in(result, *[packed for *_, packed in parts])
        stored = [each for each in rows.items() if first_us <= each[0][0] < end_us]
    finally:
        store.close()
    columns = [
        name
        for name in (*ROW_IDENTITY, *meaning.value_columns, *ROW_RECORD)
        if name not in _NOT_SHOWN
    ]
    shown = [_plain(result, meaning, place, row) for place, row in sorted(stored, key=place_of)]
    chosen = [
        row
        for row in shown
        if wanted.key in (None, row["key"]) and (row["present"] or wanted.all_revisions)
    ]
    chosen.sort(key=lambda row: str(row["key"]))
    return FoundRows(columns, [[row.get(name) for name in columns] for row in chosen], meaning)


def cells(directory: str, plan: Plan, event: str, until_us: int) -> list[tuple[CellId, InputCell]]:
    """Return the cells of an event in a gateway's directory that begin before a time.

    Raises:
        NotFound: there is no such directory.
    """
    store = existing_fleet(Path(directory))
    try:
        return list(GatewayHistory(plan, store).stored_cells(event, EARLIEST_US, until_us))
    finally:
        store.close()


def _plain(
    result: StreamResult, meaning: ResultDefinition, place: Place, row: ResultRow
) -> dict[str, Any]:
    """Return a row by column."""
    found = {
        "device": FLEET,
        "key": row.key,
        "time_us": place[0],
        "place": place_text(place),
        "present": row.event is not None,
        "status": row.status,
        "revision": row.revision,
        **missing_record(row.excluded, row.status),
    }
    if row.event is None:
        return found
    parts = parts_of(result, row.event.value)
    named = dict(zip(meaning.columns, parts.values(), strict=True))
    return {**found, **named, **shown_parts(result, parts)}
