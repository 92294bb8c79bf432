"""Folds with binary columns, through the real step: windows that any Delta reader can use."""

import random
from functools import reduce
from shutil import copytree

import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from cloud_tier import Lake
from cloud_tier.job import merge, windows
from cloud_tier.job.control import ControlState
from cloud_tier.job.finality import finality_of
from cloud_tier.job.formed import StepWindows
from cloud_tier.job.frames import frames
from cloud_tier.job.lives import DeviceLives
from cloud_tier.job.maintenance import compact
from cloud_tier.job.repair import repair
from cloud_tier.job.starts import RecomputedStarts
from cloud_tier.job.stored import read
from cloud_tier.lake.definitions import record
from lasp_edge import Program, folds
from lasp_edge.errors import Exit
from lasp_edge.folds.columns import Op
from lasp_edge.folds.hll import estimate
from lasp_edge.folds.packed import PACKED_COUNT_LIMIT, counts_of, packed_counts, top_of
from lasp_edge.protocol.frontier import NOTHING_HEARD
from lasp_edge.protocol.waiting import WindowWaiting
from lasp_edge.tool.command_line import main
from simulations.oracle import Reading
from tests.cloud_tier.lakes import LakeUnderTest, batches
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, Device, row, tick

pytestmark = pytest.mark.spark

MINUTE_US = 60 * SECOND_US


def sketches():
    """A program with every kind of column, and a window without binary ones beside it."""
    program = Program("sketches")
    event = program.event("temperature", resolution="0.01")
    everything = folds.struct(
        mean=folds.mean(),
        var=folds.variance(),
        low=folds.min(),
        first=folds.first(),
        last=folds.last(),
        h=folds.histogram([0, 10, 20]),
        p=folds.quantile(0.5, 0.99),
        few=folds.distinct(8),
        seen=folds.distinct(),
        top=folds.top(3),
        any=folds.any(),
        all=folds.all(),
    )
    program.window(
        "all",
        source=event,
        fold=everything,
        size_s=60,
        slide_s=30,
        key=lambda event: event.tags["room"],
    )
    program.window("plain", source=event, fold=folds.mean(), size_s=60)
    return program.plan()


PROGRAM = sketches()
ALL = PROGRAM.windows["all"]
BINARY = {Op(column.op): column.name for column in ALL.fold.columns if column.binary}


def readings_of(seed, count=900, devices=3):
    draw = random.Random(seed)
    return [
        Reading(
            f"pi-{draw.randrange(devices)}",
            "temperature",
            draw.choice([0.0, draw.randrange(-5_00, 40_00) / 100]),
            BEGIN_US + draw.randrange(200 * SECOND_US),
            {"room": draw.choice(["attic", "attic", "cellar"])},
        )
        for _ in range(count)
    ]


