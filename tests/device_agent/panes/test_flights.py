"""Frames in flight: acknowledged, abandoned, or acknowledged late; an entry is free or in one."""

from random import Random

import pytest

from device_agent.changes import PaneId
from device_agent.panes.flights import (
    FIRST_TIMEOUT_US,
    IN_FLIGHT,
    KEPT_ABANDONED,
    LAST_TIMEOUT_US,
    Flights,
)
from device_agent.settings import SECOND_US

NOW_US = 1_700_000_000 * SECOND_US
ONE, TWO = (PaneId(pane_us, 7, "", 1, 99) for pane_us in (0, 10))


@pytest.fixture
def flights():
    return Flights(Random(1))


def test_frames_are_numbered_from_1_and_few_are_in_flight(flights):
    numbers = [flights.launch([(ONE, seq)], NOW_US) for seq in range(1, IN_FLIGHT + 1)]
    assert numbers == list(range(1, IN_FLIGHT + 1))
    assert flights.full
    flights.acknowledge([2])
    assert not flights.full


def test_an_acknowledged_frame_returns_its_entries_once(flights):
    number = flights.launch([(ONE, 3), (TWO, 4)], NOW_US)
    assert (flights.seq_of(ONE), flights.seq_of(TWO)) == (3, 4)
    assert flights.acknowledge([number, 77]) == [(ONE, 3), (TWO, 4)]
    assert flights.acknowledge([number]) == []
    assert flights.seq_of(ONE) is None


def test_an_entry_that_left_again_is_not_freed_by_its_older_frame(flights):
    older = flights.launch([(ONE, 3), (TWO, 4)], NOW_US)
    flights.launch([(ONE, 5)], NOW_US)
    assert flights.cancel(older) == [TWO]
    assert flights.seq_of(ONE) == 5


def test_an_abandoned_frame_frees_its_entries_and_still_counts(flights):
    number = flights.launch([(ONE, 3)], NOW_US)
    assert flights.abandon_late(NOW_US + FIRST_TIMEOUT_US // 2) == []
    assert flights.abandon_late(NOW_US + 2 * FIRST_TIMEOUT_US) == [ONE]
    assert (flights.count, flights.abandoned) == (0, 1)
    assert flights.acknowledge([number]) == [(ONE, 3)]


def test_a_clock_that_was_set_back_abandons_what_was_sent_in_its_future(flights):
    flights.launch([(ONE, 3)], NOW_US)
    assert flights.abandon_late(NOW_US - 1) == [ONE]


def test_time_outs_double_up_to_a_bound_until_something_is_acknowledged(flights):
    def waited():
        number, at_us = flights.launch([(ONE, 1)], NOW_US), NOW_US
        while not flights.abandon_late(at_us):
            at_us += SECOND_US
        return number, at_us - NOW_US

    waits = [waited()[1] for _ in range(12)]
    assert waits[0] <= 1.25 * FIRST_TIMEOUT_US + SECOND_US
    assert 0.75 * LAST_TIMEOUT_US <= waits[-1] <= 1.25 * LAST_TIMEOUT_US + SECOND_US
    flights.acknowledge([12])
    assert waited()[1] <= 1.25 * FIRST_TIMEOUT_US + SECOND_US


def test_the_oldest_abandoned_frames_are_forgotten(flights):
    for seq in range(2 * KEPT_ABANDONED):
        flights.launch([(ONE, seq)], NOW_US)
        assert flights.abandon_all() == [ONE]
    assert flights.abandoned == KEPT_ABANDONED
    assert flights.acknowledge([1]) == []
    assert flights.acknowledge([2 * KEPT_ABANDONED]) == [(ONE, 2 * KEPT_ABANDONED - 1)]


def test_after_forgetting_no_acknowledgement_counts(flights):
    numbers = [flights.launch([(pane, 1)], NOW_US) for pane in (ONE, TWO)]
    flights.forget()
    assert (flights.count, flights.abandoned, flights.seq_of(ONE)) == (0, 0, None)
    assert flights.acknowledge(numbers) == []
