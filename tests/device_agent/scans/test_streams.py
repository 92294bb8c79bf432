"""Streams on a real core and store: what they say, revised, restarted, and in windows."""

from random import Random

import pytest

from device_agent.scans import engine
from tests.device_agent.agents import NOW_US
from tests.device_agent.scans.support_streams import SECOND_US


def test_what_comes_late_revises_what_was_said(begin):
    device = begin()
    device.meter([(0, 100, "a"), (10, 130, "a"), (30, 180, "a")])
    assert device.values("used") == [30.0, 50.0]
    device.meter([(20, 150, "a")])
    device.tick()
    assert device.values("used") == [30.0, 20.0, 30.0]
    device.check()


def test_a_row_is_final_once_nothing_older_is_expected(begin):
    device = begin()
    device.meter([(0, 100, "a"), (10, 130, "a"), (14, 140, "a")])
    device.tick()
    statuses = [row.status for _, row in sorted(device.said("used").items())]
    assert statuses == ["tentative", "tentative"]
    device.meter([(16, 150, "a")])
    device.tick(2)
    statuses = [row.status for _, row in sorted(device.said("used").items())]
    assert statuses == ["final", "tentative", "tentative"]
    device.meter([(5, 120, "a")])
    rows = [row for _, row in sorted(device.said("used").items())]
    assert [(row.event.value, row.status) for row in rows[:2]] == [
        (20.0, "final"),
        (10.0, "revised"),
    ]
    device.check()


def test_a_session_ends_by_time_alone_and_its_handler_runs_once(begin):
    device = begin()
    device.meter([(0, 100, "a"), (10, 130, "a"), (20, 140, "a")])
    device.meter([(60, 140, "a")])
    device.tick(2)
    expected = (NOW_US + 10 * SECOND_US, NOW_US + 20 * SECOND_US, 40.0)
    assert device.values("runs") == [expected]
    assert device.alarms == {f"a {expected[0]} 40.0"}
    device.restart()
    device.tick(2)
    assert device.alarms == {f"a {expected[0]} 40.0"}


@pytest.mark.parametrize("seed", range(8))
def test_streams_equal_the_oracle_over_faults_and_restarts(begin, seed, monkeypatch):
    monkeypatch.setattr(engine, "LIVE_MOST", 24)
    monkeypatch.setattr(engine, "TRY_AGAIN", 4)
    rng, device, at_s = Random(seed), begin(), 0
    for step in range(30):
        readings = []
        for _ in range(rng.randrange(1, 6)):
            at_s += rng.randrange(1, 25)
            back_s = rng.choice((0, 0, 0, 3, 40, 400))
            readings.append((max(0, at_s - back_s), rng.randrange(0, 400) / 2, rng.choice("ab")))
        device.meter(readings)
        if rng.random() < 0.5:
            device.tick(rng.randrange(1, 4))
        if rng.random() < 0.15:
            device.restart()
        if step % 10 == 9:
            device.tick(1)
            device.check()
    device.restart()
    device.tick(60)
    device.check()
    assert device.engine.since_us > NOW_US, "there were cuts"


def test_memory_holds_the_live_end_only(begin, monkeypatch):
    monkeypatch.setattr(engine, "LIVE_MOST", 50)
    device = begin()
    for n in range(100):
        device.meter([(10 * n + k, n + k, "a") for k in range(5)])
        device.tick()
    assert device.engine._count < 100
    assert sum(len(log) for log in device.engine.graph.nodes[0].stage.logs.values()) < 100
    device.meter([(3.5, 7, "a")])
    device.tick()
    device.check()
