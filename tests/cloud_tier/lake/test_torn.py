"""Commits that a power cut has torn: what is taken back, what stays, and what is synced before."""

import json
import os
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from cloud_tier.lake.definitions import outdated_windows, prepare
from cloud_tier.lake.tables import LakeTables
from cloud_tier.lake.torn import make_durable, mend_tables
from tests.cloud_tier.support_devices import Device, readings_of, rooms, table

PROGRAM = rooms()


@pytest.fixture
def lake(tmp_path):
    """A lake with three commits of landed rows, and a checkpoint."""
    made = LakeTables(tmp_path)
    prepare(PROGRAM, made)
    device = Device(PROGRAM, "pi-0")
    for reading in readings_of(1, devices=1, each=3):
        rows = table(PROGRAM, device.accept([reading]))
        write_deltalake(made.landing, rows, mode="append", schema_mode="merge")
    Path(made.checkpoint).mkdir()
    return made


def commit(path, version):
    return Path(path, "_delta_log", f"{version:020}.json")


def added(path, version):
    lines = map(json.loads, commit(path, version).read_text().splitlines())
    return [Path(path, line["add"]["path"]) for line in lines if "add" in line]


def cut_short(file):
    file.write_bytes(file.read_bytes()[:-1])


def zeros(file):
    file.write_bytes(b"\0" * file.stat().st_size)


TEARS = {
    "an empty commit": lambda path: commit(path, 2).write_bytes(b""),
    "a commit cut short": lambda path: cut_short(commit(path, 2)),
    "a commit of zeros": lambda path: zeros(commit(path, 2)),
    "a data file cut short": lambda path: cut_short(*added(path, 2)),
    "a missing data file": lambda path: added(path, 2)[0].unlink(),
}


@pytest.mark.parametrize("tear", TEARS.values(), ids=TEARS)
def test_a_torn_commit_and_all_after_it_are_taken_back(lake, tear):
    before = DeltaTable(lake.landing, version=1).to_pyarrow_table()
    tear(lake.landing)
    (line,) = mend_tables(lake)
    assert line.startswith("a power cut has torn commit 2 of the table landing")
    after = DeltaTable(lake.landing)
    assert (after.version(), after.to_pyarrow_table()) == (1, before)
    assert not Path(lake.checkpoint).exists(), "what had landed is merged again"
    assert mend_tables(lake) == []
    write_deltalake(lake.landing, before, mode="append")
    assert DeltaTable(lake.landing).version() == 2


def test_a_whole_lake_is_left_as_it_is_also_after_its_files_were_deleted(lake):
    landing = DeltaTable(lake.landing)
    landing.optimize.compact()
    landing.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert not any(file.exists() for file in added(lake.landing, 1))
    landing.create_checkpoint()
    before = {path: path.read_bytes() for path in Path(lake.root).rglob("*") if path.is_file()}
    assert mend_tables(lake) == []
    assert before == {p: p.read_bytes() for p in Path(lake.root).rglob("*") if p.is_file()}


@pytest.mark.parametrize("pattern", ["*.checkpoint.parquet", "_last_checkpoint"])
def test_a_torn_summary_of_commits_is_dropped(lake, pattern):
    rows = DeltaTable(lake.landing).to_pyarrow_table()
    DeltaTable(lake.landing).create_checkpoint()
    (torn,) = Path(lake.landing, "_delta_log").glob(pattern)
    torn.write_bytes(b"")
    assert mend_tables(lake) == []
    assert not torn.exists()
    assert DeltaTable(lake.landing).to_pyarrow_table() == rows


def test_where_the_first_commit_is_torn_the_table_is_made_anew(lake):
    commit(lake.windows, 0).write_bytes(b"")
    prepare(PROGRAM, lake)
    assert outdated_windows(PROGRAM, lake) == []
    assert DeltaTable(lake.windows).version() == 0


def test_what_is_made_durable_is_each_file_of_each_new_commit(lake, monkeypatch):
    synced = set()

    def sync(descriptor):
        synced.add(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr(os, "fsync", sync)
    assert make_durable(lake.landing, 1) == 3
    folders = {Path(lake.landing), Path(lake.landing, "_delta_log")}
    files = {commit(lake.landing, version) for version in (2, 3)}
    files |= {file for version in (2, 3) for file in added(lake.landing, version)}
    assert synced == folders | files
    assert make_durable(lake.landing, 3) == 3


def test_a_lake_elsewhere_is_left_alone():
    assert mend_tables(LakeTables("s3a://bucket/lake")) == []
