"""Recorded data of three Raspberry Pis, through agents, broker, Spark and Delta."""

import random
from fractions import Fraction

import pytest

from tests.end_to_end import support_recorded, tables, truth
from tests.end_to_end.conftest import DEVICES, replayed

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.broker]
SEED = 20200713
REPEATS = 500
PART = slice(29_000, 34_000)
"""The lines that are shuffled; among them is the one that the recording has twice."""


@pytest.fixture(scope="module")
def truths(lines):
    """Every window of the program, by brute force."""
    return {name: tables.expected(truth.windows(lines, name), name) for name in truth.WINDOWS}


@pytest.fixture(scope="module")
def replay(tmp_path_factory, recording, spark):
    return replayed(tmp_path_factory.mktemp("in order"), recording, spark, meanwhile=True)


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory, lines, spark):
    folder = tmp_path_factory.mktemp("shuffled")
    chance = random.Random(SEED)
    mixed = [*lines[PART], *chance.choices(lines[PART], k=REPEATS)]
    chance.shuffle(mixed)
    path = folder / "shuffled.jsonl"
    path.write_text("".join(mixed), encoding="utf-8")
    return replayed(folder, path, spark)


def test_the_brute_force_gives_the_reference(recording, truths):
    rows = truth.of_file(recording.parent / "reference_windows_temp_60s.csv.gz")
    given = {
        ("", row["start_us"], row["end_us"]): truth.Sums(
            row["count"], row["total_q"], row["min_q"], row["max_q"], row["devices_in"]
        )
        for row in rows
    }
    assert len(given) == 8_671
    assert not tables.difference(truths["temp_60s"], given)


@pytest.mark.parametrize("name", truth.WINDOWS)
def test_windows_equal_the_reference_integer_for_integer(replay, truths, name):
    site, _ = replay
    assert not tables.difference(tables.held(site.lake, name), truths[name])


@pytest.mark.parametrize("name", truth.WINDOWS)
def test_deltalake_reads_the_same_rows(replay, truths, name):
    site, _ = replay
    assert not tables.difference(tables.read_independently(site.lake, name), truths[name])


@pytest.mark.parametrize("name", truth.WINDOWS)
def test_every_window_is_final_in_the_end_and_was_once(replay, name):
    site, _ = replay
    assert {row["status"] for row in tables.windows(site.lake, name)} <= {"final", "revised"}
    assert not tables.broken_histories(site.lake, name)


def test_parts_are_lowered_from_the_integers(replay):
    site, _ = replay
    for row in tables.windows(site.lake, "temp_by_device"):
        assert float(row["mean"]) == float(Fraction(int(row["total_q"]), 100 * int(row["count"])))
    for row in tables.windows(site.lake, "temp_60s"):
        assert row["count"] == str(int(row["count"]))
        assert float(row["min"]) == float(f"{int(row['min_q'])}e-2")


def test_last_hundred_of_each_device_equal_the_reference(replay, recording):
    _, reports = replay
    rows = truth.of_file(recording.parent / "reference_last100_temp.csv")
    assert [row["device"] for row in rows] == DEVICES
    for row in rows:
        here = reports[row["device"]]["values"]["last_here"]
        assert all(here[name] == row[name] for name in ("count", "total_q", "min_q", "max_q"))


def test_devices_and_spark_hold_the_same_last_hundred(replay, lines):
    site, reports = replay
    each = truth.last(lines, support_recorded.LAST).values()
    whole = [sum(s.count for s in each), sum(s.total for s in each)]
    whole += [min(s.least for s in each), max(s.greatest for s in each)]
    names = ("count", "total_q", "min_q", "max_q")
    in_the_cloud = tables.fleet_value(site.lake, "last_everywhere")
    assert [int(in_the_cloud[name]) for name in names] == whole
    assert in_the_cloud["devices_in"] == "3"
    for report in reports.values():
        on_device = report["values"]["last_everywhere"]
        assert [on_device[name] for name in names] == whole
        assert on_device["inputs"] == in_the_cloud["inputs"]


def test_each_key_has_the_last_hundred_of_each_device(replay, lines):
    site, reports = replay
    each = truth.last_by_light(lines, support_recorded.LAST)
    in_the_cloud = {
        row["key"]: row
        for row in tables.command("globals", "light_everywhere", "--lake", str(site.lake))
    }
    names = ("count", "total_q", "min_q", "max_q")
    keys = {light for light, _ in each}
    assert len(keys) > 1
    assert keys == in_the_cloud.keys()
    for key in keys:
        devices = [sums for (light, _), sums in each.items() if light == key]
        whole = [sum(s.count for s in devices), sum(s.total for s in devices)]
        whole += [min(s.least for s in devices), max(s.greatest for s in devices)]
        cloud = in_the_cloud[key]
        assert [int(cloud[name]) for name in names] == whole
        assert cloud["devices_in"] == str(len(devices))
        for report in reports.values():
            here = report["values"]["light_everywhere"]["keys"][key]
            assert [here[name] for name in names] == whole
            assert here["inputs"] == cloud["inputs"]


@pytest.mark.parametrize("name", truth.WINDOWS)
def test_shuffled_and_repeated_messages_give_the_same_table(shuffled, lines, name):
    site, _ = shuffled
    expected = tables.expected(truth.windows(lines[PART], name), name)
    wrong = tables.difference(tables.held(site.lake, name), expected)
    assert not wrong, f"seed {SEED}: {wrong}"
    assert not tables.broken_histories(site.lake, name)


def test_every_repeat_is_counted(replay, shuffled, lines):
    _, reports = shuffled
    _, in_order = replay
    repeated = sum(report["repeated"] for report in reports.values())
    events = len(support_recorded.program.plan().events)
    assert sum(report["repeated"] for report in in_order.values()) == events  # one in the file
    assert repeated == events * (REPEATS + 1)
    accepted = sum(report["accepted"] for report in reports.values())
    assert accepted == events * (len(lines[PART]) - 1)
