"""Somebody restores a table, deletes its rows, or files of `landing`: it is reported, and mended.

The lake must be that of a recomputation from the readings, or from those whose rows are left.
"""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from deltalake import DeltaTable, write_deltalake

from cloud_tier.job.job import Job
from cloud_tier.job.opened import OpenTables, Superseded, TableRestored
from cloud_tier.job.run import Run
from cloud_tier.job.step import recalled
from cloud_tier.lake.checkpoint import mend, merged_up_to
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.statements import Gap, gaps
from cloud_tier.lander.landing import Landing
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    history,
    readings_of,
    rooms,
    table,
    tick,
    true_windows,
)

pytestmark = pytest.mark.spark

PROGRAM = rooms()
READINGS = readings_of(11, each=4)


class Restored:
    """A lake into which a history lands in parts, and the lines of its jobs."""

    def __init__(self, spark, folder):
        self.lake, self.lines = LakeUnderTest(spark, PROGRAM, folder), []
        self.tables = self.lake.lake
        rows = history(PROGRAM, READINGS)
        self.parts = [[*rows[at::5], tick(at + 1, BEGIN_US)] for at in range(5)]

    def copied(self, folder):
        """Return a copy of the lake, as it is now, in another directory."""
        shutil.copytree(self.tables.root, folder)
        made = type(self)(self.lake.spark, folder)
        made.parts = list(self.parts)
        return made

    def land(self):
        rows = table(PROGRAM, self.parts.pop(0))
        write_deltalake(self.tables.landing, rows, mode="append", schema_mode="merge")

    def merge(self, **options):
        """Have a job merge all that has landed."""
        prepare(PROGRAM, self.tables)
        mend(self.tables)
        self.lake.job = Job(PROGRAM, self.tables)
        options = {"trigger_s": 0.05, "until_idle_s": 0.1, "say": self.lines.append} | options
        Run(self.lake.spark, self.lake.job, None, **options).run()

    def check(self):
        """Land and merge the rest, and compare with the recomputation."""
        while self.parts:
            self.land()
        self.merge()
        assert self.lake.current() == true_windows(PROGRAM, READINGS)
        assert {len(each) > 0 for each in self.lake.statuses().values()} == {True}


@pytest.fixture(scope="module")
def merges(spark, tmp_path_factory):
    """The lake after each of some merges, of which each test gets a copy."""
    made = Restored(spark, tmp_path_factory.mktemp("merges") / "lake")
    found = []
    for number in range(3):
        made.land()
        made.merge()
        found.append(made.copied(tmp_path_factory.mktemp("merges") / f"after {number}"))
    return found


def version(lake, name):
    """Return the version of a table."""
    return DeltaTable(f"{lake.tables.root}/{name}").version()


@pytest.fixture
def restored(merges, tmp_path):
    """A lake after two merges; the job ends before the third part."""
    return merges[1].copied(tmp_path / "lake")


def test_a_start_finds_a_restored_table_and_merges_again(restored, merges):
    """The newest merge of it is lost; its rows are what later parts are added to."""
    expected = restored.lake.globals_there()
    DeltaTable(restored.tables.globals).restore(version(merges[0], "globals"))
    restored.lines.clear()
    restored.merge()
    assert [line for line in restored.lines if "the table globals is an earlier one" in line]
    assert restored.lake.globals_there() == expected
    restored.lines.clear()
    restored.check()
    assert not [line for line in restored.lines if "earlier" in line], "once is enough"


def test_a_lake_in_a_store_is_mended_too(spark, merges, tmp_path):
    merges[1].copied(tmp_path / "lake")
    restored = Restored(spark, f"file://{tmp_path}/lake")
    restored.parts = list(merges[1].parts)
    DeltaTable(restored.tables.windows).restore(version(merges[0], "windows"))
    restored.check()
    assert [line for line in restored.lines if "the table windows is an earlier one" in line]


def test_two_tables_that_were_restored_to_different_times_are_mended(merges, tmp_path):
    restored = merges[2].copied(tmp_path / "lake")
    DeltaTable(restored.tables.lattice).restore(version(merges[0], "lattice"))
    DeltaTable(restored.tables.windows).restore(version(merges[1], "windows"))
    restored.check()
    for name in ("lattice", "windows"):
        assert [line for line in restored.lines if f"the table {name} is an earlier one" in line]


