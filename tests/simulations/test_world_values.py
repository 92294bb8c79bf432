"""The laws of a device's values, of its clock and of what it keeps find what breaks them."""

import pytest

from simulations.planted import of_acting, of_values
from simulations.planted.bug import BUGS
from simulations.planted.hunt import hunt
from simulations.world.run import run
from simulations.world.scenario import Scenario


@pytest.mark.parametrize(
    ("bug", "seed", "trouble"),
    [
        (of_values.a_level_that_changed_is_looked_at_with_the_next_value, 20, "warm_lately is on"),
        (of_values.a_set_that_became_smaller_is_not_folded_again, 432, "of held_here"),
        (of_values.values_of_the_fleet_count_before_its_devices_are_in, 511, "of 1 devices"),
        (of_values.who_is_cut_off_takes_all_others_for_silent, 96, "it has been cut off"),
        (of_values.a_late_delta_brings_samples_back, 10, "of samples before, and it is news"),
        (of_values.a_queue_outlives_a_fold_of_the_whole_set, 794, "of held_here"),
        (of_values.a_process_measures_no_jump_from_the_one_before, 973, "which has jumped"),
        (of_values.the_stored_time_never_goes_back, 273, "and its store by"),
        (of_values.what_is_counted_waits_for_the_next_notes, 3, "counts 1 readings"),
        (of_values.what_waited_in_the_store_once_is_reported_for_ever, 1, "and all has landed"),
        (
            of_acting.a_turn_that_is_not_called_out_yet_is_lost_with_the_next,
            108,
            "has called out that",
        ),
    ],
)
def test_a_planted_bug_of_values_is_found(bug, seed, trouble):
    caught = hunt(BUGS[bug.__name__], [seed])
    assert caught is not None
    assert trouble in caught.trouble


@pytest.mark.parametrize(
    ("name", "seed", "trouble"),
    [
        ("a_notice_outlives_its_reason", 2, "this device is retired"),
        ("who_falls_silent_without_a_will_stays_connected", 18, "not heard for"),
        ("a_fleet_at_rest_beats_each_second", 4, "times at rest"),
    ],
)
def test_a_method_that_does_nothing_is_found(name, seed, trouble):
    caught = hunt(BUGS[name], [seed])
    assert caught is not None
    assert trouble in caught.trouble


def test_what_devices_show_people_stands_where_nothing_goes_wrong():
    assert run(Scenario(seed=4, size=3, steps=30, shown=True, keyed=True)).trouble == ()
