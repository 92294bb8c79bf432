"""A lander's tables know what the lake of worlds knows, and bugs of them are found."""

import pytest

from simulations.lake_landed import troubles
from simulations.planted.bug import BUGS
from simulations.planted.hunt import hunt
from simulations.planted.of_lake_landed import LAW

FIRST = {"what_a_killed_lander_had_refused_is_counted_again": 3}
"""Bug -> where the hunt begins: the first seed that finds it, or those after it if it moved."""


@pytest.mark.parametrize("seed", range(6))
def test_tables_know_what_the_lake_in_memory_knows(seed):
    assert troubles(seed) == []


@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.needs == LAW])
def test_a_planted_bug_of_the_tables_is_found(name):
    first = FIRST.get(name, 0)
    caught = hunt(BUGS[name], range(first, first + 4))
    assert caught is not None
    assert not caught.unused
