"""A fleet is whole again in time, and bugs of what waits for its next try are found."""

import pytest

from simulations.healing import troubles
from simulations.planted.bug import BUGS
from simulations.planted.hunt import hunt
from simulations.planted.of_healing import LAW


@pytest.mark.parametrize("seed", range(6))
def test_a_seed_holds_the_law(seed):
    assert troubles(seed) == []


@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.needs == LAW])
def test_a_planted_bug_of_waiting_is_found(name):
    caught = hunt(BUGS[name], range(200))
    assert caught is not None
    assert not caught.unused
