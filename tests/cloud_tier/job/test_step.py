from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cloud_tier.job import frames
from cloud_tier.job import step as steps
from cloud_tier.job.job import Job
from cloud_tier.job.maintenance import compact, pack
from cloud_tier.job.repair import repair
from cloud_tier.lake.coverage import recorded_frontier
from cloud_tier.lake.definitions import record
from lasp_edge import Program, folds
from simulations.oracle import Reading
from tests.cloud_tier.lakes import LakeUnderTest, batches
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    SECOND_US,
    Device,
    history,
    readings_of,
    rooms,
    tick,
    true_windows,
)

pytestmark = pytest.mark.spark

PROGRAM = rooms()
START_US = BEGIN_US + 20 * SECOND_US  # a multiple of every slide
MINUTE_US = 60 * SECOND_US


def seconds(count):
    return count * SECOND_US


@pytest.fixture
def lake(spark, tmp_path):
    return LakeUnderTest(spark, PROGRAM, tmp_path, roster=["pi-0"])


def read(device, value, at_s, room="attic", *, variable=False):
    """Return the panes that one reading makes, and perhaps the entry of the variable."""
    tags = {"room": room}
    *panes, entry = device.accept(
        [Reading(device.name, "temperature", value, START_US + seconds(at_s), tags)]
    )
    return [*panes, entry] if variable else panes


def test_shuffled_repeated_and_rebatched_rows_give_the_true_windows(spark, tmp_path, monkeypatch):
    """However few rows a step reads into the driver: the others go through Spark as they lie.

    And one batch after a restart, as under a fresh checkpoint, changes nothing.
    """
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    seed, usual = 0, frames.MOST_ROWS
    readings = readings_of(seed)
    rows = history(PROGRAM, readings, seed) + [tick(n, BEGIN_US + seconds(100 + n)) for n in (1, 2)]
    for batch, most in zip(batches(rows, seed, count=3), (usual, 0, usual), strict=True):
        monkeypatch.setattr(frames, "MOST_ROWS", most)
        lake.step(batch)
    assert lake.current() == true_windows(PROGRAM, readings), f"replay with seed={seed}"
    assert max(s.count("final") for s in lake.statuses().values()) <= 1
    before = lake.rows(lake.lake.windows)
    lake.restart()
    outcome = lake.step(rows)
    assert outcome.windows == outcome.globals == 0
    assert lake.rows(lake.lake.windows) == before


def test_window_goes_from_tentative_to_final_to_revised(lake):
    """And the frontier is recorded with what it made final, or with nothing."""
    device, early_us = Device(PROGRAM, "pi-0"), START_US - MINUTE_US
    lake.step([*read(device, 20.0, 1), device.promise(early_us, BEGIN_US), tick(1, BEGIN_US)])
    assert {row["status"] for row in lake.rows(lake.lake.windows)} == {"tentative"}
    known = lake.known
    lake.restart()
    assert lake.known._replace(control=known.control, is_first=False) == known
    assert known.frontier == recorded_frontier(lake.lake) == early_us
    lake.step([device.promise(START_US + MINUTE_US - 1, BEGIN_US)])
    assert lake.statuses()["by_room", "attic", START_US] == ["tentative"]
    lake.step([device.promise(START_US + MINUTE_US, BEGIN_US)])
    assert lake.known.frontier == recorded_frontier(lake.lake) == START_US + MINUTE_US
    late = [*read(device, 30.0, 2), *read(device, 20.0, 2, "cellar", variable=True)]
    lake.step(late)
    rows = lake.revisions("by_room", START_US, "attic")
    assert [row["status"] for row in rows] == ["tentative", "final", "revised"]
    assert [row["revision"] for row in rows] == [0, 1, 2]
    assert [int(row["total_q"]) for row in rows] == [2000, 2000, 5000]
    assert [row["frontier"] for row in rows] == [early_us, *[START_US + MINUTE_US] * 2]
    # The first reading of a room is behind the frontier.
    assert [r["status"] for r in lake.revisions("by_room", START_US, "cellar")] == ["final"]
    before = [lake.version(path) for path in (lake.lake.windows, lake.lake.globals)]
    lake.step(late)
    assert [lake.version(path) for path in (lake.lake.windows, lake.lake.globals)] == before
    lose_history(lake.lake.windows)
    assert recorded_frontier(lake.lake) == START_US + MINUTE_US


