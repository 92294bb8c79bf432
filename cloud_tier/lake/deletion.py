"""Deleting from a lake: all that is of a device or a key, or all that is old.

Rows of a device are in `landing` and `lattice`; what they were added to, rows of windows and of
values, is deleted as a whole, and made again by the next job from the rows that remain. That may
be any number of years, so the table `lattice` carries a property until a job has done it. A driver
that runs is fenced off first. Landers and devices go on: an append beside a deletion is no
conflict.

Delta keeps the files of older versions, so those that a deletion replaced are deleted too, and with
them all that no version needs any more.
"""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileInfo, FileType, PyFileSystem

from cloud_tier.lake.borders import check_border, has_items
from cloud_tier.lake.coverage import host_us, recorded_frontier
from cloud_tier.lake.feed import COMMAND
from cloud_tier.lake.keyed_rows import delete_replaced, has_own_key
from cloud_tier.lake.marks import check_made_again, old_marks
from cloud_tier.lake.matching import Wanted, check_there, count, has_keys
from cloud_tier.lake.query import selected
from cloud_tier.lake.sqltext import any_of, standard_literal
from cloud_tier.lake.tables import (
    BEGUN,
    BOOKMARK,
    CUT,
    LIVES,
    MARK,
    PANE,
    PROMISE,
    TICK,
    VARIABLE,
    LakeTables,
)
from lasp_edge.errors import UsageError
from lasp_edge.protocol.lake_columns import ITEMS
from lasp_edge.units import SECOND_US

DUE: Final = "lasp-edge.recompute"
"""The property of `lattice` by which a start makes all windows again; "true" or "false"."""
UNFINISHED: Final = "lasp-edge.deleting"
"""The property of `lattice` by which a deletion that was killed is known; "true" or "false"."""
KEPT_DAYS: Final = "lasp-edge.kept-days"
"""The property of `lattice` that tells how many days behind the frontier panes are kept."""
FORGET: Final = "lake forget"
RETAIN: Final = "lake retain"
"""The commands that delete, as the commits by which they do have them."""
DAY_US: Final = 86_400 * SECOND_US
_TRIES: Final = 20
_WAIT_S: Final = 0.1
"""In seconds, between two of them."""
_PROGRESS_US: Final = 1
"""In microseconds: rows of the kind `cut` up to here are the progress, and no cuts."""
_IN_FLIGHT_US: Final = 3_600 * SECOND_US
"""In microseconds: a file that is younger may be of a commit that is under way."""


def forget(
    tables: LakeTables, wanted: Wanted, fence: Callable[[], None] | None = None
) -> dict[str, int]:
    """Delete what is wanted from all tables; return how many rows went, by table.

    Of `lattice` those count that are of devices. No job may run.

    Args:
        tables: of the lake.
        wanted: the rows.
        fence: ends a job that runs elsewhere; it is called before anything is written.

    Raises:
        NotFound: the lake has no such rows; what a killed deletion began goes on all the same.
        UsageError: a pane lies across the time; a key is wanted, and there are readings of an order
            over the fleet; or a scan with local events cannot be made again without the device.
    """
    first_us = _first_item_us(tables, wanted)
    if not _is_unfinished(tables):
        check_there(tables, wanted)
    check_border(tables, wanted)
    if first_us is not None:
        check_made_again(tables, wanted, first_us)
    if fence is not None:
        fence()
    _set(tables.table(tables.lattice), UNFINISHED, "true")
    ask_recompute(tables)
    of_devices = _landed(tables.table(tables.lattice), wanted)
    conditions = _unwanted(tables, wanted, first_us)
    counts = _deleted(tables, conditions, of_devices, FORGET, wanted)
    _set(tables.table(tables.lattice), UNFINISHED, "false")
    return counts


def _landed(table: DeltaTable, wanted: Wanted) -> str:
    """Return which rows of `landing` are wanted, or of those of devices in `lattice`."""
    kinds = f"kind = '{PANE}'"
    if wanted.before_us is None:
        others = [PANE, VARIABLE] + ([] if wanted.key is not None else [PROMISE, BEGUN, LIVES])
        kinds = f"kind IN ({', '.join(map(standard_literal, others))})"
    return wanted.entries(table, kinds)


def _unwanted(tables: LakeTables, wanted: Wanted, first_us: int | None) -> dict[str, str]:
    """Return which rows go, by the path of their table.

    Args:
        tables: of the lake.
        wanted: what is to be forgotten.
        first_us: where the first cell of items begins that is wanted; None without any.
    """
    landed, lattice = (
        _landed(tables.table(path), wanted) for path in (tables.landing, tables.lattice)
    )
    results = wanted.rows("", "time_us")
    if first_us is not None:
        # What an order over the fleet made of them, and of all behind, is made again.
        results = f"({results}) OR (device = '' AND time_us >= {first_us})"
        made = f"kind = '{CUT}' AND pane_us > {first_us}"
        lattice = f"({lattice}) OR ({made}) OR (kind = '{MARK}' AND pane_us >= {first_us})"
    conditions = {
        # The windows first: which ones they are, the panes tell.
        tables.windows: _windows(tables, wanted),
        tables.results: results,
        tables.lattice: f"({lattice}) OR kind = '{BOOKMARK}'",
        tables.landing: landed,
    }
    if wanted.before_us is None:
        conditions[tables.globals] = "true" if wanted.key is None else wanted.rows("", "")
    if wanted.device and wanted.key is None:
        conditions[tables.rejects] = wanted.rejected()
    return conditions


