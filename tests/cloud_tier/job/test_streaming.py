"""The streaming query over a landing that is written as the lander writes it."""

import pickle
import time
from threading import Timer

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException

from cloud_tier.job import streaming
from cloud_tier.job.bookmark import is_due
from cloud_tier.job.job import Job
from cloud_tier.job.run import Progress, Run
from cloud_tier.job.step import MergedState, Outcome
from cloud_tier.job.watching import BatchWatch
from cloud_tier.lake.definitions import note_made, outdated_windows, record
from cloud_tier.lake.failed import noted_failure
from cloud_tier.lake.held import noted_held
from cloud_tier.lake.tables import BOOKMARK, LakeTables
from lasp_edge import Program, folds
from lasp_edge.errors import CommandError, UsageError
from lasp_edge.ordered.stalls import RefusedPart
from lasp_edge.protocol.frontier import Coverage
from lasp_edge.tool.local_events import refused_part
from simulations.oracle import Reading
from tests.brokers import PATIENCE_S
from tests.cloud_tier.lakes import LakeUnderTest, batches
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    SECOND_US,
    Device,
    history,
    readings_of,
    rooms,
    row,
    table,
    tick,
    true_windows,
)

pytestmark = pytest.mark.spark

PROGRAM = rooms()


def land(lake, rows):
    write_deltalake(
        lake.lake.landing, table(lake.program, rows), mode="append", schema_mode="merge"
    )


class Merged:
    """Runs a job until everything that has landed is merged."""

    def __init__(self, lake, **options):
        self.outcomes = []
        self.query = streaming.start(
            lake.spark, lake.job, self.outcomes.append, trigger_s=0.05, **options
        )

    def __enter__(self):
        self.query.processAllAvailable()
        return self.outcomes

    def __exit__(self, *_):
        self.query.stop()


