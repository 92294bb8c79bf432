"""The column path changes exactly what the one-by-one path, its definition, changes."""

from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crdts import BoundedLWWSet
from device_agent.agent.changes import Restored
from device_agent.agent.core import Core
from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.one_by_one import OneByOne
from device_agent.agent.settings import Settings
from device_agent.agent.stored_rows import BLOCK_US
from lasp_edge import Program, folds, scans
from lasp_edge.units import SECOND_US
from simulations.world.disk import EmptyStore
from tests.device_agent.agents import NOW_US, Device, greenhouse

ONE_BY_ONE = 10**9
RETAIN_US, SKEW_US = 100 * SECOND_US, 50 * SECOND_US
HALL, ATTIC = {"room": "hall"}, {"room": "attic"}
TAGS = ({}, HALL, ATTIC, {"room": "hall"})
ODD_VALUES = (None, True, float("nan"), float("inf"), 2**31, 10**400, "21", Decimal("20.1"), 20.125)


def program(*, shared: bool = False) -> Program:
    """Return two events, each collected, in windows, and items of a scan of each device."""
    made = Program("columns")
    warm = made.event("temperature", resolution="0.01", least=20, most="20.03")
    moist = made.event("humidity")
    samples = made.declare_dynamic(BoundedLWWSet(bound=5), "samples", measures=warm)
    made.collect(warm, into=samples)
    if shared:
        made.collect(made.event("warmth", resolution="0.01"), into=samples)
    made.collect(moist, into=made.declare_dynamic(BoundedLWWSet(bound=3, max_age_s=9), "moist"))
    made.fold_dynamic(made.fold(samples, folds.mean(), "local_average"), "global_average")
    shape = folds.struct(count=folds.count(), total=folds.sum(), low=folds.min())
    made.window("by_room", source=warm, fold=shape, size_s=60, slide_s=10)
    made.window("quick", source=warm, fold=folds.mean(), size_s=7)
    made.window("moisture", source=moist, fold=folds.max(), size_s=50, slide_s=20)
    turns = scans.running(lambda state, event: event.time_us - state, 0)
    made.result(
        made.scan("turns", source=[warm, moist], scan=turns, per_device=True), parts={"turn": "1"}
    )
    return made.plan()


def everything(device):
    """Return all that readings can change, in the store and in memory."""
    db, core = device.store.database, device.core
    names = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    tables = {n: db.execute(f"SELECT * FROM {n}").fetchall() for n in names - {"replica"}}
    progress = core.intake.progress
    times = {name: getattr(progress, name) for name in progress.__slots__}
    core.samples.refold()
    states = core.results.local()
    report = core.report() | {"lows": core.panes.lows(device.now_us)}
    return tables, times, states, report