def test_a_directory_that_was_copied_back_from_a_backup_is_mended(merges, tmp_path):
    restored = merges[2].copied(tmp_path / "lake")
    shutil.rmtree(restored.tables.windows)
    shutil.copytree(merges[0].tables.windows, restored.tables.windows)
    restored.check()
    assert [line for line in restored.lines if "the table windows is an earlier one" in line]


@pytest.mark.parametrize("begins_first", ["lander", "job"])
def test_an_earlier_copy_of_landing_is_read_from_its_beginning(merges, tmp_path, begins_first):
    """Devices send again what it lacks, and that lands in versions which the query had read."""
    restored = merges[2].copied(tmp_path / "lake")
    landing = restored.tables.landing
    shutil.rmtree(landing)
    shutil.copytree(merges[0].tables.landing, landing)
    restored.parts = list(merges[0].parts)
    restored.lines.clear()
    if begins_first == "job":
        restored.merge()
    Landing(restored.tables, "lander").begin_store()
    restored.check()
    found = [line for line in restored.lines if "landing was put back" in line]
    assert len(found) == (2 if begins_first == "job" else 1)
    restored.lines.clear()
    restored.merge()
    assert not restored.lines, "once is enough"


def test_a_table_that_is_restored_while_the_job_runs_ends_the_batch(spark, tmp_path):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    rows = history(PROGRAM, READINGS)
    lake.step(rows[::2])
    DeltaTable(lake.lake.windows).restore(0)
    with pytest.raises(TableRestored, match="the table windows was restored"):
        lake.step(rows[1::2])


def delete(restored, name, where="true"):
    """Delete rows of a table, which somebody has to allow first."""
    with restored.tables.open_to_changes(f"{restored.tables.root}/{name}"):
        assert DeltaTable(f"{restored.tables.root}/{name}").delete(where)["num_deleted_rows"]


def test_rows_that_somebody_deletes_while_the_job_runs_are_made_again(restored):
    def deleted(line):
        restored.lines.append(line)
        if len(restored.lines) == 1:
            delete(restored, "windows", "\"window\" <> 'odd'")
            restored.land()

    restored.lines.clear()
    restored.land()
    restored.merge(say=deleted, until_idle_s=1)
    restored.check()
    found = [line for line in restored.lines if "rows of the table windows were deleted" in line]
    assert len(found) == 1
    assert "all windows are made again, since rows were deleted" in restored.lines


@pytest.mark.parametrize("name", ["lattice", "windows"])
def test_a_directory_that_is_copied_back_while_the_job_runs_is_mended(merges, tmp_path, name):
    """The job holds its tables open: what is there has fewer versions than it has read."""
    restored = merges[2].copied(tmp_path / "lake")

    def put_back(line):
        restored.lines.append(line)
        if len(restored.lines) == 1:
            path = f"{restored.tables.root}/{name}"
            shutil.rmtree(path)
            shutil.copytree(f"{merges[0].tables.root}/{name}", path)
            restored.land()

    restored.lines.clear()
    restored.land()
    restored.merge(say=put_back, until_idle_s=1)
    assert [line for line in restored.lines if f"the table {name} is an earlier one" in line]
    restored.check()


def test_rows_that_somebody_deletes_between_two_jobs_are_made_again(restored):
    """Windows are not made of a part of their panes: that waits for the start after."""
    delete(restored, "lattice", "kind = 'pane'")
    delete(restored, "globals")
    restored.lines.clear()
    restored.check()
    for name in ("lattice", "globals"):
        assert [line for line in restored.lines if f"the table {name} were deleted or" in line]
    restored.lines.clear()
    restored.merge()
    assert restored.lines == ["all windows are made again, since rows were deleted"]
    assert restored.lake.current() == true_windows(PROGRAM, READINGS)


def test_tables_that_are_gone_are_made_again(restored):
    for name in ("lattice", "windows"):
        shutil.rmtree(f"{restored.tables.root}/{name}")
    restored.check()


