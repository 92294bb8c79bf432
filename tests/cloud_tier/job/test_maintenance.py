"""Maintenance beside a lander that goes on, and how many files the past of a lake is in."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from cloud_tier.job.job import Job
from cloud_tier.job.maintenance import maintain, pack
from cloud_tier.lake.tables import LakeTables
from cloud_tier.lander.landing import Landing
from lasp_edge.protocol.acceptance import Record, Refusal
from lasp_edge.protocol.lake_columns import KEPT_APART
from simulations.benchmarks import cloud_years
from simulations.oracle import Reading
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    SECOND_US,
    Device,
    rooms,
    table,
    true_windows,
)

pytestmark = pytest.mark.spark

PROGRAM = rooms()
SEGMENTS = 12
DAY_US = 86_400 * SECOND_US
PARTITIONS = ("2023-12-04", "2024-01-01", "2024-01-02", "2024-02-02")
"""December is over for a month on the last of these days, and January is not."""


def land_all(lake, rows):
    """Land segments one after the other, each with a row and a frame that was refused."""
    landing = Landing(lake.lake, "busy")
    record = Record(1, "t", retained=False, payload=b"x")
    refused = {("t", "no frame"): Refusal(record, 1)}
    for number, row in enumerate(rows, 1):
        landing.land(number, table(lake.program, [row]), refused)


def test_maintenance_and_a_landers_appends_never_meet(spark, tmp_path):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    device = Device(PROGRAM, "pi-0")
    times_us = [BEGIN_US + n * SECOND_US for n in range(SEGMENTS)]
    rows = [
        device.accept([Reading("pi-0", "temperature", n, time_us, {"room": "attic"})])[0]
        for n, time_us in enumerate(times_us)
    ]
    for row in rows[:2]:
        lake.step([row])
    with ThreadPoolExecutor(1) as pool:
        landing = pool.submit(land_all, lake, rows)
        rounds = 0
        while not (landing.done() and rounds):
            maintain(spark, lake.job)
            pack(lake.job)
            rounds += 1
        landing.result()
    assert len(lake.rows(lake.lake.landing)) == len(lake.rows(lake.lake.rejects)) == SEGMENTS


def test_a_steps_own_tables_are_packed(tmp_path):
    """Each file of theirs takes memory in the driver, which holds them open."""
    job = Job(PROGRAM, LakeTables(tmp_path))
    job.lake.create(PROGRAM.columns)
    appended = (job.lake.lattice, job.lake.windows, job.lake.globals)
    for path in appended * 3:
        job.tables.append(path, pa.table({"stream": [1]}))
    pack(job)
    for path in appended:
        assert job.tables.files(path)["num_records"].to_pylist() == [3]


def test_what_was_put_together_as_it_was_is_joined_all_the_same(spark, tmp_path):
    """A partition of one file may hold repeats, where no step has written since it was packed."""
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    device = Device(PROGRAM, "pi-0")
    for number in range(3):
        reading = Reading("pi-0", "temperature", number, BEGIN_US, {"room": "attic"})
        lake.step(device.accept([reading]))
    entries = len(set(map(_entry, lake.rows(lake.lake.lattice))))
    pack(lake.job)
    assert len(lake.rows(lake.lake.lattice)) > entries
    maintain(spark, lake.job)
    assert len(lake.rows(lake.lake.lattice)) == entries
    at = lake.lake.table(lake.lake.lattice).version()
    maintain(spark, lake.job)
    assert lake.lake.table(lake.lake.lattice).version() == at


def test_days_of_a_month_that_is_over_become_one_partition(spark, tmp_path):
    """One that comes later still counts once, and another joins the month at the next time."""
    lake = LakeUnderTest(spark, PROGRAM, tmp_path, retain_us=400 * DAY_US)
    device, parts = Device(PROGRAM, "pi-0"), []
    for day in (*range(20, 48, 4), 48, 49, 80):
        at_us = BEGIN_US // DAY_US * DAY_US + day * DAY_US
        parts += device.accept([Reading("pi-0", "temperature", day, at_us, {"room": "attic"})])
    late = [parts.pop(0), parts[9]]
    lake.step(parts)
    for number in range(2):
        maintain(spark, lake.job)
        dates = {str(row["pane_date"]) for row in lake.rows(lake.lake.lattice)}
        assert dates - {"1970-01-01"} == set(PARTITIONS)
        assert lake.current() == true_windows(PROGRAM, device.readings) or not number
        lake.step(late)
    assert lake.current() == true_windows(PROGRAM, device.readings)


def _entry(row):
    return tuple(row[name] for name in (*KEPT_APART, "pane_date"))


def test_two_years_of_hours_and_a_day_at_ten_readings_a_second_are_few_files(spark, tmp_path):
    """Twenty years are ten times as many: `python -m simulations.benchmarks.cloud_years`."""
    for at, recording in enumerate(cloud_years.recordings(1, years=2, quick=True)):
        replayed = cloud_years.Replayed(spark, recording, tmp_path / str(at))
        assert list(replayed.wrong()) == []
        assert sum(replayed.files.values()) <= cloud_years.MOST_FILES // 10
