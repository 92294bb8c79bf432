"""Rows of results in the lake: tentative, final, revised, taken back, and read again."""

from dataclasses import replace

import pytest

from cloud_tier.job import results
from cloud_tier.job.bookmark import put_bookmark
from cloud_tier.job.maintenance import compact
from cloud_tier.lake.coverage import recorded_frontier
from cloud_tier.lake.definitions import record
from cloud_tier.lake.lake import Lake
from lasp_edge import Program, scans
from lasp_edge.ordered.sent_rows import packed_row, row_name
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, row, tick

pytestmark = pytest.mark.spark


def program(*, says=True):
    made = Program("water")
    litres = made.event("litres", resolution="0.5")
    used = made.scan("used", source=litres, scan=scans.differences(), per_device=True)
    made.result(used)
    if says:
        said = made.map(litres, lambda e: ("on", 1), "said")
        made.result(said, parts={"word": "text", "n": "1"})
    return made.plan()


PROGRAM = program()
USED = PROGRAM.stream_results["used"]


@pytest.fixture
def lake(spark, tmp_path):
    made = LakeUnderTest(spark, PROGRAM, tmp_path, roster=["pi-1"])
    record(PROGRAM, made.lake)
    return made


def place_of(at_s, device="pi-1"):
    return (BEGIN_US + at_s * SECOND_US, device, ("litres", "", 7), (0,))


def entry(at_s, parts, seq, *, life=1, key="", device="pi-1", result="used"):
    """Return what a device's life says at a time."""
    place = place_of(at_s, device)
    stream, packed = PROGRAM.stream_results[result].stream, packed_row(place, key, parts)
    where = {"stream": stream, "key": row_name(place), "pane_us": place[0], "said": packed}
    return row("pane", device, life, 5, seq, **where)


def promise(at_s, seq):
    """Return the rows that move the frontier."""
    low_us = BEGIN_US + at_s * SECOND_US
    low = {"low_us": low_us, "done": False, "received_us": BEGIN_US}
    return [row("promise", "pi-1", 1, 5, seq, **low), tick(seq, BEGIN_US + SECOND_US)]


def revisions(lake, name="used", **choice):
    """Return second, key, value, whether it is there, status and revision of all rows."""
    table = Lake(lake.lake.root).results(name).revisions(**choice)
    return [
        (
            (each["time_us"] - BEGIN_US) // SECOND_US,
            each["key"],
            each["difference"],
            each["present"],
            each["status"],
            each["revision"],
        )
        for each in table.to_pylist()
    ]


def current(lake, **choice):
    table = Lake(lake.lake.root).results("used").current(**choice)
    return table.column("difference").to_pylist()


def test_a_row_is_tentative_then_final_then_revised_then_gone(lake):
    lake.step([entry(10, (60,), 1), entry(20, (40,), 2)])
    assert recorded_frontier(lake.lake) is None
    lake.step(promise(11, 3))
    lake.step([entry(10, (80,), 4), entry(20, None, 5)])
    lake.step([*promise(30, 6), entry(10, None, 7)])
    assert revisions(lake) == [
        (10, "", 30.0, True, "tentative", 0),
        (10, "", 30.0, True, "final", 1),
        (10, "", 40.0, True, "revised", 2),
        (10, "", None, False, "revised", 3),
        (20, "", 20.0, True, "tentative", 0),
        (20, "", None, False, "tentative", 1),
        (20, "", None, False, "final", 2),
    ]
    assert current(lake) == []
    at_us = BEGIN_US + 11 * SECOND_US
    assert current(lake, as_of=at_us) == [40.0]
    assert current(lake, as_of=at_us - 1) == [30.0, 20.0]
    assert recorded_frontier(lake.lake) == BEGIN_US + 30 * SECOND_US