def test_a_table_that_states_nothing_any_more_lacks_all_that_had_landed(restored, merges, tmp_path):
    """The first version has no statement, nor has a table that is made once more."""
    for name in ("lattice", "windows", "globals"):
        DeltaTable(f"{restored.tables.root}/{name}").restore(0)
    assert {gap[:2] for gap in gaps(restored.tables)} == {
        ("lattice", -1),
        ("windows", -1),
        ("globals", -1),
    }
    gone = merges[1].copied(tmp_path / "gone")
    for path in gone.tables.merged:
        shutil.rmtree(path)
    prepare(PROGRAM, gone.tables)
    assert gaps(gone.tables, merged_up_to(gone.tables)) == [Gap("lattice", -1)]


def test_a_checkpoint_that_is_further_than_the_tables_hides_nothing(merges, tmp_path):
    """As of a backup that was made while the job ran: the checkpoint was copied last."""
    restored, later = merges[0].copied(tmp_path / "lake"), merges[1]
    assert not gaps(restored.tables, merged_up_to(restored.tables))
    restored.land()
    shutil.rmtree(restored.tables.checkpoint)
    shutil.copytree(later.tables.checkpoint, restored.tables.checkpoint)
    restored.check()
    assert [line for line in restored.lines if "the table lattice is an earlier one" in line]


def test_files_that_were_put_together_and_deleted_before_they_were_merged_are_no_loss(restored):
    for _ in range(2):
        restored.land()
    landing = DeltaTable(restored.tables.landing)
    landing.optimize.compact()
    landing.vacuum(0, dry_run=False, enforce_retention_duration=False)
    restored.check()
    assert [line for line in restored.lines if "all that it holds is merged again" in line]


def test_a_file_of_landing_that_is_gone_is_named_and_the_job_goes_on(merges, tmp_path):
    restored = merges[0].copied(tmp_path / "lake")
    restored.land()
    gone = newest_file(restored.tables.landing)
    kept = [row for part in restored.parts for row in part]
    restored.land()
    gone.unlink()
    for commit in Path(restored.tables.landing, "_delta_log").glob("*2.json"):
        os.utime(commit, (1, 1))  # it is not of the minute before a power cut
    restored.merge()
    lines = [line for line in restored.lines if gone.name in line]
    assert len(lines) == 1
    assert " is gone, and with it " in lines[0]
    assert "rows of devices up to pi-2, received from 2023-11-14 22:13:" in lines[0]
    while restored.parts:
        restored.land()
    restored.merge()
    assert DeltaTable(restored.tables.landing).metadata().configuration["delta.appendOnly"] == (
        "true"
    )
    again = LakeUnderTest(restored.lake.spark, PROGRAM, tmp_path / "again")
    again.step([*restored_first(), *kept])
    assert restored.lake.current() == again.current()


def restored_first():
    return history(PROGRAM, READINGS)[0::5]


def newest_file(landing):
    commit = max(Path(landing, "_delta_log").glob("*.json"))
    (added,) = (
        json.loads(line)["add"] for line in commit.read_text().splitlines() if '"add"' in line
    )
    return Path(landing, added["path"])


def test_a_job_that_another_one_took_the_lake_from_ends_in_one_line(spark, tmp_path):
    restored = Restored(spark, tmp_path)
    restored.land()
    lake = LakeUnderTest(restored.lake.spark, PROGRAM, restored.tables.root)

    def taken(_line):
        recalled(lake.job)
        restored.land()

    with pytest.raises(Superseded, match="another `lasp-edge cloud` merges into") as raised:
        restored.merge(until_idle_s=None, say=taken)
    assert "\n" not in str(raised.value)


def test_the_older_of_two_drivers_ends_though_it_has_nothing_to_commit(restored):
    """The newer one has merged what landed before the older one, which was frozen, reads on."""
    restored.land()
    restored.merge()
    text = "Multiple streaming queries are concurrently using a checkpoint/commits."
    query = SimpleNamespace(exception=lambda: text, stop=lambda: None)
    older = Run(restored.lake.spark, restored.lake.job, None, say=restored.lines.append)
    OpenTables(restored.tables).claim()
    with pytest.raises(Superseded, match="another `lasp-edge cloud` merges into"):
        older._start_again(query)
