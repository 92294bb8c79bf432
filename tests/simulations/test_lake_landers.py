"""Landers that share a lake lose nothing of it, and bugs of them are found."""

import pytest

from simulations.lake_landers import troubles
from simulations.planted.bug import BUGS
from simulations.planted.hunt import hunt
from simulations.planted.of_lake_landers import LAW

FIRST = {
    "a_lander_looks_at_the_newest_commit_of_others_alone": 8,
    "a_segment_ends_with_the_clock_that_was_set": 8,
}
"""Bug -> where the hunt begins: the first seed that finds it, or those after it if it moved."""


@pytest.mark.parametrize("seed", range(4))
def test_landers_that_share_a_lake_lose_nothing(seed):
    assert troubles(seed) == []


@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.needs == LAW])
def test_a_planted_bug_of_landers_is_found(name):
    first = FIRST.get(name, 0)
    caught = hunt(BUGS[name], range(first, first + 4))
    assert caught is not None
    assert not caught.unused
