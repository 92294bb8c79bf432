"""Checkpoints that a power cut has torn: what is taken away, and what is left as it is."""

import json
from pathlib import Path

import pytest

from cloud_tier.lake.checkpoint import Merged, mend, merged, merged_up_to
from cloud_tier.lake.tables import LakeTables

PLANNED = "v1\n{}\n" + json.dumps({"reservoirVersion": 7, "index": -1})
FINISHED = "v1\n{}"


@pytest.fixture
def tables(tmp_path):
    """A lake whose batches 0 and 1 are finished, and 2 was planned."""
    made = LakeTables(tmp_path)
    for folder, numbers, text in (("offsets", (0, 1, 2), PLANNED), ("commits", (0, 1), FINISHED)):
        Path(made.checkpoint, folder).mkdir(parents=True)
        for number in numbers:
            put(made, f"{folder}/{number}", text)
    put(made, "metadata", '{"id":"4"}')
    return made


def put(tables, name, text):
    path = Path(tables.checkpoint, name)
    path.write_text(text)
    path.with_name(f".{path.name}.crc").write_text("crc")


def names(tables):
    root = Path(tables.checkpoint)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_a_whole_checkpoint_is_left_as_it_is(tables):
    before = names(tables)
    assert mend(tables) == ""
    assert names(tables) == before
    assert merged(tables)._replace(last_us=None) == Merged(1, unfinished=True, version=6)


@pytest.mark.parametrize("torn", ["", '{"id":"4', "\0" * 45, None])
def test_torn_metadata_has_all_merged_again(tables, torn):
    if torn is None:
        Path(tables.checkpoint, "metadata").unlink()
    else:
        put(tables, "metadata", torn)
    assert "all that landed is merged again" in mend(tables)
    assert merged(tables) is None
    assert Path(tables.root, "checkpoint.torn", "commits", "1").exists()
    assert mend(tables) == ""


@pytest.mark.parametrize("torn", ["", "v1", "v1\n{}", PLANNED[:-1], "\0" * 90])
def test_torn_offsets_of_an_unfinished_batch_are_planned_again(tables, torn):
    before = names(tables)
    put(tables, "offsets/2", torn)
    assert mend(tables) == "a file of the checkpoint was torn: batch 2 is planned again"
    assert set(before) - set(names(tables)) == {"offsets/2", "offsets/.2.crc"}
    assert merged(tables)._replace(last_us=None) == Merged(1, unfinished=False, version=6)
    assert mend(tables) == ""


@pytest.mark.parametrize("torn", ["", "v1", "v1\n{"])
def test_a_torn_commit_has_its_batch_merged_again(tables, torn):
    put(tables, "commits/1", torn)
    assert "the last batch is merged again" in mend(tables)
    assert merged(tables)._replace(last_us=None) == Merged(0, unfinished=True, version=6)
    assert mend(tables) == ""


def test_torn_offsets_of_a_finished_batch_have_all_merged_again(tables):
    put(tables, "commits/2", FINISHED)
    put(tables, "offsets/2", "")
    assert "all that landed is merged again" in mend(tables)
    assert merged(tables) is None
    assert Path(tables.root, "checkpoint.torn", "commits", "2").exists()


@pytest.mark.parametrize("name", [".", "offsets", "commits"])
def test_a_file_in_place_of_a_folder_has_all_merged_again(tables, name):
    put(tables, "metadata", "")
    mend(tables)  # so that one was kept aside before
    misplaced = Path(tables.checkpoint, name)
    misplaced.parent.mkdir(exist_ok=True)
    misplaced.write_text("")
    assert mend(tables) == (
        "a file of the checkpoint was torn: it is kept as checkpoint.torn, and all that landed is "
        "merged again"
    )
    assert (merged_up_to(tables), merged(tables)) == (-1, None)
    misplaced.parent.mkdir(exist_ok=True)
    misplaced.write_text("")
    mend(tables)
    assert mend(tables) == ""


def test_both_files_of_a_batch_torn_have_it_planned_again(tables):
    put(tables, "commits/2", "")
    put(tables, "offsets/2", "")
    assert "batch 2 is planned again" in mend(tables)
    assert merged(tables)._replace(last_us=None) == Merged(1, unfinished=False, version=6)


def test_a_lake_elsewhere_and_a_new_one_have_nothing_torn(tmp_path):
    for root in ("s3a://bucket/lake", tmp_path):
        assert (mend(LakeTables(root)), merged(LakeTables(root))) == ("", None)
