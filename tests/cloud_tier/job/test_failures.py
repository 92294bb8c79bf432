"""Deletions of ours that took what a job had not read: what a start finds, without Spark."""

import json
import traceback
from pathlib import Path
from types import SimpleNamespace

import pytest
from deltalake import DeltaTable, write_deltalake

from cloud_tier.lake import room
from cloud_tier.lake.deletion import forget
from cloud_tier.lake.matching import Wanted
from tests.cloud_tier.lake.support_promises import ROWS
from tests.cloud_tier.lake.test_status import commit, offset
from tests.cloud_tier.support_devices import BEGIN_US, table, tick
from tests.cloud_tier.written_lakes import PROGRAM, written

pytest.importorskip("pyspark", reason="needs the extra `cloud`")

from cloud_tier.job.failures import advice, after_deletion, reason
from cloud_tier.job.streaming import Batches


@pytest.fixture
def tables(tmp_path):
    """A lake of which a finished batch has read the version 1 of `landing`, and not 2 or 3."""
    made = written(tmp_path / "lake")
    for rows in ([tick(1, BEGIN_US)], ROWS, [tick(2, BEGIN_US)]):
        write_deltalake(made.landing, table(PROGRAM, rows), mode="append")
    offset(made, 0, 2)
    commit(made, 0)
    return made


def test_a_start_reads_all_again_where_forget_took_a_file_that_no_batch_had_read(tables):
    assert after_deletion(tables) == ""
    forget(tables, Wanted(device="slow"))
    assert after_deletion(tables).startswith("`lake forget` deleted from landing at 20")
    assert not Path(tables.checkpoint).exists()
    assert after_deletion(tables) == ""


@pytest.mark.parametrize("is_first", [True, False])
def test_so_does_one_whose_first_batch_was_interrupted(tables, is_first):
    Path(tables.checkpoint, "commits", "0").unlink()
    offset(tables, 0, 3 if is_first else 4)
    planned = Path(tables.checkpoint, "offsets", "0")
    stated = json.dumps(is_first)
    planned.write_text(planned.read_text().replace('Version": false', f'Version": {stated}'))
    assert after_deletion(tables) == ""
    forget(tables, Wanted(device="slow"))
    assert "merged again" in after_deletion(tables)


def test_what_was_read_before_it_was_deleted_leaves_the_checkpoint_as_it_is(tables):
    offset(tables, 0, DeltaTable(tables.landing).version() + 1)
    forget(tables, Wanted(device="slow"))
    assert after_deletion(tables) == ""
    assert Path(tables.checkpoint, "commits", "0").exists()


def test_a_file_that_somebody_else_deleted_is_no_deletion_of_ours(tables):
    landing = DeltaTable(tables.landing)
    landing.alter.set_table_properties({"delta.appendOnly": "false"})
    landing.delete("device = 'slow'")
    landing.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert after_deletion(tables) == ""


def test_a_batch_ends_before_the_disk_is_full_and_says_what_to_type(tables, monkeypatch):
    monkeypatch.setattr(room, "LEAST_FREE_BYTES", 1 << 80)
    batches = Batches(SimpleNamespace(lake=tables, tables=None), lambda _: None)
    with pytest.raises(room.DiskFull) as ended:
        batches(SimpleNamespace(sparkSession=None), 1)
    text = "".join(traceback.format_exception(ended.value))
    assert reason(text).startswith("No space left on device: ")
    assert reason(text).endswith(f"type: df -h {tables.root}")
    assert advice(text, tables) == "make room on the disk, and start the job again"
