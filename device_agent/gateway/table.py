"""A gateway's rows as a lake's table shows them: parts that people read, and exact integers.

The file says by itself what its windows mean, so whoever reads it needs no program.
"""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crdts import ControlLog
from device_agent.gateway.store import PROGRAM, SUMMARY, FleetStore, existing_fleet
from device_agent.storage.damage import DamagedStoreError
from lasp_edge.errors import NotFound
from lasp_edge.language.described import (
    RESULT,
    WINDOW,
    ResultDefinition,
    definition_of,
    descriptions,
)
from lasp_edge.language.plan import Plan
from lasp_edge.language.regimes import WindowRegimes
from lasp_edge.language.summary import NO_SUMMARY, ProgramSummary, RanProgram
from lasp_edge.protocol.window_rows import SERVED_BEFORE, SERVED_BEHIND, FleetRow
from lasp_edge.tool.printing import FoundRows, RowsWanted


def meaning_of(plan: Plan, log: ControlLog) -> str:
    """Return what a program's windows mean, as text that a gateway's file keeps.

    Args:
        plan: of the program.
        log: of its parameters: they may change a window's fold.
    """
    windows = {name: plain for kind, name, plain in descriptions(plan) if kind == WINDOW}
    for window in plan.windows.values():
        if window.controls.size is not None:
            windows[window.name] |= {"size_us": 0}  # its rows are of several lengths
        if window.controls.fold:
            forms = WindowRegimes(window, plan.functions, log).forms
            by_time = [[form.from_us, form.fold.description()] for form in forms]
            windows[window.name] |= {"folds": by_time}
    found = {"name": plan.name, "windows": windows}
    results = {n: plain for kind, n, plain in descriptions(plan) if kind == RESULT}
    if plan.fleet_results:
        found["results"] = {name: results[name] for name in plan.fleet_results}
    # Not sorted: the parts of a struct stand in the order of the columns.
    return json.dumps(found)


def definitions(store: FleetStore, kind: str = WINDOW) -> dict[str, ResultDefinition]:
    """Return what the windows of a gateway's file mean, or its results, by name.

    Raises:
        NotFound: no gateway has begun to write the file yet.
    """
    try:
        text = store.facts().get(PROGRAM)
    except sqlite3.OperationalError:  # a gateway that is starting has made no tables yet
        text = None
    if text is None:
        raise NotFound(f"{store.path.parent}: no gateway has kept anything here yet")
    plains: dict[str, Any] = json.loads(text).get(f"{kind}s", {})
    return {name: definition_of(kind, name, plain) for name, plain in plains.items()}


def ran(directory: str) -> RanProgram:
    """Return the program whose windows a gateway's directory keeps.

    Raises:
        NotFound: there is no such directory, or it cannot be read.
        UsageError: it has another format.
    """
    store = existing_fleet(Path(directory))
    try:
        text = store.facts().get(SUMMARY)
    except sqlite3.OperationalError:  # a gateway that is starting has made no tables yet
        text = None
    except (sqlite3.Error, DamagedStoreError) as error:
        raise NotFound(f"{store.path} cannot be read: {error}") from None
    finally:
        store.close()
    if text is None:
        raise NotFound(f"{directory}: {NO_SUMMARY.format('gateway')}")
    return RanProgram(f"the gateway in {directory}", ProgramSummary.from_text(text))


def found(directory: str, wanted: RowsWanted) -> FoundRows:
    """Return rows of a window of a gateway's directory, with a lake's columns.

    Raises:
        NotFound: there is no such directory or window.
    """
    store = existing_fleet(Path(directory))
    try:
        meaning = meaning_in(store, WINDOW, wanted.name)
        rows = store.rows(
            meaning.name,
            meaning.stream,
            key=wanted.key,
            since_us=wanted.since_us,
            until_us=wanted.until_us,
            as_of_us=wanted.as_of_us,
            all_revisions=wanted.all_revisions,
        )
        columns = columns_of(meaning, with_bytes=wanted.with_bytes)
        shown = [_shown(meaning, row, columns) for row in rows if _is_of(meaning, row)]
        return FoundRows(columns, shown, meaning)
    finally:
        store.close()


def _is_of(meaning: ResultDefinition, row: FleetRow) -> bool:
    """Return whether a row is as long as its window: older ones are of a former definition."""
    size_us = row.end_us - row.at.start_us
    return not (row.devices_in and meaning.size_us) or size_us == meaning.size_us


def meaning_in(store: FleetStore, kind: str, name: str) -> ResultDefinition:
    """Return what a window or result means.

    Raises:
        NotFound: the file has no window or result of that name.
    """
    known = definitions(store, kind)
    if name not in known:
        names = ", ".join(sorted(known)) or "none at all"
        raise NotFound(f"no {kind} {name!r} in {store.path.parent}; there are: {names}")
    return known[name]


def columns_of(meaning: ResultDefinition, *, with_bytes: bool) -> list[str]:
    """Return the columns of a window's rows; those of bytes only where they are wanted."""
    values = [name for name in meaning.value_columns if with_bytes or name not in meaning.binary]
    return [*SERVED_BEFORE, *values, *SERVED_BEHIND]


def plain_row(meaning: ResultDefinition, row: FleetRow) -> dict[str, Any]:
    """Return a row by column."""
    fold = meaning.fold_at(row.at.start_us)
    parts = {} if fold is None else fold.lower(row.partial, meaning.resolution)
    return {
        "key": row.at.key,
        "start_us": row.at.start_us,
        "end_us": row.end_us,
        **dict.fromkeys(meaning.parts),
        **parts,
        **dict(zip(meaning.columns, row.partial, strict=True)),
        **row.record(),
    }


def _shown(meaning: ResultDefinition, row: FleetRow, columns: list[str]) -> list[Any]:
    plain = plain_row(meaning, row)
    return [plain[name] for name in columns]


def newest_rows(store: FleetStore, starts: int) -> Iterator[tuple[ResultDefinition, FleetRow]]:
    """Yield the current rows of the last starts of each window, and the newest of each key."""
    for meaning in definitions(store).values():
        for row in store.newest(meaning.name, meaning.stream, starts):
            yield meaning, row
