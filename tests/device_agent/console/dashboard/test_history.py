"""The past that the page shows: whole where it is short, coarser where it is long, bounded."""

from itertools import pairwise
from random import Random

import pytest

from device_agent.console.command.watch import measure_of
from device_agent.console.dashboard.history import (
    MOST_POINTS,
    MOST_SERIES,
    MOST_SHOWN,
    SPAN_S,
    History,
)
from tests.device_agent.agents import greenhouse

MEAN = ("mean", "", "mean")


def points(history):
    (series,) = history.plain().values()
    assert (series["value"], series["key"], series["part"]) == MEAN
    return [[float(at_s), *point] for at_s, point in series["points"].items()]


def test_a_short_past_is_whole():
    history = History()
    noted = [[at, at / 7, at % 2] for at in range(MOST_POINTS)]
    for at, value, settled in noted:
        history.note(MEAN, value, at, settled=bool(settled))
    assert points(history) == noted


@pytest.mark.parametrize("seed", range(5))
def test_a_long_past_is_bounded_in_order_and_ends_with_the_newest(seed):
    history, random = History(), Random(seed)
    at_s = 0.0
    for _ in range(5_000):
        at_s += random.choice([1, 10, 60])
        if random.random() < 0.05:
            history.interrupt(at_s)
        value = random.choice([20.0, 20.0, random.random()])
        history.note(MEAN, value, at_s + 0.5, settled=random.random() < 0.5)
    found = points(history)
    times = [at for at, _, _ in found]
    assert len(found) <= MOST_POINTS
    assert times == sorted(times)
    assert found[-1][:2] == [at_s + 0.5, value]
    assert at_s - SPAN_S <= times[0]
    assert times[0] < at_s - SPAN_S / 2
    assert not any(a[1] is None and b[1] is None for a, b in pairwise(found))


def test_a_value_that_stays_takes_two_points():
    history = History()
    for at_s in range(1_000):
        history.note(MEAN, 20.0, at_s, settled=True)
    assert points(history) == [[0, 20.0, 1], [999, 20.0, 1]]
    history.note(MEAN, 20.0, 1_000, settled=None)
    assert points(history)[1:] == [[999, 20.0, 1], [1_000, 20.0, None]]


def test_a_time_in_which_nothing_was_heard_stays_a_gap():
    history = History()
    history.note(MEAN, 20.0, 0, settled=True)
    for at_s in range(1, 100):
        history.interrupt(at_s)
    history.note(MEAN, 20.0, 100, settled=True)
    found = points(history)
    assert [value for _, value, _ in found] == [20.0, None, None, 20.0]


def test_series_are_bounded():
    history = History()
    for number in range(2 * MOST_SERIES):
        history.note(("rooms", f"room {number}", "mean"), 1.0, 0, settled=True)
    assert len(history._series) == MOST_SERIES


def test_a_page_gets_the_first_series_of_each_value():
    history = History()
    for number in reversed(range(2 * MOST_SHOWN)):
        for value in ("rooms", "floors"):
            history.note((value, f"{number:02}", "mean"), 1.0, 0, settled=True)
    shown = [(each["value"], each["key"]) for each in history.plain().values()]
    assert shown == [
        (value, f"{number:02}") for value in ("floors", "rooms") for number in range(MOST_SHOWN)
    ]


def test_a_value_that_only_another_program_declares_has_no_unit():
    assert measure_of(greenhouse(), "of another program") == ("", 2)