def rows_of(readings):
    """Return what the fleet sends: every device restarts once."""
    rows = []
    for name in sorted({reading.device for reading in readings}):
        own = [reading for reading in readings if reading.device == name]
        device = Device(PROGRAM, name)
        device.variable = dict
        for half in (own[: len(own) // 2], own[len(own) // 2 :]):
            rows += [each for each in device.accept(half) if each]
            device.start()
    return rows


def truth(readings):
    """Return (window, key, start) -> (partial, devices in): lifts, combined one by one."""
    held = {}
    for reading in readings:
        for window in PROGRAM.windows.values():
            key = reading.tags["room"] if window.keyed else ""
            start_us = reading.time_us // window.slide_us * window.slide_us
            while start_us + window.size_us > reading.time_us:
                held.setdefault((window.name, key, start_us), []).append(reading)
                start_us -= window.slide_us
    return {
        at: (
            reduce(
                PROGRAM.windows[at[0]].fold.combine,
                [
                    PROGRAM.windows[at[0]].fold.lift(round(each.value * 100), each.time_us)
                    for each in readings
                ],
            ),
            len({each.device for each in readings}),
        )
        for at, readings in held.items()
    }


@pytest.fixture(scope="module")
def readings():
    return readings_of(1)


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory, readings):
    """A lake that has merged all readings, in two batches with repeats."""
    made = LakeUnderTest(spark, PROGRAM, tmp_path_factory.mktemp("lake"))
    record(PROGRAM, made.lake)
    for batch in batches(rows_of(readings), 1, count=2):
        made.step([*batch, tick(len(batch), BEGIN_US)])
    return made


def test_windows_are_bit_for_bit_those_of_the_edge(lake, readings):
    expected = truth(readings)
    found = lake.current()
    assert found.keys() == expected.keys()
    for at, (partial, devices_in) in expected.items():
        for name, mine, theirs in zip(
            PROGRAM.windows[at[0]].fold.columns_named, found[at][0], partial, strict=True
        ):
            assert mine == theirs, (at, name)
        assert found[at][1] == devices_in
    names = ALL.fold.columns_named
    images = [
        partial[names.index(name)]
        for (window, *_), (partial, _) in found.items()
        for name in names
        if window == "all" and name.endswith(("hll8", "hll12"))
    ]
    assert {image[7] for image in images} >= {9, 10}, "sets and registers are among them"


def test_lowered_windows_are_what_the_readings_say(lake, readings):
    for found in Lake(lake.lake.root).windows("all").current().to_pylist():
        inside = [
            r
            for r in readings
            if found["start_us"] <= r.time_us < found["end_us"] and r.tags["room"] == found["key"]
        ]
        steps = sorted(round(r.value * 100) for r in inside)
        assert sum(counts_of(found[BINARY[Op.COUNTS]]).values()) == len(steps)
        assert top_of(found[BINARY[Op.TOP]]) == tuple(steps[:-4:-1])
        assert estimate(found[BINARY[Op.HLL]]) == len(set(steps)), "exact while they are few"
        ordered = sorted((r.time_us, round(r.value * 100)) for r in inside)
        assert (found["first"], found["last"]) == (ordered[0][1] / 100, ordered[-1][1] / 100)


def test_sketch_column_is_one_of_sparks_own(lake, readings):
    """Spark's estimate reads it, and its union with raw values is that of all values."""
    name = BINARY[Op.HLL]
    table = read(lake.spark, lake.lake.windows).where("window = 'all'")
    current = table.groupBy("key", "start_us").agg({"revision": "max"})
    newest = table.join(
        current.withColumnRenamed("max(revision)", "revision"), ["key", "start_us", "revision"]
    )
    newest.createOrReplaceTempView("sketched")
    found = lake.spark.sql(f"SELECT key, start_us, hll_sketch_estimate({name}) AS n FROM sketched")
    for key, start_us, estimated in found.collect():
        steps = {
            round(r.value * 100)
            for r in readings
            if start_us <= r.time_us < start_us + ALL.size_us and r.tags["room"] == key
        }
        assert abs(estimated - len(steps)) <= 1
    values = [(round(r.value * 100),) for r in readings]
    lake.spark.createDataFrame(values, "q bigint").createOrReplaceTempView("raw")
    both = lake.spark.sql(
        "SELECT hll_sketch_estimate(hll_union_agg(image)) FROM ("
        f"SELECT {name} AS image FROM sketched "
        "UNION ALL SELECT hll_sketch_agg(q, 12) AS image FROM raw)"
    ).first()[0]
    alone = lake.spark.sql("SELECT hll_sketch_estimate(hll_sketch_agg(q, 12)) FROM raw").first()[0]
    true = len(set(values))
    assert both == pytest.approx(true, rel=0.05)
    assert alone == pytest.approx(true, rel=0.05)


def test_tables_with_binary_columns_stay_plain(lake):
    for path in (lake.lake.landing, lake.lake.lattice, lake.lake.windows, lake.lake.globals):
        table = DeltaTable(path)
        protocol = table.protocol()
        assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
        types = {field.name: str(field.type) for field in table.schema().fields}
        assert all("binary" in types[name] for name in BINARY.values())
        assert "long" in types["last_us"]
        assert "long" in types["last_q"]


def test_printed_windows_show_values_and_no_bytes(lake, capsys):
    assert main(["windows", "all", "--lake", lake.lake.root, "--csv"]) == Exit.FINE
    head, first, *_ = capsys.readouterr().out.splitlines()
    columns = head.split(",")
    assert {"p_p50", "p_p99", "seen", "last", "first", "var", "last_us"} <= set(columns)
    assert not set(BINARY.values()) & set(columns)
    assert "b'" not in first


def test_compaction_and_repair_keep_windows_with_binary_columns(lake, readings, tmp_path):
    copytree(lake.lake.root, tmp_path / "lake")
    again = LakeUnderTest(lake.spark, PROGRAM, tmp_path / "lake")
    dates = sorted({str(each["pane_date"]) for each in again.rows(again.lake.lattice)})
    compact(again.spark, again.job, dates)
    again.restart()
    assert repair(again.spark, again.job, again.known) == 0
    assert again.step(rows_of(readings)).windows == 0
    assert again.current() == lake.current()


def test_payload_of_a_clone_is_not_torn_between_binary_columns(spark, tmp_path):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    names = ALL.fold.columns_named
    where = {"stream": ALL.stream, "key": "attic", "pane_us": BEGIN_US}
    lifts = [ALL.fold.lift(n, n) for n in range(9)]
    clones = [
        row("pane", "pi-0", 1, 7, 4, **where, **dict(zip(names, lift, strict=True)))
        for lift in lifts
    ]
    lake.step(clones[3:] + clones[:3])
    before = lake.rows(lake.lake.windows)
    lake.step(clones[::-1])
    assert lake.rows(lake.lake.windows) == before
    assert {partial for (name, *_), (partial, _) in lake.current().items()} & set(lifts)


def test_count_beyond_its_bytes_stops_the_step_and_writes_nothing(spark, tmp_path):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    where = {"stream": ALL.stream, "key": "attic", "pane_us": BEGIN_US}
    half = {BINARY[Op.COUNTS]: packed_counts({5: PACKED_COUNT_LIMIT // 2})}
    rows = [row("pane", f"pi-{n}", 1, 7, 1, **where, **half) for n in range(2)]
    with pytest.raises((PySparkException, Py4JError), match=r"reaches 2\*\*47"):
        lake.step(rows)
    assert lake.rows(lake.lake.windows) == []


SLOW = ("SortAggregate", "ObjectHashAggregate", "Python", "Window ", "Pandas")


def _slow_operators(frame):
    plan = frame._jdf.queryExecution().executedPlan().toString()
    found = {name for name in SLOW if name in plan}
    assert found or "HashAggregate" in plan
    return found


def test_only_programs_with_binary_columns_leave_the_hash_aggregate(spark, tmp_path):
    """As tests/cloud_tier/job/test_merge.py has it of many rows."""

    def slow(program, root, entries=merge.joined):
        lake = LakeUnderTest(spark, program, root)
        lattice, written = read(spark, lake.lake.lattice), read(spark, lake.lake.windows)
        starts = [
            RecomputedStarts(name, None, BEGIN_US, BEGIN_US + MINUTE_US) for name in program.windows
        ]
        step_windows = StepWindows(lake.job, ControlState.of(lake.job), starts)
        names = lake.job.names
        with frames(spark) as made:
            finality = finality_of(lake.job, 5, NOTHING_HEARD, WindowWaiting({}), DeviceLives())
            views = (made.view(lattice), made.view(written))
            changed = windows.recomputed(made, *views, step_windows, finality).frame()
            return _slow_operators(changed) | _slow_operators(entries(lattice, names))

    def latest(lattice, names):
        return merge.latest(merge.joined(lattice, names), names)

    integers = Program("integers")
    event = integers.event("temperature", resolution="0.01")
    fold = folds.struct(last=folds.last(), var=folds.variance(), h=folds.histogram([0, 10]))
    integers.window("w", source=event, fold=fold, size_s=60)
    assert slow(integers.plan(), tmp_path / "integers", latest) == set()
    assert slow(PROGRAM, tmp_path / "binary") == {"SortAggregate", "ObjectHashAggregate"}