def lose_history(path):
    """Have a table be one file, and forget all commits but the last."""
    table = DeltaTable(path)
    assert table.optimize.compact()["numFilesRemoved"] > 1
    table.create_checkpoint()
    for commit in sorted(Path(path, "_delta_log").glob("*.json"))[:-1]:
        commit.unlink()


def test_what_a_former_program_passed_over_becomes_final_when_the_newer_one_is_back(lake):
    former = Program("rooms")
    temperature = former.event("temperature", resolution="0.01", unit="°C")
    former.window("totals", source=temperature, fold=folds.sum(), size_s=30)
    device, end_us = Device(PROGRAM, "pi-0"), START_US + 5 * MINUTE_US
    lake.step([*read(device, 20.0, 1), *read(device, 21.0, 31), tick(1, START_US)])
    newer, lake.job = lake.job, Job(former.plan(), lake.lake)
    lake.restart()
    lake.step([device.promise(end_us, end_us), tick(2, end_us)])
    ended = {at[0] for at, statuses in lake.statuses().items() if "final" in statuses}
    assert ended == {"totals"}
    lake.job = newer
    for number in (3, 4):
        lake.restart()
        lake.step([tick(number, end_us + number)])
    assert {tuple(each) for each in lake.statuses().values()} == {("tentative", "final")}
    outcome = lake.step([tick(5, end_us + 5)])
    assert (outcome.windows, lake.known.passed) == (0, None)


@pytest.mark.parametrize("most", [frames.MOST_ROWS, 0])
def test_a_tentative_row_lists_the_devices_that_it_waits_for(spark, tmp_path, monkeypatch, most):
    """Nobody, while no device has sent all that belongs to it."""
    monkeypatch.setattr(frames, "MOST_ROWS", most)
    lake = LakeUnderTest(spark, PROGRAM, tmp_path, roster=["pi-0", "pi-1", "pi-2", "pi-3"])
    devices = [Device(PROGRAM, f"pi-{number}") for number in range(3)]
    now_us = START_US + 4 * MINUTE_US
    rows = [tick(1, now_us, now_us)]
    for device, low_s in zip(devices, (95, 65, 75), strict=True):
        rows += [row for at_s in range(0, 120, 30) for row in read(device, 20.0, at_s)]
        rows.append(device.promise(START_US + seconds(low_s), now_us))
    lake.step(rows)
    found = [lake.revisions("by_room", START_US + seconds(at), "attic") for at in (0, 10, 20, 40)]
    listed = [row["excluded"] for (row,) in found]
    assert listed == ["pi-3", "pi-1,pi-3", "pi-1,pi-2,pi-3", ""]
    assert [(row["devices_awaited"], row["devices_excluded"]) for (row,) in found] == [
        *((number, 0) for number in (1, 2, 3, 0)),
    ]


def test_row_records_who_was_expected_and_of_a_thousand_dead_ones_eight_names(spark, tmp_path):
    dead = [f"pi-{number}" for number in range(1, 1_001)]
    lake = LakeUnderTest(spark, PROGRAM, tmp_path, roster=["pi-0", *dead])
    device = Device(PROGRAM, "pi-0")
    lake.step([*read(device, 20.0, 1), tick(1, BEGIN_US + 2 * MINUTE_US, BEGIN_US)])
    lake.step([device.promise(START_US + MINUTE_US, BEGIN_US + 2 * MINUTE_US)])
    first, final = lake.revisions("by_room", START_US, "attic")
    assert (first["status"], final["status"]) == ("tentative", "final")
    assert (final["devices_in"], final["devices_expected"]) == (1, 1_001)
    assert (final["devices_awaited"], final["devices_excluded"]) == (0, 1_000)
    assert final["excluded"].split(",") == sorted(dead)[:8]


@pytest.mark.parametrize("is_later", [False, True])
def test_a_row_tells_that_it_begins_before_the_lake_had_its_window(spark, tmp_path, is_later):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    if is_later:
        before = Program(PROGRAM.name)
        before.window("before", source=before.event("rain"), fold=folds.sum(), size_s=60)
        record(before.plan(), lake.lake)
    record(PROGRAM, lake.lake)
    lake.step(read(Device(PROGRAM, "pi-0"), 20.0, 1))
    covered = {row["covered"] for row in lake.rows(lake.lake.windows)}
    assert covered == {not is_later}


