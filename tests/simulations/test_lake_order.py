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
    ("name", "first"),
    [
        ("cuts_are_committed_before_rows", 0),
        ("touched_are_the_cells_of_new_rows_alone", 0),
        ("rows_of_a_lake_name_who_has_come_back", 3),
        ("rows_of_a_lake_name_nobody_who_was_silent", 0),
        ("rows_of_a_lake_do_not_name_whose_store_was_lost", 3),
        ("a_cell_that_comes_as_late_as_it_may_is_too_late", 6),
        ("a_job_that_starts_again_waits_for_what_had_a_row", 0),
    ],
)
def test_a_bug_of_the_job_is_found(name, first):
    caught = hunt(BUGS[name], range(first, first + 20))
    assert caught is not None
    assert not caught.unused
