"""Frames in flight to one sink: answered or given up, and few at a time."""

import pytest

from device_agent.agent.panes.flights import (
    FIRST_TIMEOUT_US,
    IN_FLIGHT,
    LAST_TIMEOUT_US,
    MOST_IN_FLIGHT,
    PROBES,
    QUICK_US,
    Flights,
)
from device_agent.agent.stored_rows import EntryKey
from lasp_edge.protocol.acks import Seqs
from lasp_edge.units import SECOND_US
from tests.support_sizes import most_held

NOW_US = 1_700_000_000 * SECOND_US
ONE, TWO, OF_BEFORE = EntryKey(2, 99, 3), EntryKey(2, 99, 4), EntryKey(1, 77, 3)


@pytest.fixture
def flights():
    return Flights()


def named(*entries):
    return [Seqs.of(entry.incarnation, entry.nonce, [entry.seq]) for entry in entries]


def test_few_frames_are_in_flight_until_one_is_answered(flights):
    for number in range(1, IN_FLIGHT + 1):
        assert not flights.full
        flights.launch(number, [EntryKey(2, 99, number)], NOW_US, 1)
    assert flights.full
    flights.answer(named(EntryKey(2, 99, 2)), NOW_US)
    assert (flights.count, flights.full) == (IN_FLIGHT - 1, False)


def launched(flights, first, at_us):
    """Let frames leave while they may; return their entries."""
    entries = []
    while not flights.full:
        entries.append(EntryKey(2, 99, first + len(entries)))
        flights.launch(entries[-1].seq, entries[-1:], at_us, 1)
    return entries


def test_quick_answers_let_more_frames_leave_up_to_a_bound_and_slow_ones_fewer(flights):
    at_us, counts = NOW_US, []
    for wait_us in [QUICK_US] * 5 + [QUICK_US + 1] * 2:
        entries = launched(flights, 100 * len(counts), at_us)
        counts.append(len(entries))
        at_us += wait_us
        flights.answer(named(*entries), at_us)
    assert counts == [IN_FLIGHT, 8, 16, MOST_IN_FLIGHT, MOST_IN_FLIGHT, MOST_IN_FLIGHT, IN_FLIGHT]


def test_after_a_time_out_or_a_reconnect_few_frames_leave_again(flights):
    for end in (flights.abandon_late, lambda _: flights.abandon_all()):
        flights.answer(named(*launched(flights, 100, NOW_US)), NOW_US)
        assert len(launched(flights, 200, NOW_US)) == 2 * IN_FLIGHT
        end(NOW_US + FIRST_TIMEOUT_US)
        flights.answer(named(ONE), NOW_US + FIRST_TIMEOUT_US)  # somebody is there
        assert len(launched(flights, 300, NOW_US + FIRST_TIMEOUT_US)) == IN_FLIGHT
        flights.abandon_all()


def test_a_frame_is_in_flight_until_all_of_its_entries_are_answered(flights):
    flights.launch(1, [ONE, TWO, OF_BEFORE], NOW_US, 1)
    flights.answer(named(ONE, TWO), NOW_US)
    assert (flights.holds(ONE), flights.holds(OF_BEFORE), flights.count) == (False, True, 1)
    flights.answer(named(OF_BEFORE), NOW_US)
    assert flights.count == 0


def test_an_answer_for_another_replica_counts_for_nothing(flights):
    flights.launch(1, [ONE], NOW_US, 1)
    flights.answer(named(ONE._replace(nonce=5), ONE._replace(incarnation=9)), NOW_US)
    assert flights.holds(ONE)


def test_a_frame_that_is_late_makes_room(flights):
    flights.launch(1, [ONE], NOW_US, 1)
    flights.abandon_late(NOW_US + FIRST_TIMEOUT_US - 1)
    assert flights.holds(ONE)
    flights.abandon_late(NOW_US + FIRST_TIMEOUT_US)
    assert (flights.count, flights.holds(ONE)) == (0, False)
    flights.answer(named(ONE), NOW_US)  # whose answer comes late: nothing of it is needed here


def test_a_clock_that_was_set_back_gives_up_what_was_sent_in_its_future(flights):
    flights.launch(1, [ONE], NOW_US, 1)
    flights.abandon_late(NOW_US - 1)
    assert flights.count == 0