def test_a_row_that_begins_when_the_lake_got_its_window_is_covered(spark, tmp_path):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    vars(lake.job)["since_us"] = dict.fromkeys(PROGRAM.windows, START_US)
    lake.step([row for at_s in (1, -50) for row in read(Device(PROGRAM, "pi-0"), 20.0, at_s)])
    found = {(row["start_us"], row["covered"]) for row in lake.rows(lake.lake.windows)}
    assert (START_US, True) in found
    assert all(covered == (start_us >= START_US) for start_us, covered in found)
    assert {covered for _, covered in found} == {False, True}


def test_further_device_is_counted_though_the_minimum_stays(spark, tmp_path):
    program = Program("p")
    event = program.event("temperature", resolution="0.01")
    program.window("least", source=event, fold=folds.min(), size_s=60)
    program = program.plan()
    lake = LakeUnderTest(spark, program, tmp_path)
    for name, value in (("pi-0", 20.0), ("pi-1", 21.0)):
        reading = Reading(name, "temperature", value, START_US, {})
        lake.step(_plain_device(program, name)([reading]))
    rows = lake.revisions("least", START_US // MINUTE_US * MINUTE_US)
    assert [(row["min_q"], row["devices_in"]) for row in rows] == [(2000, 1), (2000, 2)]


def test_restarted_device_adds_to_what_its_earlier_life_counted(lake):
    device = Device(PROGRAM, "pi-0")
    rows = read(device, 20.0, 1)
    device.start()
    lake.step(rows + read(device, 30.0, 2))
    (row,) = lake.revisions("by_room", START_US, "attic")
    assert (int(row["count"]), int(row["total_q"]), row["devices_in"]) == (2, 5000, 1)


def test_floor_lets_old_windows_be(spark, tmp_path):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path, roster=["pi-0"], retain_us=MINUTE_US)
    device = Device(PROGRAM, "pi-0")
    rows = read(device, 20.0, 1)
    lake.step([*rows, device.promise(START_US + 4 * MINUTE_US, BEGIN_US), tick(1, BEGIN_US)])
    before = lake.rows(lake.lake.windows)
    assert {row["status"] for row in before} == {"final"}, "what F passes at once is made final"
    assert lake.step(read(device, 30.0, 2)).too_late == len(PROGRAM.windows)
    assert lake.rows(lake.lake.windows) == before
    assert repair(lake.spark, lake.job, lake.known) == 0


def test_window_takes_late_readings_until_its_end_is_out_of_retention(spark, tmp_path):
    """The frontier is at 240 s and 60 s are retained: [160, 180) is the first window of 20 s."""
    program = Program("p")
    event = program.event("temperature", resolution="0.01")
    program.window("totals", source=event, fold=folds.sum(), size_s=20)
    lake = LakeUnderTest(spark, program.plan(), tmp_path, roster=["pi-0"], retain_us=MINUTE_US)
    device = Device(PROGRAM, "pi-0")
    lake.step([device.promise(START_US + 4 * MINUTE_US, BEGIN_US), tick(1, BEGIN_US)])
    sent = _plain_device(lake.program)
    for at_s, missed in ((159, 1), (160, 0)):
        late = Reading("pi-0", "temperature", 5, START_US + seconds(at_s), {})
        outcome = lake.step(sent([late]))
        assert (outcome.too_late, outcome.windows) == (missed, 1 - missed)


def test_window_that_is_longer_than_retention_becomes_final(spark, tmp_path):
    program = Program("p")
    event = program.event("temperature", resolution="0.01")
    program.window("hours", source=event, fold=folds.sum(), size_s=3_600)
    lake = LakeUnderTest(spark, program.plan(), tmp_path, roster=["pi-0"], retain_us=MINUTE_US)
    start_us = START_US // (60 * MINUTE_US) * 60 * MINUTE_US
    device = Device(lake.program, "pi-0")
    device.variable = dict
    reading = Reading("pi-0", "temperature", 5, start_us, {})
    lake.step([row for row in device.accept([reading]) if row])
    lake.step([device.promise(start_us + 30 * MINUTE_US, BEGIN_US), tick(1, BEGIN_US)])
    lake.step([device.promise(start_us + 60 * MINUTE_US, BEGIN_US)])
    assert lake.statuses()["hours", "", start_us] == ["tentative", "final"]