@st.composite
def batches(draw):
    """A batch: most often calm, ordered and of one event, at times anything."""
    count = draw(st.integers(1, 14))
    calm = st.integers(0, 300).map(lambda tenths: NOW_US + tenths * SECOND_US // 10)
    edges = (RETAIN_US, -SKEW_US, 0)  # the floor where the newest is at NOW_US, and the future
    wild = st.one_of(
        calm,
        st.integers(-120, 60).map(lambda seconds: NOW_US + seconds * SECOND_US),
        st.sampled_from([NOW_US - edge + by for edge in edges for by in (-1, 0, 1)]),
        st.sampled_from([NOW_US + BLOCK_US, 0, -(2**80), 2**80]),
    )
    floor_rises = st.sampled_from([NOW_US - 90 * SECOND_US, NOW_US, NOW_US + 40 * SECOND_US])
    own = draw(
        st.sampled_from([calm, calm, wild, floor_rises, st.none(), st.one_of(calm, st.none())])
    )
    times_us = draw(st.lists(own, min_size=count, max_size=count))
    if None not in times_us and draw(st.booleans()):
        times_us.sort()
    plain = st.integers(2000, draw(st.sampled_from([2003, 2003, 2004]))).map(
        lambda steps: steps / 100
    )
    value = draw(st.sampled_from([plain, plain, st.one_of(plain, st.sampled_from(ODD_VALUES))]))
    name = draw(
        st.sampled_from(
            [
                st.just("temperature"),
                st.just("humidity"),
                st.sampled_from(["temperature", "humidity"]),
                st.sampled_from(["temperature", "warmth"]),
                st.sampled_from(["temperature", "warmth", "pressure"]),
            ]
        )
    )
    tags = draw(st.sampled_from([st.just({}), st.just(HALL), st.sampled_from(TAGS)]))
    columns = (name, value, tags)
    names, values, labels = (draw(st.lists(c, min_size=count, max_size=count)) for c in columns)
    return Batch("test", names, times_us, values, labels, refused=draw(REFUSED))


REFUSED = st.sampled_from([{}, {}, {"no time": 2}])


def wait(device):
    device.now_us += 40 * SECOND_US


def set_clock_back(device):
    """Set the clock, and the stamps with it, to below the floor."""
    device.now_us -= 300 * SECOND_US
    device.core.intake.progress.stamp_us = 0


def promise(device):
    device.core.intake.progress.promised_us = NOW_US + 10 * SECOND_US


def fill(device):
    """Bring panes near to their limit: their next readings may not fit."""
    for entry in device.core.panes.memory.entries.values():
        if len(entry.partial) > 1:
            entry.partial = (2**31 - 3, *entry.partial[1:])


HAPPENINGS = {
    "restart": lambda device: device.restart(nonce=7),
    "tick": Device.tick,
    "wait": wait,
    "set back": set_clock_back,
    "promise": promise,
    "fill": fill,
}
STEPS = st.lists(
    st.one_of(batches(), batches(), batches(), st.sampled_from(list(HAPPENINGS))),
    min_size=1,
    max_size=8,
)


def do(device, step):
    """Let a device take a batch, or something happen to it."""
    if isinstance(step, Batch):
        device.durable.read(step, device.now_us)
    else:
        HAPPENINGS[step](device)


def of_times(*seconds, names=("temperature",)):
    """Return a batch of readings at these seconds after `NOW_US`; None is stamped."""
    times_us = [None if at is None else NOW_US + at * SECOND_US for at in seconds]
    count = len(times_us)
    named = [names[at % len(names)] for at in range(count)]
    return Batch("test", named, times_us, [20 + at / 100 for at in range(count)], [{}] * count)


@settings(max_examples=100)
@example(steps=[of_times(0), "set back", of_times(None, None)], keep_readings=False, shared=False)
@example(steps=[of_times(0), "set back", of_times(-101)], keep_readings=False, shared=False)
@example(steps=[of_times(40, -90, -60, -59)], keep_readings=True, shared=False)  # the floor rises
@example(
    steps=[of_times(50, 0), of_times(-50, 51, -51, 0)], keep_readings=False, shared=False
)  # edges
@example(  # no reading of a batch is accepted
    steps=[Batch("test", ["temperature"], [None], [None], [{}])], keep_readings=False, shared=False
)
@example(
    steps=[of_times(*range(9), names=("temperature", "warmth"))], keep_readings=False, shared=True
)  # both are collected into one variable: their order counts
@given(steps=STEPS, keep_readings=st.booleans(), shared=st.booleans())
def test_both_ways_in_change_exactly_the_same(steps, keep_readings, shared):
    limits = Settings(retain_us=RETAIN_US, max_skew_us=SKEW_US, keep_readings=keep_readings)
    with TemporaryDirectory() as directory:
        devices = [
            Device(Path(directory, way), program(shared=shared), settings=limits, nonce=7)
            for way in ("columns", "one by one")
        ]
        for step in steps:
            found = []
            for device, least in zip(devices, (1, ONE_BY_ONE), strict=True):
                device.core.intake.column_least = least
                do(device, step)
                found.append(everything(device))
            assert found[0] == found[1]
        for device in devices:
            device.kill()


TIMES_US = [NOW_US + at * 3 * SECOND_US for at in range(12)]
CALM = {
    "in order": {},
    "out of order": {"times_us": TIMES_US[::-1]},
    "repeats": {"times_us": TIMES_US[:6] * 2},
    "repeats, with tags of their own": {
        "times_us": TIMES_US[:6] * 2,
        "tags": [{"room": "hall"} for _ in range(12)],
    },
    "stamped": {"times_us": [None] * 12},
    "refused values": {"values": [*ODD_VALUES, 20.0, 20.5, 21]},
    "in the future and too late": {"times_us": [2**80, *TIMES_US[:10], -(2**80)]},
    "two events": {"names": ["temperature", "humidity"] * 6},
    "tags": {"tags": [HALL, ATTIC] * 6},
}


def never(*_):
    raise AssertionError("one by one")


@pytest.mark.parametrize("unusual", CALM)
def test_what_is_no_matter_of_order_goes_by_columns(tmp_path, monkeypatch, unusual):
    plain = {
        "names": ["temperature"] * 12,
        "times_us": TIMES_US,
        "values": [20.0] * 12,
        "tags": [{}] * 12,
    }
    device = Device(tmp_path, program(), now_us=TIMES_US[-1], settings=Settings())
    monkeypatch.setattr(OneByOne, "accept", never)
    device.durable.read(Batch("test", **(plain | CALM[unusual])), device.now_us)
    outcomes = ("accepted", "repeated", "refused", "too_late", "in_the_future")
    assert sum(device.counted.get(outcome, 0) for outcome in outcomes) == 12
    assert device.counted["accepted"] > 0


@pytest.mark.parametrize("short", ["times_us", "values", "tags"])
def test_a_batch_with_columns_of_unequal_length_is_refused_whole(tmp_path, short):
    columns = {"times_us": TIMES_US, "values": [20.0] * 12, "tags": [{}] * 12}
    device = Device(tmp_path, program(), now_us=TIMES_US[-1], settings=Settings())
    device.read([20.0] * 12, TIMES_US)
    before = device.core.results.local(), device.rows(), list(device.store.readings())
    columns[short] = columns[short][:-1]
    device.durable.read(Batch("test", ["temperature"] * 12, **columns), device.now_us)
    refused = len(columns["values"])
    assert device.counted.pop("refused") == refused
    assert device.counted.pop("refused: broken: the batch cannot be read") == refused
    assert [name.partition(" (")[0] for name in device.core.agent.guard.reasons] == [
        "failed: a batch: ValueError: names, times, values and tags of one length are needed"
    ]
    after = device.core.results.local(), device.rows(), list(device.store.readings())
    assert after == before


@given(st.lists(st.integers(1, 12), min_size=1, max_size=8))
def test_between_two_commits_readings_may_come_both_ways(sizes):
    found = []
    for least in (5, ONE_BY_ONE):
        core = Core(program(), "pi-1", 7, Restored(), Settings(keep_readings=True))
        core.intake.column_least = least
        start = 0
        for size in sizes:
            times_us = [NOW_US + at * 7 % 40 * SECOND_US for at in range(start, start + size)]
            values = [20 + at % 5 / 100 for at in range(start, start + size)]
            names, tags = ["temperature"] * size, [HALL] * size
            core.hold(Batch("test", names, times_us, values, tags), NOW_US + 10**8 + start)
            start += size
        core.part_list.read(EmptyStore(), NOW_US + 10**8)
        changes = core.prepare_commit()
        core.samples.refold()
        partials = {pane: row.partial for pane, row in changes.panes.items()}
        parts = (partials, changes.identities, changes.facts, changes.readings, changes.sources)
        found.append((*parts, core.counters.totals, core.results.local()))
    assert found[0] == found[1]


@settings(max_examples=100)
@example(  # both pass the floor by their own clock alone
    held=[(of_times(0), 0), (of_times(70), 30 * SECOND_US)] * 5, keep_readings=True
)
@given(
    held=st.lists(
        st.tuples(batches(), st.sampled_from([0, 1, 7, 10**6, 3 * 10**7, -5])), max_size=16
    ),
    keep_readings=st.booleans(),
)
def test_readings_that_are_held_are_taken_in_as_if_each_came_by_itself(held, keep_readings):
    found = []
    for way in ("together", "each by itself"):
        limits = Settings(retain_us=RETAIN_US, max_skew_us=SKEW_US, keep_readings=keep_readings)
        core, at_us = Core(program(), "pi-1", 7, Restored(), limits), NOW_US
        for batch, later_us in held:
            at_us += later_us
            core.hold(batch, at_us)
            if way == "each by itself":
                core.part_list.read(EmptyStore(), at_us)
        core.part_list.read(EmptyStore(), at_us)
        changes, progress = core.prepare_commit(), core.intake.progress
        core.samples.refold()
        partials = {pane: row.partial for pane, row in changes.panes.items()}
        parts = (partials, changes.identities, changes.facts, changes.readings, changes.sources)
        times = [getattr(progress, name) for name in progress.__slots__]
        found.append((*parts, times, core.counters.totals, core.results.local()))
    assert found[0] == found[1]


def test_small_batches_that_are_held_go_by_columns(monkeypatch):
    core = Core(program(), "pi-1", 7, Restored())
    monkeypatch.setattr(OneByOne, "accept", never)
    for at, time_us in enumerate(TIMES_US):
        core.hold(Batch("test", ["temperature"], [time_us], [20.0], [{}]), TIMES_US[-1] + at)
    core.part_list.read(EmptyStore(), TIMES_US[-1] + 100)
    assert core.counters.totals["accepted"] == 12


def test_equal_readings_with_equal_tags_of_their_own_are_repeats_of_a_column(tmp_path):
    device = Device(tmp_path, greenhouse())
    for _ in range(2):
        times_us = [NOW_US + number for number in range(20)]
        device.take([20.0] * 20, times_us, [{"room": "attic"} for _ in times_us])
    totals = device.core.counters.totals
    assert (totals["accepted"], totals["repeated"]) == (20, 20)
    assert device.core.agent.guard.reasons == []


def test_a_column_that_begins_with_the_last_reading_of_the_one_before_repeats_that_one(tmp_path):
    device = Device(tmp_path, program())
    device.core.intake.column_least = 1
    for first in (0, 19):
        times_us = [NOW_US + number for number in range(first, first + 20)]
        device.take([20.0] * 20, times_us, [{}] * 20)
    totals = device.core.counters.totals
    assert (totals["accepted"], totals["repeated"]) == (39, 1)
