"""A start reads of the promises in a lake what counts, however many there are, and no history."""

import json
import random
import shutil
from functools import partial

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from cloud_tier.job.bookmark import is_due, put_bookmark
from cloud_tier.job.dynamic import CurrentRow
from cloud_tier.job.job import Job
from cloud_tier.job.step import recalled
from cloud_tier.lake.coverage import liveness_of, promised_steps
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.promises import device_rows, steps
from cloud_tier.lake.query import selected
from cloud_tier.lake.tables import LakeTables
from cloud_tier.lander.landing import Landing
from lasp_edge.protocol.waiting import WindowWaiting
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, rooms, row, tick
from tests.cloud_tier.written_lakes import window, write

PROGRAM = rooms()
(FOLD,) = PROGRAM.dynamic_folds.values()
DAY_US = 86_400 * SECOND_US
WAITS_US = (3 * SECOND_US, 20 * SECOND_US)


def lattice_of(tables, rows, **stated):
    """Append rows to `lattice`, the panes of a day in a partition of its own."""
    schema = pa.schema(DeltaTable(tables.lattice).schema().to_arrow())
    days = [
        each | {"pane_date": each["pane_us"] // DAY_US if each["kind"] == "pane" else 0}
        for each in rows
    ]
    write_deltalake(
        tables.lattice,
        pa.Table.from_pylist(days, schema=schema),
        mode="append",
        partition_by=["pane_date"],
        commit_properties=CommitProperties(custom_metadata={"userMetadata": json.dumps(stated)}),
    )


def promises_of(seed):
    """Return promises of devices that start again, repeat old ones and come in any order."""
    draw = random.Random(seed)
    rows = []
    for number in range(400):
        life = draw.randrange(1, 4)
        at_us = BEGIN_US + draw.randrange(40 * SECOND_US)
        low_us = None if number % 9 == 0 else at_us + draw.randrange(-8, 3) * SECOND_US
        seq, name = draw.randrange(1, 2_000), f"pi-{draw.randrange(4)}"
        columns = {"low_us": low_us, "done": number % 50 == 0, "received_us": at_us}
        rows.append(row("promise", name, life, 7 * life, seq, changed=number % 2, **columns))
    return rows


def reduced(waits_us, found, now_us):
    return WindowWaiting.of(waits_us).joined(found, now_us)


@pytest.mark.parametrize("control", [None, 1])
def test_what_a_start_knows_of_waiting_windows_is_what_all_promises_say(tmp_path, control):
    tables = LakeTables(tmp_path)
    tables.create(PROGRAM.columns)
    rows = [each for seed in range(5) for each in promises_of(seed)]
    lattice_of(tables, [*rows, tick(1, BEGIN_US)])
    select = partial(selected, tables.table(tables.lattice))
    under = [each for each in rows if control in {None, each["changed"]}]
    for waits_us in (*((each,) for each in WAITS_US), ()):
        found = steps(select, waits_us, control)
        assert len(found) < len(under) / 2
        for now_us in (None, BEGIN_US + 30 * SECOND_US):
            truth = reduced(waits_us, promised_steps(under), now_us)
            assert reduced(waits_us, found, now_us) == truth
    newest = device_rows(select)
    assert len(newest) == 5
    assert liveness_of(newest).promises == liveness_of(rows).promises


def merge_days(tables, days, mark=lambda at_us: None):
    """Write what a job has merged of some days, a file a day of each table; return the last day.

    Of promises and ticks the last day's are in `lattice`: it is compacted. On the last day a key
    has another value, and one window has rows.

    Args:
        tables: of the lake.
        days: how many.
        mark: is called before the last day.
    """
    for day in range(days):
        at_us = BEGIN_US // DAY_US * DAY_US + day * DAY_US
        pane = {"stream": PROGRAM.windows["totals"].stream, "pane_us": at_us, "total_q": day}
        panes = [row("pane", "pi-1", 1, 7, day + 1, received_us=at_us, **pane)]
        promise = {"low_us": at_us, "done": False, "received_us": at_us}
        others = [row("promise", "pi-1", 1, 7, day + 1, **promise), tick(day + 1, at_us)]
        is_last = day + 1 == days
        if is_last:
            mark(at_us - DAY_US)
        write(tables.landing, [*panes, *others])
        lattice_of(tables, panes + (others if is_last else []), landing=day + 1)
        rows = [window(name, at_us, 0) for name in list(PROGRAM.windows)[is_last * 2 :]]
        write(tables.globals, [value("" if is_last else f"day {day}", day * is_last, day)])
        write(tables.windows, [each | {"status": "final", "frontier": at_us} for each in rows])
    return at_us


def value(key, revision, day):
    """Return a row of the fleet's value."""
    record = {"inputs": f"{2**64 - 1 - day:016x}", "devices_in": 1, "revision": revision}
    return {"name": FOLD.name, "key": key, "stream": FOLD.stream} | record


def without_files(tables, folder, left, days):
    """Delete the files of all days but the last ones, by folder of a table."""
    for name, count in left.items():
        files = sorted(folder.glob(f"{name}/*.parquet"), key=lambda file: file.stat().st_mtime_ns)
        assert len(files) == days
        for file in files[: days - count]:
            file.unlink()


@pytest.mark.parametrize("days", [4, 10])
def test_a_start_opens_no_file_of_the_days_before(tmp_path, days):
    """Neither the job's nor the lander's: such files are taken away here."""
    tables = LakeTables(tmp_path)
    prepare(PROGRAM, tables)
    known = {
        (FOLD.name, f"day {day}"): CurrentRow(0, f"{2**64 - 1 - day:016x}", FOLD.stream, 1)
        for day in range(days - 1)
    }

    def mark(at_us):
        put_bookmark(Job(PROGRAM, tables), at_us, known, complete=True)

    last_us = merge_days(tables, days, mark)
    without_files(
        tables,
        tmp_path,
        {"landing": 1, "windows": 1, "globals": 1, "lattice/pane_date=2*": 0},
        days,
    )
    lander = Landing(tables, "lander")
    assert (lander.incarnations(), lander.membership().entries) == ({"pi-1": 1}, {})
    newest = CurrentRow(days - 1, f"{2**64 - days:016x}", FOLD.stream, 1)
    for job in (Job(PROGRAM, tables), Job(PROGRAM, tables, tentative_after_us=15 * SECOND_US)):
        found = recalled(job)
        assert found.frontier == last_us
        assert found.liveness.promises.value == {"pi-1": last_us}
        assert found.current_rows == known | {(FOLD.name, ""): newest}
        assert found.complete
        quiet = list(PROGRAM.windows)[:2]
        assert found.passed.by_window == dict.fromkeys(quiet, last_us - DAY_US)
        assert not is_due(job)


def copy_back(tables):
    """Put an older copy of the table in place, and append as often as the newer one was."""
    table, backup = tables.globals, f"{tables.root}/backup"
    shutil.rmtree(table)
    shutil.copytree(backup, table)
    for revision in (3, 4):
        write(table, [value("", revision, 9)])


def restore(tables):
    table = DeltaTable(tables.globals)
    table.restore(table.version() - 1)


def delete(tables):
    with tables.open_to_changes(tables.globals):
        DeltaTable(tables.globals).delete("key = 'day 1'")


def put_together(tables):
    DeltaTable(tables.globals).optimize.compact()


@pytest.mark.parametrize("change", [copy_back, restore, delete, put_together])
def test_a_bookmark_counts_while_rows_are_only_appended(tmp_path, change):
    """A table that somebody changed is read whole, and the next bookmark counts again."""
    tables = LakeTables(tmp_path / "lake")
    prepare(PROGRAM, tables)
    at_us = merge_days(tables, 3)
    shutil.copytree(tables.globals, f"{tables.root}/backup")
    write(tables.globals, [value("", 3, 8)])
    marked = {(FOLD.name, "x"): CurrentRow(9, "0" * 16, 5, 1)}
    put_bookmark(Job(PROGRAM, tables), at_us, marked, complete=True)
    change(tables)
    job, counts = Job(PROGRAM, tables), change is put_together
    assert is_due(job) != counts
    found = recalled(job)
    there = {row["key"] for row in DeltaTable(tables.globals).to_pyarrow_table().to_pylist()}
    assert {key for _, key in found.current_rows} == ({"x"} if counts else there)
    put_bookmark(job, found.frontier, found.current_rows, complete=found.complete)
    assert not is_due(job)
    assert recalled(job).current_rows == found.current_rows


def test_a_lander_starts_where_rows_were_deleted_that_are_not_merged(tmp_path):
    """What DataFusion has rewritten has types of its own."""
    tables = LakeTables(tmp_path)
    prepare(PROGRAM, tables)
    merge_days(tables, 1)
    promise = {"low_us": BEGIN_US, "done": False}
    write(tables.landing, [row("promise", name, 3, 7, 9, **promise) for name in ("pi-2", "pi-3")])
    with tables.open_to_changes(tables.landing):
        DeltaTable(tables.landing).delete("device = 'pi-3'")
    assert Landing(tables, "lander").incarnations() == {"pi-1": 1, "pi-2": 3}
