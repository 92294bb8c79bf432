"""What is left of a shared set at a broker is what devices hold, and a bug of it is found."""

import pytest

from simulations.left_traces import troubles
from simulations.planted.bug import BUGS
from simulations.planted.hunt import hunt
from simulations.planted.of_left_traces import LAW


@pytest.mark.parametrize("seed", range(4))
def test_a_seed_holds_the_law(seed):
    assert troubles(seed) == []


@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.needs == LAW])
def test_a_planted_bug_of_traces_is_found(name):
    caught = hunt(BUGS[name], range(20))
    assert caught is not None
    assert not caught.unused