def test_a_batch_that_is_done_again_changes_nothing_in_any_order(lake, monkeypatch):
    """Also in chunks of single rows, and by a process that knows nothing of earlier ones."""
    monkeypatch.setattr(results, "MOST_ROWS", 1)
    batch = [entry(at, (at,), at) for at in range(10, 15)]
    batch += [entry(12, (7,), 1, life=2), entry(13, None, 2, life=2)]
    batch += [entry(11, (9,), 1, device="pi-2"), entry(11, ("on", 1), 1, result="said")]
    lake.step([*batch[::-1], *promise(12, 20)])
    before = revisions(lake)
    assert [each[:3] for each in before] == [
        (10, "", 5.0),
        (11, "", 5.5),
        (11, "", 4.5),
        (12, "", 3.5),
        (14, "", 7.0),
    ]
    assert [each[4] for each in before] == ["final"] * 3 + ["tentative"] * 2
    put_bookmark(lake.job, lake.known.frontier, {}, complete=True)
    lake.restart()
    assert lake.known.rows_frontier == BEGIN_US + 12 * SECOND_US
    outcome = lake.step(batch)
    assert outcome.results == 0
    assert revisions(lake) == before
    lake.step([*promise(60, 21)])
    assert {each[4] for each in revisions(lake) if each[0] > 11 and each[5]} == {"final"}
    (word,) = Lake(lake.lake.root).results("said").current(columns=["word", "n"]).to_pylist()
    assert word == {"word": "on", "n": 1}


def test_a_frontier_that_was_passed_before_a_crash_makes_rows_final_after_it(lake, monkeypatch):
    """The step dies after the rows of one result; the next process ends what it began."""
    lake.step([entry(10, (60,), 1), entry(10, ("on", 1), 2, result="said")])
    append = lake.job.tables.append
    with monkeypatch.context() as dying:

        def once(*arguments):
            append(*arguments)
            dying.setattr(lake.job.tables, "append", None)

        seen = []
        dying.setattr(
            lake.job.tables,
            "append",
            lambda path, *rest: (
                once(path, *rest)
                if path == lake.lake.results
                else seen.append(path) or append(path, *rest)
            ),
        )
        with pytest.raises(TypeError):
            lake.step(promise(11, 3))
    lake.restart()
    lake.step(promise(11, 3))
    table = Lake(lake.lake.root).results("said").current(columns=["status"])
    assert table.column("status").to_pylist() == ["final"]
    assert [each[4] for each in revisions(lake)] == ["tentative", "final"]


def test_rows_of_a_result_that_a_program_left_out_become_final_when_it_is_back(lake):
    """What that program noted of its own result says nothing of the other's rows."""
    lake.step([entry(10, (60,), 1), entry(10, ("on", 1), 2, result="said")])
    for plan, at_s in ((program(says=False), 20), (PROGRAM, 30)):
        lake.job = replace(lake.job, plan=plan)
        lake.restart()
        lake.step(promise(at_s, at_s))
        put_bookmark(lake.job, lake.known.frontier, {}, complete=True)
    table = Lake(lake.lake.root).results("said").current(columns=["status"])
    assert table.column("status").to_pylist() == ["final"]


def test_a_row_that_changes_its_key_is_of_the_new_one_alone(lake):
    lake.step([entry(10, (60,), 1, key="kitchen"), entry(20, (2,), 2, key="kitchen")])
    lake.step([entry(10, (60,), 3, key="attic")])
    assert current(lake, key="kitchen") == [1.0]
    assert current(lake, key="attic") == [30.0]
    assert [each[1] for each in revisions(lake)] == ["attic", "kitchen", "kitchen"]
    since = BEGIN_US + 20 * SECOND_US
    assert current(lake, since=since) == [1.0]
    assert current(lake, until=since) == [30.0]


def test_compaction_leaves_the_rows_as_they_are(spark, lake):
    lake.step([entry(10, (60,), 1)])
    lake.step([entry(10, (62,), 2)])
    compact(spark, lake.job, ["2023-11-14"])
    lake.step([entry(10, (60,), 1)])
    assert current(lake) == [31.0]
    lake.step([entry(10, (64,), 3)])
    assert [each[2] for each in revisions(lake)] == [30.0, 31.0, 32.0]
