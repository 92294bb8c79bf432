"""What is left of a shared set at a broker is what devices hold, and a bug of it is found."""

import pytest

from simulations.left_traces import troubles
from simulations.planted.bug import BUGS
from simulations.planted.hunt import hunt
from simulations.planted.of_left_traces import LAW

FIRST = {
    "anybody_confirms_what_was_removed_of_others": 2,
    "what_others_know_already_is_not_left_again": 3,
    "what_is_recovered_is_not_left_again": 3,
    "what_others_removed_is_left_before_it_is_stored": 5,
}
"""Bug -> where the hunt begins: the first seed that finds it, or those after it if it moved."""


@pytest.mark.parametrize("seed", range(4))
def test_a_seed_holds_the_law(seed):
    assert troubles(seed) == []


@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.needs == LAW])
def test_a_planted_bug_of_traces_is_found(name):
    first = FIRST.get(name, 0)
    caught = hunt(BUGS[name], range(first, first + 20))
    assert caught is not None
    assert not caught.unused