def retain(tables: LakeTables, days: int) -> dict[str, int]:
    """Delete what is older than some days behind the frontier; return how many rows went, by table.

    A window that ends later keeps all of its panes, and an order over the fleet its readings since
    the last time before that at which the states of its scans are known; a scan with local events
    the events in order since then, and before it the last one of each key. Commands of operators
    stay, and the newest promises of devices, which are in `lattice`.

    Raises:
        UsageError: nothing is final yet, so nothing is old.
    """
    frontier_us = recorded_frontier(tables)
    if frontier_us is None:
        raise UsageError(f"{tables.root}: no window is final yet, so nothing is old")
    from_us = frontier_us - days * DAY_US
    query = "SELECT max(end_us - start_us) AS longest_us FROM source"
    longest_us = selected(tables.table(tables.windows), query).to_pylist()[0]["longest_us"] or 0
    lattice = tables.table(tables.lattice)
    known = kept_days(tables)
    _set(lattice, KEPT_DAYS, str(days if known is None else min(known, days)))
    panes = f"kind = '{PANE}' AND pane_us < {from_us - longest_us}"
    kept = panes
    if has_items(lattice):
        cut_us = _last_cut_us(lattice, from_us)
        items = f"{ITEMS} IS NOT NULL AND pane_us < {cut_us}"
        cuts = f"kind = '{CUT}' AND pane_us > {_PROGRESS_US} AND pane_us < {cut_us}"
        kept = f"({panes} AND {ITEMS} IS NULL) OR ({items}) OR ({cuts})"
        kept += f" OR ({old_marks(lattice, cut_us)})"
    others = ", ".join(map(standard_literal, (PROMISE, BEGUN, TICK, VARIABLE)))
    return _deleted(
        tables,
        {
            tables.windows: f"end_us <= {from_us}",
            tables.results: f"time_us < {from_us}",
            tables.rejects: f"received_us < {from_us}",
            tables.lattice: kept,
            tables.landing: f"({panes}) OR (kind IN ({others}) AND received_us < {from_us})",
        },
        f"kind = '{PANE}' AND ({kept})",
        RETAIN,
    )


def _first_item_us(tables: LakeTables, wanted: Wanted) -> int | None:
    """Return where the first cell of items begins that is wanted; None without any.

    Raises:
        NotFound: of a key that nothing in the lake has.
        UsageError: of any other key.
    """
    lattice = tables.table(tables.lattice)
    if not has_items(lattice):
        return None
    where = wanted._replace(key=None).rows(f"kind = '{PANE}' AND {ITEMS} IS NOT NULL", "pane_us")
    query = f"SELECT min(pane_us) AS first_us FROM source WHERE {where}"  # noqa: S608 - quoted
    first_us: int | None = selected(lattice, query).to_pylist()[0]["first_us"]
    if first_us is not None and wanted.key is not None:
        if has_keys(tables):  # of readings alone it is not known which keys they have
            check_there(tables, wanted)
        alone = f"--device {wanted.device} alone" if wanted.device else "a --device"
        raise UsageError(
            f"--key {wanted.key}: the lake has readings of an order over the fleet, and they have "
            f"no key; name {alone}, not --key, perhaps with --before"
        )
    return first_us


def _last_cut_us(lattice: DeltaTable, time_us: int) -> int:
    """Return the time of the last cut at a time or before it; before all times without any."""
    cuts = f"kind = '{CUT}' AND pane_us > {_PROGRESS_US}"
    query = (
        f"SELECT max(pane_us) AS last_us FROM source WHERE {cuts} AND pane_us <= {time_us} "  # noqa: S608 - ours
        f"AND stream IN (SELECT stream FROM source WHERE {cuts} ORDER BY seq DESC LIMIT 1)"
    )
    last_us: int | None = selected(lattice, query).to_pylist()[0]["last_us"]
    return 0 if last_us is None else last_us


def _is_unfinished(tables: LakeTables) -> bool:
    """Return whether a deletion was killed, and may have left rows or files."""
    return tables.table(tables.lattice).metadata().configuration.get(UNFINISHED) == "true"


def ask_recompute(tables: LakeTables) -> None:
    """Have the next start of a job make all windows again, however old they are."""
    _set(tables.table(tables.lattice), DUE, "true")


def recompute_is_due(tables: LakeTables) -> bool:
    """Return whether all windows are to be made again, however old they are."""
    return tables.table(tables.lattice).metadata().configuration.get(DUE) == "true"


def recomputed(tables: LakeTables) -> None:
    """Note that all windows were made again."""
    _set(tables.table(tables.lattice), DUE, "false")


