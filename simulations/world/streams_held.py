"""What a device's store holds of its streams, read row by row; only what changed is decoded again.

Every row is read from the store at each look after something was written. What its bytes mean, and
whether they match their seal, depends on them alone, so it is remembered.
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from device_agent.agent.state.pane_table import pane_of
from device_agent.agent.stored_rows import PaneRow
from device_agent.storage.sealed_file import finding_damage
from lasp_edge.evaluation.packed_rows import rows_in
from lasp_edge.language.declarations import StreamResult
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import items_stream, standing_stream
from lasp_edge.ordered.cells import Cell, unpacked
from lasp_edge.ordered.item_store import FOR_EVER_US, EngineProgress
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import decoded, encoded
from lasp_edge.ordered.results import ResultRow
from simulations.world.disk import OpenedStore

Columns = tuple[Any, ...]
"""A row of the table of panes."""


class StreamsHeld(NamedTuple):
    """What a store holds of a program's streams.

    Attributes:
        items: event -> its items.
        rows: result -> its rows.
        encoded: (result, place) -> its value there, encoded.
        frontier_us: how far they have come.
    """

    items: dict[str, Cell]
    rows: dict[str, dict[Place, ResultRow]]
    encoded: dict[tuple[str, Place], bytes]
    frontier_us: int | None


def streams_held(store: OpenedStore, plan: Plan) -> StreamsHeld | None:
    """Return what a store holds of a program's streams; None before there is anything.

    Where nothing was written since the last look, it is the same object.

    Raises:
        sqlite3.Error, DamagedStoreError: it cannot be read.
    """
    written = store.database.total_changes
    last = _LOOKS.get(store)
    if last is None or last[:2] != (written, plan):
        last = _LOOKS[store] = (written, plan, _held(store, plan))
    return last[2]


def _held(store: OpenedStore, plan: Plan) -> StreamsHeld | None:
    stored = _stored(store)
    of_items, of_standing = _streams(plan)
    standing = [columns for columns in stored[of_standing] if columns[0] == 0]
    if not standing:
        return None
    items: dict[str, Cell] = {event: {} for event in of_items}
    for event, stream in of_items.items():
        for columns in _in_time(stored[stream]):
            items[event].update(_cell(_partial(columns)))
    rows: dict[str, dict[Place, ResultRow]] = {}
    values: dict[tuple[str, Place], bytes] = {}
    for name, result in plan.device_results.items():
        rows[name] = {}
        for columns in _in_time(stored[result.stream]):
            found, encodings = _rows(result, _partial(columns))
            rows[name].update(found)
            values.update(encodings)
    return StreamsHeld(
        items, rows, values, EngineProgress(*decoded(_partial(standing[0]))).frontier_us
    )


_LOOKS: WeakKeyDictionary[OpenedStore, tuple[int, Plan, StreamsHeld | None]] = WeakKeyDictionary()
"""Store -> how much was written to it before the last look, for which plan, and what was found."""


@finding_damage
def _stored(store: OpenedStore) -> Mapping[int, list[Columns]]:
    """Return the rows of streams as they are stored, by stream, in order."""
    found: dict[int, list[Columns]] = defaultdict(list)
    query = "SELECT * FROM pane WHERE incarnation = 0 ORDER BY pane_us, stream"
    for columns in store.database.execute(query):
        found[columns[1]].append(columns)
    return found


def _in_time(stored: list[Columns]) -> list[Columns]:
    return [columns for columns in stored if 0 <= columns[0] < FOR_EVER_US]


def _partial(columns: Columns) -> bytes:
    content: bytes = _verified(columns).partial[0]
    return content


@lru_cache(maxsize=8_192)
def _verified(columns: Columns) -> PaneRow:
    return pane_of(columns)[1]


_cell = lru_cache(maxsize=8_192)(unpacked)


@lru_cache(maxsize=8_192)
def _rows(
    result: StreamResult, stored: bytes
) -> tuple[dict[Place, ResultRow], dict[tuple[str, Place], bytes]]:
    """Return the rows of a cell, and their values, encoded."""
    rows = rows_in(result, stored)
    values = {
        (result.name, place): encoded((row.event.value, row.event.key))
        for place, row in rows.items()
        if row.event is not None
    }
    return rows, values


def _streams(plan: Plan) -> tuple[dict[str, int], int]:
    """Return event -> the stream of its items, and the stream that says how far they have come."""
    items = {event: items_stream(plan, event) for event in sorted(plan.evaluated_events)}
    return items, standing_stream(plan)
