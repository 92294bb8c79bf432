"""The windows and results of one device, as the commands that print and plot rows want them."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from device_agent.agent.state.store import Store, existing_store
from device_agent.console.own_windows import OwnWindow, known_from_us, own_windows
from device_agent.storage.damage import DamagedStoreError
from lasp_edge.errors import NotFound, UsageError
from lasp_edge.evaluation.history import stored_rows
from lasp_edge.language.declarations import Window
from lasp_edge.language.described import (
    RESULT,
    WINDOW,
    ResultDefinition,
    definition_of,
    descriptions,
)
from lasp_edge.language.plan import Plan
from lasp_edge.language.summary import NO_SUMMARY, ProgramSummary, RanProgram
from lasp_edge.protocol.status import FINAL, TENTATIVE
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.printing import FoundRows, RowsWanted
from lasp_edge.tool.times import shown_time

EVERY = 1 << 40
"""Starts, and rows, to go back: more than are kept."""


def ran(directory: str) -> RanProgram:
    """Return the program that an agent's directory is of.

    Raises:
        NotFound: there is no such directory, or it cannot be read.
        UsageError: it has another format.
    """
    store = existing_store(Path(directory))
    try:
        restored, waiting = store.restored(), store.undelivered()
        device = (store.replica() or (0, 0, ""))[2]
    except (sqlite3.Error, DamagedStoreError) as error:
        raise NotFound(f"{store.path} cannot be read: {error}") from None
    finally:
        store.close()
    facts = restored.facts
    if facts.summary is None:
        raise NotFound(f"{directory}: {NO_SUMMARY.format('agent')}")
    notes = []
    if facts.floor_us is not None and facts.high_us is not None:
        notes.append(
            f"it still has its readings from {shown_time(known_from_us(facts))} to "
            f"{shown_time(facts.high_us)}: of these it makes again what begins again"
        )
    if any(source.stamped for source in restored.sources.values()):
        notes.append("some of its readings got their time on arrival: those are not kept")
    entries = sum(each.entries for each in waiting)
    if entries:
        notes.append(f"{entries} pane entries are not delivered yet: they are sent in any case")
    whose = f"the agent {device} in {directory}"
    return RanProgram(whose, ProgramSummary.from_text(facts.summary), tuple(notes))


def found_windows(directory: str, wanted: RowsWanted) -> FoundRows:
    """Return windows of this device's own readings.

    Columns: key, start_us, end_us, one for each part and its integers, and the status: tentative
    while no reading from after a window's end was accepted, then final as far as this device is
    concerned; a late reading still changes it.

    Raises:
        CommandError: there is no such directory, program or window, or a device does not keep that.
    """
    if wanted.all_revisions:
        raise UsageError(
            "--all-revisions: a device keeps none of its windows; a lake and a gateway do"
        )
    plan, meaning = _meaning(WINDOW, wanted)
    with _opened(directory) as store:
        windows = own_windows(store, plan, plan.windows[wanted.name], EVERY)
    values = [
        each for each in meaning.value_columns if wanted.with_bytes or each not in meaning.binary
    ]
    columns = ["key", "start_us", "end_us", *values, "status"]
    rows = [_window(each, plan.windows[wanted.name]) for each in windows]
    chosen = [row for row in rows if _fits(row, row["start_us"], wanted)]
    chosen.sort(key=lambda row: (row["key"], row["start_us"]))
    return FoundRows(columns, [[row.get(name) for name in columns] for row in chosen], meaning)


def found_results(directory: str, wanted: RowsWanted) -> FoundRows:
    """Return rows of a result of this device.

    Columns: key, time_us, one for each part, present, status, revision; what was taken back only
    where all revisions are wanted.

    Raises:
        CommandError: there is no such directory, program or result, or a device does not keep that.
    """
    plan, meaning = _meaning(RESULT, wanted)
    if wanted.name in plan.fleet_results:
        raise UsageError(
            f"{wanted.name!r} is in one order over the whole fleet, and no device has its rows; "
            "name a gateway's directory by --gateway"
        )
    with _opened(directory) as store:
        rows = stored_rows(store.history, plan.stream_results[wanted.name], 0, EVERY)
    columns = ["key", "time_us", *meaning.parts, "present", "status", "revision"]
    plain = [each.plain() | {"present": bool(each.parts)} for each in rows]
    chosen = [
        row
        for row in plain
        if _fits(row, row["time_us"], wanted) and (row["present"] or wanted.all_revisions)
    ]
    chosen.sort(key=lambda row: (row["key"], row["time_us"]))
    return FoundRows(columns, [[row.get(name) for name in columns] for row in chosen], meaning)


def _meaning(kind: str, wanted: RowsWanted) -> tuple[Plan, ResultDefinition]:
    """Return the program, and what the rows that are wanted mean."""
    if wanted.as_of_us is not None:
        raise UsageError("--as-of: a device does not keep what was known when; a lake does")
    if wanted.program is None:
        raise UsageError("--data-dir needs the agent's program: --program MODULE:PROGRAM")
    plan = load_plan(wanted.program)
    known = {name: plain for of, name, plain in descriptions(plan) if of == kind}
    if wanted.name not in known:
        names = ", ".join(sorted(known)) or "none at all"
        raise NotFound(f"no {kind} {wanted.name!r} in {wanted.program}; there are: {names}")
    return plan, definition_of(kind, wanted.name, known[wanted.name])


@contextmanager
def _opened(directory: str) -> Iterator[Store]:
    store = existing_store(Path(directory))
    try:
        yield store
    finally:
        store.close()


def _window(own: OwnWindow, window: Window) -> dict[str, Any]:
    plain = own.plain(window)
    status = FINAL if own.closed else TENTATIVE
    return {**plain, **plain["parts"], "status": status}


def _fits(row: dict[str, Any], at_us: int, wanted: RowsWanted) -> bool:
    return (
        wanted.key in {None, row["key"]}
        and (wanted.since_us is None or at_us >= wanted.since_us)
        and (wanted.until_us is None or at_us < wanted.until_us)
    )