def test_batch_that_died_between_commits_is_done_again(lake, monkeypatch):
    device, end_us = Device(PROGRAM, "pi-0"), START_US + 2 * MINUTE_US
    rows = read(device, 20.0, 1, variable=True)
    rows += [device.promise(end_us, BEGIN_US), tick(1, BEGIN_US)]

    def die(*_):
        raise RuntimeError("killed")

    for dies_in in ("append_windows", "append_globals"):
        with monkeypatch.context() as patch:
            patch.setattr(steps, dies_in, die)
            with pytest.raises(RuntimeError, match="killed"):
                lake.step(rows)
        lake.restart()
    lake.step(rows)
    assert lake.current() == true_windows(PROGRAM, device.readings)
    final_at_once = {tuple(each) for each in lake.statuses().values()}
    assert final_at_once == {("final",)}, "nothing was revised by doing it again"
    assert len(lake.rows(lake.lake.globals)) == 1
    assert lake.known.frontier == end_us


def test_empty_batch_does_nothing(lake):
    lake.step([])
    assert lake.version(lake.lake.lattice) == 0


def test_panes_of_unknown_streams_are_kept_and_change_nothing(lake):
    rows = read(Device(PROGRAM, "pi-0"), 20.0, 1)
    strange = [row | {"stream": 5} for row in rows if row["kind"] == "pane"]
    assert lake.step(strange).windows == 0
    assert len(lake.rows(lake.lake.lattice)) == len(strange)


def test_compaction_keeps_the_merged_view_and_repair_finds_nothing_to_do(lake):
    readings = readings_of(3)
    rows = history(PROGRAM, readings)
    for batch in batches(rows, 3, count=2):
        lake.step([*batch, tick(len(batch), BEGIN_US)])
    before = lake.rows(lake.lake.lattice)
    dates = {str(row["pane_date"]) for row in before}
    assert lake.job.tables.files(lake.lake.lattice).num_rows > len(dates)
    pack(lake.job)
    assert lake.job.tables.files(lake.lake.lattice).num_rows == len(dates)
    assert Counter(map(repr, lake.rows(lake.lake.lattice))) == Counter(map(repr, before))
    compact(lake.spark, lake.job, sorted(dates))
    assert lake.job.tables.files(lake.lake.lattice).num_rows == len(dates)
    after = lake.rows(lake.lake.lattice)
    assert len(after) < len(before)
    entries = [tuple(row[name] for name in ENTRY) for row in after if row["kind"] != "promise"]
    assert len(set(entries)) == len(entries)
    assert _promises(after) == newest_and_furthest(_promises(before))
    assert repair(lake.spark, lake.job, lake.known) == 0
    known = lake.known
    lake.restart()
    assert lake.known._replace(control=known.control, is_first=False) == known
    lake.step(rows)
    assert lake.current() == true_windows(PROGRAM, readings)


ENTRY = ("kind", "stream", "key", "pane_us", "device", "incarnation", "nonce")


def _promises(rows):
    """Return (device, life and number, low watermark) of all promises."""
    version = ("incarnation", "nonce", "seq")
    promises = [row for row in rows if row["kind"] == "promise"]
    return {
        (row["device"], tuple(row[name] for name in version), row["low_us"]) for row in promises
    }


def newest_and_furthest(promises):
    """Return the newest promise of each device, and the one that was greater, if any was."""
    kept = set()
    for device in {device for device, _, _ in promises}:
        of_device = [each for each in promises if each[0] == device]
        newest = max(of_device, key=lambda each: each[1])
        furthest = max(of_device, key=lambda each: (each[2], each[1]))
        kept |= {newest} | ({furthest} if furthest[2] > newest[2] else set())
    return kept


def _plain_device(program, name="pi-0"):
    device = Device(program, name)
    device.variable = dict
    return lambda readings: [row for row in device.accept(readings) if row]