def test_job_killed_and_started_again_gives_the_true_windows(spark, tmp_path):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    readings = readings_of(11)
    first, second, third = batches([*history(PROGRAM, readings), tick(1, BEGIN_US)], 11, 3)
    land(lake, first)
    with Merged(lake, upkeep=streaming.Upkeep(maintain_every=1, vacuum_every=1)):
        land(lake, second)
    marks = {row["seq"] for row in lake.rows(lake.lake.lattice) if row["kind"] == BOOKMARK}
    assert len(marks) == 1, "the newest bookmark replaces all others"
    assert not is_due(lake.job)
    land(lake, third)
    with Merged(lake):
        pass
    assert lake.current() == true_windows(PROGRAM, readings)
    before = lake.rows(lake.lake.windows)

    # What is put together in landing arrives as nothing.
    assert DeltaTable(lake.lake.landing).optimize.compact()["numFilesRemoved"] > 1
    with Merged(lake) as outcomes:
        assert sum(outcome.panes for outcome in outcomes) == 0

    # A fresh checkpoint over the same lake reads everything again, and changes nothing.
    for path in sorted(tmp_path.glob("checkpoint/**/*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with Merged(lake) as outcomes:
        assert sum(outcome.panes for outcome in outcomes) > 0
        assert sum(outcome.windows for outcome in outcomes) == 0
    assert lake.rows(lake.lake.windows) == before


@pytest.mark.parametrize("finished", [0, 1])
def test_a_driver_killed_while_it_plans_a_batch_leaves_nothing_that_stops_the_next(
    spark, tmp_path, finished
):
    """Spark writes a plan beside its place, and renames it: what is half written stays there."""
    lake, readings = LakeUnderTest(spark, PROGRAM, tmp_path), readings_of(11)
    *several, last = batches([*history(PROGRAM, readings), tick(1, BEGIN_US)], 11, 2)[-2:]
    for rows in several:
        land(lake, rows)
        if finished:
            with Merged(lake):
                pass
    for folder in ("offsets", "commits"):
        (tmp_path / "checkpoint" / folder).mkdir(parents=True, exist_ok=True)
    for name in (".{}.0b.tmp", "..{}.0b.tmp.crc"):
        left = tmp_path / "checkpoint" / "offsets" / name.format(finished)
        left.write_text('v1\n{"batchWatermarkMs":0,')
    land(lake, last)
    with Merged(lake) as outcomes:
        assert sum(outcome.panes for outcome in outcomes) > 0
    assert lake.current() == true_windows(PROGRAM, readings)


def test_program_that_gains_a_column_goes_on_over_its_lake(spark, tmp_path):
    def program(fold):
        made = Program("p")
        event = made.event("temperature", resolution="0.01")
        made.window("first", source=event, fold=folds.sum(), size_s=10)
        if fold is not None:
            made.window("second", source=event, fold=fold, size_s=10)
        return made.plan()

    def pane(made, window, seq, **parts):
        stream = made.windows[window].stream
        return row("pane", "pi-0", 1, 7, seq, stream=stream, pane_us=BEGIN_US, **parts)

    old = LakeUnderTest(spark, program(None), tmp_path)
    land(old, [pane(old.program, "first", 1, total_q=5)])
    with Merged(old):
        pass
    new = LakeUnderTest(spark, program(folds.max()), tmp_path)
    land(new, [pane(new.program, "second", 2, max_q=9)])
    land(old, [pane(old.program, "first", 3, total_q=6)])  # a lander that was not restarted yet
    with Merged(new):
        pass
    assert new.current() == {
        ("first", "", BEGIN_US): ((6,), 1),
        ("second", "", BEGIN_US): ((9,), 1),
    }


class Feeder:
    """Lands something when it is stopped, as a lander does with what it has logged."""

    def __init__(self, lake, rows):
        self.lake, self.rows, self.watched = lake, rows, 0

    @property
    def runs(self):
        return self.watched > 0

    def watch(self, now_s):
        self.watched += 1

    def stop(self):
        if self.rows:
            land(self.lake, self.rows)
        self.rows = []


def test_run_until_idle_merges_what_the_lander_lands_at_its_end(spark, tmp_path):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path, roster=["pi-0"])
    device = Device(PROGRAM, "pi-0")
    rows = device.accept([Reading("pi-0", "temperature", 20, BEGIN_US, {"room": "attic"})])
    feeder = Feeder(
        lake, [*rows, device.promise(BEGIN_US + SECOND_US, BEGIN_US), tick(1, BEGIN_US)]
    )
    printed = []
    watch = BatchWatch(lake.job, None)
    run = Run(
        spark, lake.job, feeder, trigger_s=0.05, until_idle_s=0.5, say=printed.append, watch=watch
    )
    run.run()
    assert (watch.figures.rows, watch.figures.expected) == (len(rows) + 2, 1)
    assert watch.figures.compiled > 0
    assert feeder.watched
    assert lake.current() == true_windows(PROGRAM, device.readings)
    panes = sum(row["kind"] == "pane" for row in rows)
    final = "final up to 2023-11-14 22:13:01 UTC"
    assert printed[-1] == f"1 device heard, {panes} panes merged, {final}"


def test_run_that_merges_once_ends_while_a_lander_goes_on(spark, tmp_path, monkeypatch):
    """Also where its first try fails: it begins again, and ends when all is merged."""
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    merges, failed = streaming.step, []

    def merge(*batch):
        land(lake, [tick(len(failed) + 2, BEGIN_US)])
        if not failed:
            failed.append(batch)
            raise OSError("the disk is away")
        return merges(*batch)

    monkeypatch.setattr(streaming, "step", merge)
    land(lake, history(PROGRAM, readings_of(5, each=2)))
    Run(spark, lake.job, None, trigger_s=None, say=lambda _: None).run()
    assert failed
    assert noted_failure(lake.lake) is None
    assert lake.current() == true_windows(PROGRAM, readings_of(5, each=2))


def test_a_run_notes_scans_that_stand_beside_the_lake_until_they_go_on(spark, tmp_path):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    land(lake, [tick(1, BEGIN_US)])
    printed = []
    run = Run(spark, lake.job, None, trigger_s=None, say=printed.append)
    known = MergedState.of(lake.job)
    run._progress(Outcome(known, Coverage(None, (), ()), stalls=("odd stands",)))
    assert run._report_progress()
    assert printed[-1].endswith("; odd stands")
    assert noted_held(lake.lake) == ["odd stands"]
    run.run()
    assert "odd" not in printed[-1]
    assert noted_held(lake.lake) == []


def test_query_that_does_not_start_is_tried_again(spark, tmp_path, monkeypatch):
    """And the run ends when it is told to stop."""
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    land(lake, [tick(1, BEGIN_US)])
    plain, tries = streaming.start, []

    def start(*words, **options):
        tries.append(1)
        if len(tries) == 1:
            raise PySparkException("Python worker failed to connect back.")
        return plain(*words, **options)

    monkeypatch.setattr(streaming, "start", start)
    running = Run(spark, lake.job, None, trigger_s=0.05, say=lambda _: running.stop())
    running.run()
    assert len(tries) == 2
    assert noted_failure(lake.lake) is None


def test_a_query_that_waits_for_a_time_that_is_far_ahead_gives_way_once_the_clock_is_set_back(
    spark, tmp_path, monkeypatch
):
    """Spark plans by the wall clock: one that was an hour ahead would hold the job for an hour."""
    lake = LakeUnderTest(spark, PROGRAM, tmp_path, roster=["pi-0"])
    device = Device(PROGRAM, "pi-0")
    first, second = (
        [
            *device.accept([Reading("pi-0", "temperature", 20 + n, at_us, {"room": "attic"})]),
            device.promise(at_us + SECOND_US, at_us),
            tick(n + 1, at_us),
        ]
        for n, at_us in enumerate((BEGIN_US, BEGIN_US + 100 * SECOND_US))
    )
    wall_us = [BEGIN_US + 3_600 * SECOND_US]
    monkeypatch.setattr(
        "cloud_tier.job.run.host_us", lambda: wall_us[0] + time.monotonic_ns() // 1_000
    )
    land(lake, first)

    def printed(_):
        if wall_us[0] > BEGIN_US:
            land(lake, second)
            wall_us[0] = BEGIN_US
        else:
            run.stop()

    run = Run(spark, lake.job, None, trigger_s=3_600, say=printed)
    patience = Timer(PATIENCE_S, run.stop)
    patience.start()
    run.run()
    patience.cancel()
    assert lake.current() == true_windows(PROGRAM, device.readings)


def test_query_that_fails_again_and_again_ends_the_run(spark, tmp_path, monkeypatch):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    land(lake, [tick(1, BEGIN_US)])

    def fail(*_):
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(streaming, "step", fail)
    sleep = time.sleep  # for less than until the next try, but not without end in a loop
    monkeypatch.setattr("cloud_tier.job.run.time.sleep", lambda wait_s: sleep(min(wait_s, 0.05)))
    monkeypatch.setattr("cloud_tier.job.run._MOST_FAILURES", 1)
    with pytest.raises(CommandError, match="failed 2 times"):
        Run(spark, lake.job, None, trigger_s=0.05).run()
    why, times, *_ = noted_failure(lake.lake)
    assert (why.partition(";")[0], times) == ("RuntimeError: the disk is full", 2)


def test_windows_are_outdated_until_a_job_has_made_them_whoever_wrote_the_definition(tmp_path):
    lake = LakeTables(tmp_path)
    lake.create(PROGRAM.columns)
    record(PROGRAM, lake)
    assert outdated_windows(PROGRAM, lake) == []
    other = Program("rooms")
    event = other.event("temperature", resolution="0.01")
    other.window("odd", source=event, fold=folds.max(), size_s=70, slide_s=10)
    other = other.plan()
    for _ in range(2):  # a lander, then a job
        record(other, lake)
        assert outdated_windows(other, lake) == ["odd"]
    note_made(other, lake)
    assert outdated_windows(other, lake) == []
    record(PROGRAM, lake)
    assert outdated_windows(PROGRAM, lake) == list(PROGRAM.windows)


def test_a_window_that_begins_with_a_part_of_its_readings_is_logged(tmp_path, caplog):
    def made(name, fold):
        program = Program("rooms")
        program.window(name, source=program.event("rain"), fold=fold, size_s=70)
        return program.plan()

    lake = LakeTables(tmp_path)
    lake.create(made("a", folds.sum()).columns)
    for plan in (made("a", folds.sum()), made("a", folds.sum())):
        record(plan, lake)
    assert not caplog.messages
    record(made("b", folds.sum()), lake)
    (line,) = caplog.messages
    assert "the window 'b' is new: rows that begin before now may lack readings" in line
    caplog.clear()
    lake.create(made("b", folds.max()).columns)
    record(made("b", folds.max()), lake)
    (line,) = caplog.messages
    assert "the window 'b' is defined otherwise than before" in line


def test_a_lake_of_another_program_is_refused_by_name_and_left_as_it_is(tmp_path):
    lake = LakeTables(tmp_path)
    lake.create(PROGRAM.columns)
    record(PROGRAM, lake)
    before = DeltaTable(lake.programs).version()
    other = Program("garden")
    other.window("odd", source=other.event("rain"), fold=folds.max(), size_s=70)
    with pytest.raises(UsageError, match=r"of the program 'rooms'; give 'garden' a --lake"):
        record(other.plan(), lake)
    assert DeltaTable(lake.programs).version() == before


def test_progress_is_told_only_when_it_changes():
    assert Progress(lambda: 0.0).news() is None


def test_progress_names_a_scan_with_local_events_that_nobody_answers():
    """Devices answer what a gateway publishes: without one such a scan has no row for ever."""
    coverage, known = Coverage(None, (), ()), MergedState.of(Job(PROGRAM, LakeTables("/lake")))
    progress = Progress(lambda: 0.0)
    progress(Outcome(known, coverage))
    assert progress.news() == "0 devices heard, 0 panes merged, nothing final yet"
    progress(Outcome(known, coverage, unanswered=("load",)))
    assert "; load has no row, since no device has answered" in str(progress.news())
    words = refused_part("load", RefusedPart(0, "attic", "TypeError"))
    progress(Outcome(known, coverage, stalls=(words,), holding=("attic", "b", "c", "d")))
    line = "0 devices heard, 0 panes merged, nothing final yet, waiting for attic, b, c, 1 more"
    assert progress.news() == f"{line}; {words}"


def test_job_is_plain_data():
    job = Job(PROGRAM, LakeTables("/lake"), roster=("a", "b"))
    again = pickle.loads(pickle.dumps(job))
    assert (again.roster, again.lake.root, again.names) == (job.roster, job.lake.root, job.names)
    streams = [window.stream for window in job.windows]
    assert [window.stream for window in again.windows] == streams
