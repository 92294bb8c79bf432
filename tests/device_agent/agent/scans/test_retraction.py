"""Readings that are taken back: streams and windows are as if they had never been."""

import json
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crdts import ORSet
from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from device_agent.agent.sources.mapping import FieldMapping
from device_agent.agent.stored_rows import Retraction
from device_agent.agent.timing.waiting import packed_value, unpacked_value
from lasp_edge import Program, folds, scans
from lasp_edge.ordered.cells import PRESENT, RETRACTED, Item, packed, unpacked
from tests.device_agent.agent.scans.support_streams import SECOND_US
from tests.device_agent.agents import NOW_US


def take_back(device, readings):
    """Retract readings of (seconds after the beginning, litres, tap)."""
    times = [NOW_US + round(at_s * SECOND_US) for at_s, _, _ in readings]
    values, tags = [Retraction(v) for _, v, _ in readings], [{"tap": t} for _, _, t in readings]
    device.taken_back |= {(at, v, tap) for at, (_, v, tap) in zip(times, readings, strict=True)}
    device.take(values, times, tags, name="litres")


def test_a_corrected_reading_revises_what_was_said(begin):
    """The numbers of the design: 310 was 160."""
    device = begin()
    device.meter([(60 * n, v, "a") for n, v in enumerate((100, 130, 310, 180, 200))])
    device.meter([(300, 200, "a")])
    device.tick(10)
    assert device.values("used") == [30, 180, 180, 20, 0]
    take_back(device, [(120, 310, "a")])
    device.meter([(120, 160, "a")])
    device.tick()
    rows = [(r.event and r.event.value, r.status) for _, r in sorted(device.said("used").items())]
    expected = [(30, "final"), (30, "final"), (None, "revised"), (20, "revised"), (20, "final")]
    assert rows[:5] == expected
    device.check()


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_newest_row_that_is_taken_back_gives_way_to_the_newest_that_counts(begin, is_restarted):
    device = begin(settings=Settings(live_items=2, results_us=1))
    device.meter([(60 * n, v, "a") for n, v in enumerate((100, 130, 310))])
    device.meter([(n, n, "b") for n in range(300, 420)])
    device.tick(30)
    topic = device.core.agent.topics.result("used", device.name, "a")

    def shown():
        return [p.payload for p in device.tick(60) if p.topic == topic]

    if is_restarted:
        device.restart()
    shown()
    take_back(device, [(120, 310, "a")])
    (payload,) = shown()
    assert json.loads(payload)["final"]["difference"] == 30
    take_back(device, [(60, 130, "a")])
    assert shown() == [b""], "no row counts any more"
    device.check()


def test_a_retraction_that_comes_first_takes_back_what_comes_later(begin):
    device = begin()
    device.meter([(0, 100, "a"), (30, 150, "a")])
    take_back(device, [(10, 130, "a")])
    device.meter([(10, 130, "a")])
    device.tick()
    assert device.values("used") == [50]
    assert device.counted["repeated"] == 1
    device.restart()
    device.meter([(10, 130, "a")])
    take_back(device, [(10, 130, "a")])
    device.tick()
    device.check()


def test_sensors_that_agree_are_two_items_and_each_is_taken_back_alone(begin):
    """Their tags do not tell them apart, and the topics do."""
    device = begin()

    def read(topics, kind=float):
        values, count = [kind(3) for _ in topics], len(topics)
        tags = [{"tap": "a"}] * count
        batch = Batch("mqtt:taps/+", ["litres"] * count, [NOW_US] * count, values, tags)
        batch.places = list(topics)
        device.durable.read(batch, device.now_us)
        device.tick(1)

    read(["taps/1", "taps/2", "taps/1"])
    assert device.values("total") == [3, 6]
    read(["taps/2"], Retraction)
    assert device.values("total") == [3]
    device.restart()
    read(["taps/1", "taps/2", "taps/3"])
    assert device.values("total") == [3, 6]


@pytest.mark.parametrize("seed", range(4))
def test_taken_back_readings_leave_nothing(begin, seed):
    rng, device = Random(seed), begin(settings=Settings(live_items=24))
    at_s, read = 0, []
    for _ in range(30):
        readings = []
        for _ in range(rng.randrange(1, 6)):
            at_s += rng.randrange(1, 25)
            late_s = rng.choice((0, 0, 0, 50, 300))
            readings.append((max(0, at_s - late_s), rng.randrange(400) / 2, rng.choice("ab")))
        device.meter(readings)
        read += readings
        if rng.random() < 0.4:
            take_back(device, rng.sample(read, 2))
        if rng.random() < 0.1:
            device.restart()
    device.tick(1)
    device.check()


