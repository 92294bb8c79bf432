"""Readings that are taken back: streams and windows are as if they had never been."""

import json
from random import Random

import pytest

from crdts import ORSet
from device_agent.changes import Retraction
from device_agent.settings import Settings
from device_agent.sources.mapping import FieldMapping
from device_agent.timing.waiting import _as_json, _from_json
from lasp_edge import Program, folds, scans
from tests.device_agent.agents import NOW_US
from tests.device_agent.scans.support_streams import SECOND_US


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


def test_a_retraction_waits_for_the_clock_like_a_reading():
    text = json.dumps([Retraction(5)], default=_as_json)
    assert json.loads(text, object_hook=_from_json) == [Retraction(5)]
