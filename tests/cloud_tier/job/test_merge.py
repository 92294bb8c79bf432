import datetime as dt
import itertools
import math
from collections import Counter
from decimal import Decimal

import pytest
from pyspark.errors import PySparkException

from cloud_tier.job import merge, windows
from cloud_tier.job.combination import combined
from cloud_tier.job.control import ControlState
from cloud_tier.job.finality import finality_of
from cloud_tier.job.formed import StepWindows
from cloud_tier.job.frames import frames
from cloud_tier.job.lives import DeviceLives
from cloud_tier.job.starts import RecomputedStarts
from cloud_tier.job.stored import read
from cloud_tier.lake.sqltext import literal
from lasp_edge import Program, folds
from lasp_edge.folds.columns import Column, Op
from lasp_edge.protocol.frontier import NOTHING_HEARD
from lasp_edge.protocol.waiting import WindowWaiting
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, Device, rooms, row, table

pytestmark = pytest.mark.spark

PROGRAM = rooms()
NAMES = tuple(PROGRAM.columns)


@pytest.fixture
def joined(spark):
    """Joins panes as a batch is joined; compaction's way, with fewer columns, gives the same."""

    def join(rows):
        frame = spark.createDataFrame(table(PROGRAM, rows))
        found, alike = (
            sorted((row.asDict() for row in join(frame, NAMES).collect()), key=repr)
            for join in (merge.joined, merge.joined_panes)
        )
        assert found == alike
        return found

    return join


def test_panes_of_many_replicas_and_keys_are_joined_alike(joined):
    rows = [
        row(
            "pane",
            f"pi-{n % 3}",
            1 + n % 2,
            n % 5,
            n // 7,
            stream=n % 4 - 2,
            key=f"room {n % 2}",
            pane_us=BEGIN_US + n % 3,
            received_us=1_000 - n,
            count=n,
            total_q=n * n,
        )
        for n in range(300)
    ]
    assert len(joined(rows)) == len(
        {
            (r["device"], r["incarnation"], r["nonce"], r["stream"], r["key"], r["pane_us"])
            for r in rows
        }
    )


@pytest.fixture
def latest(spark):
    def join(rows):
        frame = spark.createDataFrame(table(PROGRAM, rows))
        return [row.asDict() for row in merge.latest(merge.joined(frame, NAMES), NAMES).collect()]

    return join


def pane(seq, incarnation=1, nonce=7, **parts):
    return row("pane", "pi-0", incarnation, nonce, seq, stream=5, pane_us=BEGIN_US, **parts)


def test_greatest_seq_of_a_replica_wins_whole(joined):
    rows = [pane(1, count=1, total_q=9), pane(3, count=3, total_q=1), pane(2, count=2, total_q=5)]
    for order in itertools.permutations(rows):
        (found,) = joined(order)
        assert (found["seq"], found["count"], found["total_q"]) == (3, 3, 1)


def test_replicas_of_one_device_stand_side_by_side(joined):
    rows = [pane(9, nonce=1, count=1), pane(1, nonce=2, count=2), pane(1, incarnation=2, count=3)]
    assert sorted(found["count"] for found in joined(rows)) == [1, 2, 3]


def test_newest_part_may_be_absent(joined):
    (found,) = joined([pane(1, min_q=5, max_q=5), pane(2, max_q=7)])
    assert (found["min_q"], found["max_q"]) == (None, 7)


def test_payload_of_a_cloned_replica_is_never_torn_and_does_not_depend_on_order(joined):
    clones = [pane(4, count=n, total_q=100 * n, min_q=None if n % 2 else n) for n in range(1, 9)]
    found = [joined(order)[0] for order in (clones, clones[::-1], clones[3:] + clones[:3])]
    assert found[0] == found[1] == found[2]
    assert found[0]["total_q"] == 100 * found[0]["count"]


def test_null_and_value_are_told_apart_by_the_tie(joined):
    one, other = pane(4, min_q=3), pane(4, max_q=3)
    assert joined([one, other]) == joined([other, one])


def test_greatest_limits_fit_the_order(joined):
    big = 2**40 - 1
    (found,) = joined([pane(big - 1, total_q=1), pane(big, total_q=2)])
    assert (found["seq"], found["total_q"]) == (big, 2)


def test_latest_entry_goes_by_incarnation_then_nonce_then_seq(latest):
    versions = [(1, 9, 50), (2, 3, 1), (2, 2**32 - 1, 1), (2, 2**32 - 1, 2), (2**30 - 1, 0, 1)]
    rows = [row("variable", "pi-0", *v, stream=5, count=n) for n, v in enumerate(versions)]
    for end in range(1, len(rows) + 1):
        (found,) = latest(rows[:end][::-1])
        version = (found["incarnation"], found["nonce"], found["seq"])
        assert (version, found["count"]) == (max(versions[:end]), end - 1)