def test_without_answers_time_outs_double_and_frames_become_fewer_up_to_a_bound(flights):
    at_us, waits, together = NOW_US, [], []
    for number in range(12):
        flights.launch(number, [ONE], at_us, 1)
        together.append(flights.full)
        sent_us = at_us
        while flights.count:
            at_us += SECOND_US
            flights.abandon_late(at_us)
        waits.append(at_us - sent_us)
    assert waits[:3] == [FIRST_TIMEOUT_US << n for n in range(3)]
    assert waits[-1] == LAST_TIMEOUT_US
    assert together == [False] * (IN_FLIGHT - 1) + [True] * (13 - IN_FLIGHT)
    flights.answer(named(TWO), NOW_US)  # somebody is there
    flights.launch(99, [ONE], at_us, 1)
    assert not flights.full
    flights.abandon_late(at_us + FIRST_TIMEOUT_US)
    assert flights.count == 0


def test_frames_that_are_lost_together_are_one_time_out(flights):
    """A sink that was away for a moment is tried again after one time-out, not after sixteen."""
    for number in range(IN_FLIGHT):
        flights.launch(number, [EntryKey(2, 99, number)], NOW_US + number * SECOND_US // 4, 1)
    at_us = NOW_US + FIRST_TIMEOUT_US
    while flights.count:
        flights.abandon_late(at_us)
        at_us += SECOND_US // 4
    flights.launch(10, [ONE], at_us, 1)
    flights.abandon_late(at_us + 2 * FIRST_TIMEOUT_US - 1)
    assert flights.count == 1
    flights.abandon_late(at_us + 2 * FIRST_TIMEOUT_US)
    assert flights.count == 0


def test_after_a_reconnect_what_was_in_flight_is_named_and_free(flights):
    flights.launch(1, [ONE, TWO], NOW_US, 1)
    flights.answer(named(ONE), NOW_US)
    assert flights.abandon_all() == {TWO}
    assert flights.count == 0


def test_a_frame_that_did_not_leave_is_not_in_flight(flights):
    flights.launch(1, [ONE], NOW_US, 1)
    flights.cancel(1)
    flights.cancel(77)
    assert flights.count == 0


def test_a_sink_that_answers_late_is_there(flights):
    at_us = NOW_US
    for number in range(6):
        flights.launch(number, [EntryKey(2, 99, number)], at_us, 1)
        at_us += LAST_TIMEOUT_US
        flights.abandon_late(at_us)
    assert flights.latency_us == 0
    flights.answer(named(EntryKey(2, 99, 0)), at_us)
    assert flights.latency_us == at_us - NOW_US
    for number in range(10, 10 + IN_FLIGHT):
        assert not flights.full, "what comes too late counts as a miss no more"
        flights.launch(number, [EntryKey(2, 99, number)], at_us, 1)
        at_us += FIRST_TIMEOUT_US
        flights.abandon_late(at_us)
    flights.launch(20, [EntryKey(2, 99, 20)], at_us, 1)
    flights.answer(named(EntryKey(2, 99, 20)), at_us + SECOND_US)
    assert flights.latency_us == 0


def test_what_is_remembered_of_given_up_frames_is_bounded(flights):
    for number in range(10 * PROBES):
        flights.launch(number, [EntryKey(2, 99, number)], NOW_US, 1)
        flights.abandon_late(NOW_US + LAST_TIMEOUT_US)
    assert most_held(flights) == PROBES


def test_the_answer_to_a_frame_that_was_lost_before_is_not_late(flights):
    flights.launch(1, [ONE], NOW_US, 1)
    flights.abandon_late(NOW_US + FIRST_TIMEOUT_US)
    again_us = NOW_US + LAST_TIMEOUT_US
    flights.launch(2, [OF_BEFORE, ONE], again_us, 1)
    flights.answer(named(ONE, OF_BEFORE), again_us + SECOND_US)
    assert flights.latency_us == 0


def test_after_a_new_connection_a_sink_counts_as_there(flights):
    flights.launch(1, [ONE], NOW_US, 1)
    flights.abandon_late(NOW_US + FIRST_TIMEOUT_US)
    assert flights.is_away
    assert flights.abandon_all() == set()
    assert not flights.is_away