def kept_days(tables: LakeTables) -> int | None:
    """Return how many days behind the frontier panes are kept; None for all."""
    text = tables.table(tables.lattice).metadata().configuration.get(KEPT_DAYS)
    return None if text is None else int(text)


def _windows(tables: LakeTables, wanted: Wanted) -> str:
    """Return which windows the panes are part of: for each key, from the first to the last one."""
    spans: dict[str, tuple[int, int]] = {}
    panes = wanted.rows(f"kind = '{PANE}'", "pane_us")
    for table in map(tables.table, (tables.lattice, tables.landing)):
        query = (
            "SELECT key, min(pane_us) AS first_us, max(pane_us) AS last_us FROM source "  # noqa: S608 - made of quoted parts
            f"WHERE {panes} AND {has_own_key(table)} GROUP BY key"
        )
        for row in selected(table, query).to_pylist():
            key, first_us, last_us = row["key"], row["first_us"], row["last_us"]
            known = spans.get(key, (first_us, last_us))
            spans[key] = min(known[0], first_us), max(known[1], last_us)
    if not spans:
        return "false"
    return any_of(
        f"(key = {standard_literal(key)} AND start_us <= {last_us} AND end_us > {first_us})"
        for key, (first_us, last_us) in sorted(spans.items())
    )


def _deleted(
    tables: LakeTables,
    conditions: dict[str, str],
    counted: str,
    command: str,
    wanted: Wanted | None = None,
) -> dict[str, int]:
    """Delete rows; return how many, by table.

    Args:
        tables: of the lake.
        conditions: path of a table -> which rows.
        counted: which rows of `lattice` count: the others are what the job knew.
        command: by `FORGET` the files that held them go too; by `RETAIN` when no version in the
            retention needs them.
        wanted: whose rows of results go too that have its key within; None without any.
    """
    found = {}
    for path, condition in conditions.items():
        if not DeltaTable.is_deltatable(path):  # an earlier release made fewer
            continue
        of_devices = count(tables.table(path), counted) if path == tables.lattice else None
        with tables.open_to_changes(path):
            of_key = _delete_of_key(tables, path, condition, wanted)
            deleted = _delete(path, partial(_where, condition), command)
        found[path.rpartition("/")[2]] = of_key + (deleted if of_devices is None else of_devices)
        if command == FORGET:
            _delete_files(tables.table(path))
    return found


def _delete_of_key(tables: LakeTables, path: str, condition: str, wanted: Wanted | None) -> int:
    """Delete what goes with a key, and that a condition on columns does not tell; return how many.

    Args:
        tables: of the lake.
        path: of the table.
        condition: which of its rows go besides.
        wanted: what is to be forgotten; None without any.
    """
    if wanted is None or wanted.key is None:
        return 0
    if path == tables.results:
        return _delete(path, partial(delete_replaced, condition), FORGET)
    is_of_devices = path in {tables.lattice, tables.landing}
    return _delete(path, wanted.delete_rows_of_key, FORGET) if is_of_devices else 0


def _delete_files(table: DeltaTable) -> None:
    """Delete the files that the newest version does not need, unless a commit is under way."""
    files = PyFileSystem(DeltaStorageHandler(table.table_uri))
    unused = table.vacuum(0, dry_run=True, enforce_retention_duration=False)
    removed = set(_removed(files, table.version()))
    for path in unused:
        info = files.get_file_info(path)
        if info.type == FileType.File and (path in removed or not _is_young(info)):
            files.delete_file(path)


def _removed(files: PyFileSystem, version: int) -> Iterator[str]:
    """Yield the files that young commits have removed, the newest first."""
    for number in range(version, -1, -1):
        path = f"_delta_log/{number:020d}.json"
        info = files.get_file_info(path)
        if info.type != FileType.File or not _is_young(info):
            return
        with files.open_input_stream(path) as log:
            actions = map(json.loads, log.read().splitlines())
            yield from (unquote(each["remove"]["path"]) for each in actions if "remove" in each)


def _is_young(file: FileInfo) -> bool:
    """Return whether a file may be of a commit that is under way."""
    return file.mtime_ns is None or file.mtime_ns // 1000 > host_us() - _IN_FLIGHT_US


def _set(table: DeltaTable, name: str, value: str) -> None:
    table.alter.set_table_properties({name: value}, raise_if_not_exists=False)


def _delete(path: str, commit: Callable[[DeltaTable, CommitProperties], int], command: str) -> int:
    """Delete rows, again where a lander has committed meanwhile; return how many."""
    by = CommitProperties(custom_metadata={COMMAND: command})
    for left in range(_TRIES, -1, -1):
        try:
            return commit(DeltaTable(path), by)
        except CommitFailedError:
            if not left:
                raise
            time.sleep(_WAIT_S)
    raise AssertionError("it returns or raises")


def _where(condition: str, table: DeltaTable, by: CommitProperties) -> int:
    return int(table.delete(condition, commit_properties=by)["num_deleted_rows"] or 0)
