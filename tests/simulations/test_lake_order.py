"""A lake's job that dies between any two commits has the oracle's rows; bugs are found."""

import pytest

from simulations import lake_order, lake_parted
from simulations.planted.bug import BUGS
from simulations.planted.hunt import hunt


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_the_oracles_wherever_the_job_dies(seed):
    assert lake_order.troubles(seed) == []


@pytest.mark.parametrize("seed", [*range(3), 27, 88])
def test_answers_settle_as_at_a_gateway_wherever_the_job_dies(seed):
    assert lake_parted.troubles(seed) == []


@pytest.mark.parametrize(
    "name",
    [
        "cuts_are_committed_before_rows",
        "touched_are_the_cells_of_new_rows_alone",
        "rows_of_a_lake_name_who_has_come_back",
        "rows_of_a_lake_name_nobody_who_was_silent",
        "rows_of_a_lake_do_not_name_whose_store_was_lost",
    ],
)
def test_a_bug_of_the_job_is_found(name):
    caught = hunt(BUGS[name], range(20))
    assert caught is not None
    assert not caught.unused
