"""The simulated lander refuses what the real one refuses, and acknowledges what it acknowledges."""

import pytest

from crdts import Replica
from lasp_edge.protocol.acks import NotTaken, Seqs, Untaken
from lasp_edge.protocol.limits import DAY_US, INCARNATIONS_AHEAD
from lasp_edge.protocol.topics import topic_of
from simulations.world.lander import SimulatedLander
from tests.lasp_edge.protocol.support_frames import (
    BEGIN_US,
    ME,
    NOW_US,
    TOPICS,
    beat,
    command,
    panes,
    rooms,
)

PLAN = rooms()


@pytest.fixture
def lander():
    return SimulatedLander("lake-1", PLAN)


def hear(lander, frame):
    return lander.hear(topic_of(frame, TOPICS), frame.encode(), NOW_US)


def reasons(lander):
    return [reason for _, reason in lander.refused]


def test_panes_are_joined_and_acknowledged_whatever_comes_twice(lander):
    for _ in range(2):
        assert hear(lander, panes(PLAN, 4)).taken == (Seqs(3, 7, ((1, 2),)),)
    assert len(lander.panes) == 2
    assert not lander.refused


def test_a_device_whose_beats_do_not_name_the_lake_is_told_of_it(lander):
    answer = hear(lander, beat(1, BEGIN_US))
    assert (answer.about, answer.store, answer.taken) == (ME.device, "lake-1", ())
    assert hear(lander, beat(2, BEGIN_US, store="lake-1")) is not None
    assert hear(lander, beat(3, BEGIN_US, store="lake-1")) is None
    assert lander.promises.value == {ME.device: BEGIN_US}


def test_panes_of_a_retired_device_count_up_to_its_version_and_it_is_told_of_the_others(lander):
    hear(lander, command(1, seq=1))
    answer = hear(lander, panes(PLAN, 4))
    assert answer.taken == (Seqs(3, 7, ((1, 1),)),)
    assert answer.not_taken == (Untaken(NotTaken.RETIRED, Seqs(3, 7, ((2, 2),))),)
    assert reasons(lander) == ["of a retired device"]
    assert [seq for seq, _ in lander.panes.values()] == [1]


def test_panes_and_promises_from_the_far_future_are_refused(lander):
    far_us = BEGIN_US + 100 * DAY_US
    answer = hear(lander, panes(PLAN, 4, panes_us=(far_us, far_us + 10_000_000)))
    assert (answer.taken, answer.not_taken[0].reason) == ((), NotTaken.FAR_FUTURE)
    assert hear(lander, beat(1, far_us)).taken == ()
    assert reasons(lander) == ["panes from the far future", "promise from the far future"]
    assert (lander.panes, lander.promises.value) == ({}, {})


def test_a_forged_incarnation_is_refused_once_the_device_is_known(lander):
    hear(lander, panes(PLAN, 4))
    forged = Replica(ME.incarnation + INCARNATIONS_AHEAD + 1, 7, ME.device)
    assert hear(lander, panes(PLAN, 5, replica=forged)) is None
    assert reasons(lander) == ["incarnation too far ahead"]
    assert hear(lander, panes(PLAN, 6, first_seq=9)).taken == (Seqs(3, 7, ((9, 10),)),)


def test_another_lake_keeps_the_commands_that_were_given(lander):
    hear(lander, command(1, seq=1))
    other = SimulatedLander("lake-2", PLAN, lander.membership)
    assert hear(other, panes(PLAN, 4, first_seq=5)).taken == ()
    assert other.panes == {}