def test_what_cannot_take_a_reading_back_refuses_it(begin):
    program = Program("water")
    litres = program.event("litres", resolution="0.5")
    used = program.scan("used", source=litres, scan=scans.differences(), per_device=True)
    program.result(used)
    program.window("greatest", source=litres, fold=folds.max(), size_s=60)
    program.declare(ORSet(), "alarms")
    device = begin(program=program.plan())
    device.meter([(0, 100, "a"), (10, 130, "a")])
    take_back(device, [(10, 130, "a")])
    device.tick()
    assert device.values("used") == [30]
    (reason,) = [name for name in device.counted if "not_revisable" in name]
    assert device.counted[reason] == 1


def test_a_window_over_the_event_itself_is_corrected_too(begin):
    program = Program("water")
    litres = program.event("litres", resolution="0.5")
    program.result(program.filter(litres, lambda event: event.value > 5, "much"))
    window = program.window("by_minute", source=litres, fold=folds.sum(), size_s=60)
    device = begin(program=program.plan())
    device.meter([(0, 100, "a"), (10, 130, "a")])
    take_back(device, [(10, 130, "a"), (10, 130, "a"), (20, 7, "a")])
    device.restart()
    take_back(device, [(10, 130, "a")])
    device.tick()
    assert device.values("much") == [100]
    assert device.folded(window) == {("", NOW_US // 60_000_000 * 60_000_000): (200,)}


def test_a_field_says_what_is_taken_back():
    mapping = FieldMapping(["litres"], time="ts", retract="wrong")
    records = [
        {"ts": 12, "litres": 310, "wrong": True},
        {"ts": 12, "litres": "160", "wrong": False},
        {"ts": 13, "litres": "170"},
        {"ts": 14, "litres": "180", "wrong": "true"},
    ]
    batch = mapping.batch("x", records)
    assert batch.values == [Retraction(310), 160, 170, Retraction(180)]


@pytest.mark.parametrize("value", [5, 20.5, Decimal("1.5"), Fraction(1, 3), 1 << 2_000])
def test_a_retraction_waits_for_the_clock_like_a_reading(value):
    text = json.dumps([packed_value(Retraction(value))])
    assert list(map(unpacked_value, json.loads(text))) == [Retraction(value)]


def test_what_an_earlier_release_let_wait_is_read():
    text = '[{"/": [-1, 30]}, {"retracted": 5}, 20.5]'
    assert list(map(unpacked_value, json.loads(text))) == [Fraction(-1, 30), Retraction(5), 20.5]


TEXTS = st.text(max_size=3)
ITEMS = st.builds(Item, st.integers(0, 9_999_999), st.integers(-(2**31), 2**31), TEXTS)
CELLS = st.dictionaries(ITEMS, st.sampled_from([PRESENT, RETRACTED]), max_size=6)
TEXT_CELLS = st.dictionaries(
    st.builds(Item, st.integers(0, 9_999_999), TEXTS, TEXTS), st.just(PRESENT), max_size=6
)


@settings(max_examples=60)
@given(CELLS | TEXT_CELLS)
def test_a_packed_cell_comes_back_as_it_was(cell):
    assert unpacked(packed(cell)) == cell
    assert packed(dict(reversed(cell.items()))) == packed(cell), "it has one form"


@pytest.mark.parametrize("seed", range(3))
def test_items_are_a_set_whatever_their_order_and_number(begin, seed):
    """What repeats, comes in another order, or is taken back before it comes: the same items."""
    rng, device = Random(seed), begin()
    given = [(rng.randrange(30), rng.randrange(5), rng.choice("ab")) for _ in range(12)]
    wrong = rng.sample(given, 4)
    arrivals = [*[("meter", each) for each in given * 2], *[("back", each) for each in wrong]]
    rng.shuffle(arrivals)
    for what, reading in arrivals:
        if what == "meter":
            device.meter([reading])
        else:
            take_back(device, [reading])
    device.tick()
    device.check()


def test_what_is_older_than_the_retention_is_refused_whole(begin):
    """No stage takes half of it: neither a row, nor a state, nor a window changes."""
    device = begin(settings=Settings(retain_us=100 * SECOND_US, live_items=8))
    device.meter([(10 * n, 100 + n, "a") for n in range(30)])
    device.tick(10)
    before = [device.said(name) for name in ("used", "runs", "total")]
    rows = dict(device.rows())
    assert device.engine.since_us > NOW_US
    device.meter([(15, 500, "a")])
    take_back(device, [(20, 102, "a")])
    device.present.discard((NOW_US + 15 * SECOND_US, 500, "a"))
    device.taken_back.clear()
    device.tick(10)
    assert [device.said(name) for name in ("used", "runs", "total")] == before
    assert {pane for pane, row in device.rows() if rows.get(pane, row) != row} <= {
        pane for pane in rows if pane.pane_us == 0
    }
    assert device.counted["too_late"] == 2
