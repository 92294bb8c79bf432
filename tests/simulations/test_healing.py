"""A fleet is whole again in time, and bugs of what waits for its next try are found."""

import pytest

from simulations.healing import troubles
from simulations.planted.bug import BUGS
from simulations.planted.hunt import hunt
from simulations.planted.of_healing import LAW

FIRST = {
    "strangers_are_greeted_as_seldom_as_others": 26,
    "commands_wait_for_the_time_of_a_clock_that_was_ahead": 19,
    "frames_wait_for_the_time_of_a_clock_that_was_ahead": 61,
    "a_stranger_is_heard_in_place_of_a_device_for_ever": 2,
    "who_asked_once_in_vain_waits_as_long_as_ever": 73,
}
"""Bug -> where the hunt begins: the first seed that finds it, or those after it if it moved."""


@pytest.mark.parametrize("seed", range(6))
def test_a_seed_holds_the_law(seed):
    assert troubles(seed) == []


@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.needs == LAW])
def test_a_planted_bug_of_waiting_is_found(name):
    first = FIRST.get(name, 0)
    caught = hunt(BUGS[name], range(first, first + 200))
    assert caught is not None
    assert not caught.unused
