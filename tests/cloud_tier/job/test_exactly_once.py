"""Exactly once: whatever happens between two commits, the lake says the same in the end.

The same means: the windows' integers and devices are those of a recomputation from the readings,
revisions count without a gap, and a window becomes final once at most.
"""

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import StreamingQueryException

from cloud_tier.job import maintenance, streaming
from cloud_tier.job.job import Job
from cloud_tier.job.opened import OpenTables
from cloud_tier.lake.checkpoint import mend
from cloud_tier.lake.definitions import prepare
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    SECOND_US,
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
NEVER = streaming.Upkeep(1_000_000, 1_000_000, 1_000_000)


class KilledError(Exception):
    """The process ends here."""


class Commits:
    """Counts commits, and ends the process after some number of them.

    Attributes:
        left: how many may still be made; None for all.
    """

    def __init__(self, patch):
        self.left = None
        for name in ("append", "pack", "vacuum"):
            patch.setattr(OpenTables, name, self.counted(getattr(OpenTables, name)))
        patch.setattr(maintenance, "compact", self.counted(maintenance.compact))

    def counted(self, commit):
        def act(*words, **options):
            done = commit(*words, **options)
            if self.left is not None:
                self.left -= 1
                if self.left == 0:
                    raise KilledError
            return done

        return act


class Trial:
    """A lake, what lands in it, and a job that is started again and again."""

    def __init__(self, spark, folder):
        self.lake = LakeUnderTest(spark, PROGRAM, folder)
        prepare(PROGRAM, self.tables)
        rows = history(PROGRAM, READINGS)
        size = -(-len(rows) // 6)
        self.parts = [
            [*rows[start : start + size], tick(start + 1, BEGIN_US + start * SECOND_US)]
            for start in range(0, len(rows), size)
        ]

    @property
    def tables(self):
        return self.lake.lake

    def land(self, rows=None):
        """Land the next part, or these rows."""
        self.last = self.parts.pop(0) if rows is None else rows
        landed = table(PROGRAM, self.last)
        write_deltalake(self.tables.landing, landed, mode="append", schema_mode="merge")

    def merge(self):
        """Start a job as its command does, and have it merge all that has landed."""
        prepare(PROGRAM, self.tables)
        mend(self.tables)
        job = Job(PROGRAM, self.tables)
        query = streaming.start(self.lake.spark, job, lambda _: None, trigger_s=0.05, upkeep=NEVER)
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    def check(self):
        """Land and merge the rest, and compare with the recomputation."""
        while self.parts:
            self.land()
        self.merge()
        assert self.lake.current() == true_windows(PROGRAM, READINGS)
        histories = self.lake.statuses().values()
        assert max(each.count("final") for each in histories) <= 1


@pytest.fixture
def trial(spark, tmp_path):
    return Trial(spark, tmp_path)


@pytest.mark.slow
def test_killed_before_between_and_after_the_commits_of_a_step(trial, monkeypatch):
    """Each start does the torn batch again, and is killed in the next one, a commit later."""
    seen, plain = set(), streaming.step

    def step(batch, batch_id, job, known):
        commits.left = None if batch_id in seen else limit
        seen.add(batch_id)
        if commits.left == 0:
            raise KilledError
        return plain(batch, batch_id, job, known)

    with monkeypatch.context() as patch:
        commits = Commits(patch)
        patch.setattr(streaming, "step", step)
        for limit in range(4):  # noqa: B007 - `step` looks at it
            trial.land()
            with pytest.raises(StreamingQueryException, match="KilledError"):
                trial.merge()
    assert seen == {0, 1, 2, 3}
    trial.check()


def lost_checkpoint(trial):
    """It reads everything again, in one batch, with what is new."""
    shutil.rmtree(trial.tables.checkpoint)


def torn_offsets(trial):
    newest = max(Path(trial.tables.checkpoint, "offsets").glob("[0-9]*"), key=lambda f: int(f.name))
    newest.write_text("v1\n{")


def landed_twice(trial):
    """Two landers, or one whose lake was restored, land the same rows."""
    trial.land(history(PROGRAM, READINGS)[::3])
    trial.land(history(PROGRAM, READINGS)[::3])


def power_cut(trial):
    """The newest commits are torn. No device has their acknowledgement, so they land again."""
    for name in ("landing", "lattice", "windows", "globals"):
        max(Path(trial.tables.root, name, "_delta_log").glob("*.json")).write_bytes(b"")
    trial.parts.append(trial.last)


def killed_in_maintenance(trial):
    """Between two commits: of putting files together, then of deleting what is old."""
    for path in trial.tables.grown:
        DeltaTable(path).alter.set_table_properties(
            {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
        )
    spark, job = trial.lake.spark, trial.lake.job
    files = set(Path(trial.tables.root).rglob("*.parquet"))
    for keep in (lambda: maintenance.maintain(spark, job), lambda: maintenance.vacuum(job)):
        with pytest.MonkeyPatch.context() as patch:
            Commits(patch).left = 2
            with pytest.raises(KilledError):
                keep()
    assert files - set(Path(trial.tables.root).rglob("*.parquet")), "something was deleted"


ACCIDENTS = [
    [lost_checkpoint],
    [torn_offsets, landed_twice],
    [killed_in_maintenance],
    [power_cut],
]
"""Those of one list happen between two merges."""


@pytest.mark.slow
def test_accidents_while_no_job_runs_one_after_the_other(trial):
    """Each finds new rows and what the job made of those before it."""
    for accidents in ACCIDENTS:
        trial.land()
        trial.merge()
        for accident in accidents:
            accident(trial)
        prepare(PROGRAM, trial.tables)  # as a lander does when it starts
    trial.check()
