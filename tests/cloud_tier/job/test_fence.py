"""Two drivers on one lake: Delta refuses the commits of the older one, wherever it was held up."""

import pytest

from cloud_tier.job import frames, merge
from cloud_tier.job.maintenance import compact
from cloud_tier.job.opened import OpenTables, Superseded
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    history,
    readings_of,
    rooms,
    tick,
    true_windows,
)

pytestmark = pytest.mark.spark

PROGRAM = rooms()
READINGS = readings_of(5, each=4)
ROWS = [*history(PROGRAM, READINGS), tick(1, BEGIN_US)]


FROZEN = [("lattice", False), ("windows", False), ("globals", False), ("windows", True)]
"""Before which commits drivers are frozen, and whether what they merge is many rows."""


def merge_frozen(older, newer, rows, table, *, is_many):
    """Have a driver merge rows that another one merges while it is frozen before a commit."""
    usual, number, thawed = frames.MOST_ROWS, OpenTables.next_commit, []

    def frozen(tables, path):
        if tables is older.job.tables and path.endswith(table) and not thawed:
            thawed.append(path)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(frames, "MOST_ROWS", usual)
                newer.restart()
                newer.step(rows)
        return number(tables, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenTables, "next_commit", frozen)
        patch.setattr(frames, "MOST_ROWS", 0 if is_many else usual)
        with pytest.raises(Superseded, match="another `lasp-edge"):
            older.step(rows)
    assert thawed


def test_a_driver_that_was_frozen_before_a_commit_writes_nothing(spark, tmp_path):
    """Its successor merges the same batch meanwhile, and is frozen before a commit of the next."""
    older = LakeUnderTest(spark, PROGRAM, tmp_path)
    older.restart()
    for at, (table, is_many) in enumerate(FROZEN):
        newer, rows = LakeUnderTest(spark, PROGRAM, tmp_path), ROWS[at :: len(FROZEN)]
        merge_frozen(older, newer, rows, table, is_many=is_many)
        assert newer.statuses(), "no revision is there twice"
        assert newer.globals()
        with pytest.raises(Superseded):
            older.step(rows)
        older = newer
    assert older.step(ROWS).windows == 0
    assert older.current() == true_windows(PROGRAM, READINGS)


def test_a_driver_that_was_frozen_in_the_midst_of_a_commit_writes_nothing(
    spark, tmp_path, monkeypatch
):
    """Delta itself refuses it: it had seen that nobody else had claimed the lake."""
    older, newer = (LakeUnderTest(spark, PROGRAM, tmp_path) for _ in range(2))
    older.restart()
    write, thawed = OpenTables._write, []

    def frozen(tables, path, *words):
        if tables is older.job.tables and path.endswith("windows") and not thawed:
            thawed.append(path)
            newer.restart()
            newer.step(ROWS)
        return write(tables, path, *words)

    monkeypatch.setattr(OpenTables, "_write", frozen)
    with pytest.raises(Superseded):
        older.step(ROWS)
    assert newer.current() == true_windows(PROGRAM, READINGS)
    assert max(map(len, newer.statuses().values())) == 1


def test_a_driver_that_was_frozen_while_it_compacts_removes_nothing(spark, tmp_path, monkeypatch):
    """Its successor merges rows of the same partitions meanwhile."""
    older, newer = (LakeUnderTest(spark, PROGRAM, tmp_path) for _ in range(2))
    older.restart()
    older.step(ROWS[::2])
    dates = {str(row["pane_date"]) for row in older.rows(older.lake.lattice)}
    dated, thawed = merge.with_date, []

    def frozen(*words):
        if not thawed:
            thawed.append(words)
            newer.restart()
            newer.step(ROWS[1::2])
        return dated(*words)

    monkeypatch.setattr(merge, "with_date", frozen)
    with pytest.raises(Superseded):
        compact(spark, older.job, sorted(dates))
    assert thawed
    known = newer.known
    newer.restart()
    assert newer.known._replace(control=known.control, is_first=False) == known
    assert newer.step(ROWS).windows == 0
    assert newer.current() == true_windows(PROGRAM, READINGS)


def test_of_two_drivers_that_start_together_one_goes_on(spark, tmp_path, monkeypatch):
    first, second = (LakeUnderTest(spark, PROGRAM, tmp_path) for _ in range(2))
    write, begun = OpenTables._write, []

    def together(tables, path, *words):
        if tables is first.job.tables and path.endswith("lattice") and not begun:
            begun.append(path)
            second.restart()
        return write(tables, path, *words)

    with monkeypatch.context() as patch:
        patch.setattr(OpenTables, "_write", together)
        first.restart()
    first.step(ROWS)
    with pytest.raises(Superseded):
        second.step(ROWS)