def test_promise_was_heard_when_its_version_first_came(latest):
    def promise(seq, heard):
        return row("promise", "pi-0", 1, 7, seq, low_us=seq, received_us=heard, done=False)

    (found,) = latest([promise(1, 10), promise(2, 70), promise(2, 30), promise(1, 90)])
    assert (found["seq"], found["low_us"], found["received_us"]) == (2, 2, 30)


def test_total_beyond_38_digits_is_an_error_and_never_wraps(spark):
    frame = spark.createDataFrame([(Decimal(9 * 10**37),)] * 2, "total decimal(38,0)")
    with pytest.raises(PySparkException, match=r"(?i)overflow|out.of.range"):
        frame.selectExpr(*combined([Column("total", Op.SUM)])).collect()


def test_total_of_many_devices_may_exceed_64_bits(spark):
    frame = spark.createDataFrame([(2**62 - 1,)] * 5, "total bigint")
    (found,) = frame.selectExpr(*combined([Column("total", Op.SUM)])).collect()
    assert int(found["total"]) == 5 * (2**62 - 1)


def test_merge_path_is_hash_aggregation_in_spark_alone(spark, tmp_path):
    """Of many rows; tests/cloud_tier/job/test_sketches.py has it of few."""
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    lake.step(Device(PROGRAM, "pi-0").accept([]))
    lattice, written = read(spark, lake.lake.lattice), read(spark, lake.lake.windows)
    starts = [
        RecomputedStarts(name, None, BEGIN_US, BEGIN_US + 60 * SECOND_US)
        for name in PROGRAM.windows
    ]
    step_windows = StepWindows(lake.job, ControlState.of(lake.job), starts)
    with frames(spark, few=False) as made:
        finality = finality_of(lake.job, 5, NOTHING_HEARD, WindowWaiting({}), DeviceLives())
        views = (made.view(lattice), made.view(written))
        changed = windows.recomputed(made, *views, step_windows, finality).frame()
        for frame in (changed, merge.latest(merge.joined(lattice, NAMES), NAMES)):
            plan = frame._jdf.queryExecution().executedPlan().toString()
            assert "HashAggregate" in plan
            for slow in ("SortAggregate", "ObjectHashAggregate", "Python", "Window ", "Pandas"):
                assert slow not in plan, slow


@pytest.mark.parametrize("text", ["", "it's", "a\\b", 'say "x"', "`", "ümläut", "a\nb", "%_"])
def test_text_becomes_an_sql_literal(spark, text):
    assert spark.sql(f"SELECT {literal(text)}").first()[0] == text


DAY_US = 86_400 * SECOND_US


def dates(spark, rows, of=(), kind="pane"):
    """Return the partitions of (stream, pane_us)."""
    frame = spark.createDataFrame(
        [(kind, *row) for row in rows], "kind string, stream bigint, pane_us bigint"
    )
    return [str(found["pane_date"]) for found in merge.with_date(frame, of).collect()]


def test_panes_fall_on_their_day_also_before_the_epoch(spark):
    times = [-DAY_US, -1, 0, DAY_US - 1, 19_675 * DAY_US]
    expected = ["1969-12-31", "1969-12-31", "1970-01-01", "1970-01-01", "2023-11-14"]
    assert dates(spark, [(1, time_us) for time_us in times]) == expected
    assert dates(spark, [(1, times[-1])], kind="cut") == ["1970-01-01"], "it is no pane"


def test_partition_holds_a_number_of_panes_and_not_a_day(spark):
    """Twenty years of hours are not 7,305 folders, and a day of seconds is one."""
    made = Program("p")
    event = made.event("temperature")
    made.window("hours", source=event, fold=folds.sum(), size_s=3_600)
    made.window("seconds", source=event, fold=folds.sum(), size_s=1)
    of = made.plan().windows
    years = [(of["hours"].stream, n * DAY_US // 2) for n in range(2 * 365 * 20)]
    partitions = Counter(dates(spark, years, of.values()))
    assert len(partitions) == math.ceil(365 * 20 * 24 / (43 * 24)), "1,024 hours are 43 days"
    assert max(partitions.values()) == 2 * 43
    assert {
        (dt.date.fromisoformat(date) - dt.date(1970, 1, 1)).days % 43 for date in partitions
    } == {0}
    day = [(of["seconds"].stream, 19_675 * DAY_US + n * SECOND_US) for n in range(0, 86_400, 600)]
    assert set(dates(spark, day, of.values())) == {"2023-11-14"}
