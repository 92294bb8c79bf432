"""The worlds have programs in one order over the fleet: each sink has the oracle's rows."""

from dataclasses import replace

import pytest

from simulations.explore import main
from simulations.planted.bug import BUGS
from simulations.planted.hunt import hunt
from simulations.world.faults import Fault
from simulations.world.fleet_streamed import BEFORE, NEVER_S, SCANS, WAITS_S, order_of
from simulations.world.local_events import synced
from simulations.world.run import run
from simulations.world.scenario import ARCHIVE, Scenario, scenario_of

WIDENED = (Fault(8, "other_release", "pi-0", 1), Fault(14, "other_release", "pi-1", 1))


def having(**wanted):
    """Return the first calm scenario whose order is such as is wanted."""
    for seed in range(2, 400):
        scenario = Scenario(seed, size=2, steps=30, ordered=True, schedule=WIDENED)
        if all(getattr(order_of(scenario), name) == value for name, value in wanted.items()):
            return scenario
    raise AssertionError(f"no seed has {wanted}")


@pytest.mark.parametrize("seed", [3, 7, 12, 26])
def test_rows_over_the_fleet_are_the_oracles_under_every_fault(seed):
    outcome = run(replace(scenario_of(seed), ordered=True))
    replay = f"replay with: python -m simulations.explore --seed {seed} --having ordered"
    assert not outcome.trouble, replay


@pytest.mark.parametrize("scan", SCANS)
def test_a_scan_of_each_kind_has_the_oracles_rows(scan):
    scenario = having(scan=scan)
    assert run(replace(scenario, schedule=())).trouble == ()
    assert run(replace(scenario, schedule=(), gateways=("lake",))).trouble == ()


def test_a_release_that_widens_a_filter_has_another_stream_of_items():
    assert run(having(widens=True, before="filter")).trouble == ()
    assert run(having(widens=True, before="flat_map")).trouble == ()


def test_a_second_gateway_that_joins_late_has_the_same_rows():
    scenario = replace(having(wait_s=0), archive=True, gateways=("lake", ARCHIVE), joins_at=25)
    assert run(scenario).trouble == ()


def test_rows_of_a_program_that_counts_otherwise_are_not_held_against_the_present_scan():
    faults = [Fault(4, "former_lander", "", 10), Fault(6, "other_release", "pi-0", 1)]
    of_one = Scenario(1, 1, 16, schedule=tuple(faults), gateways=("lake",))
    scenario = replace(of_one, ordered=True, synced=True)
    assert order_of(scenario).restates
    assert run(scenario).trouble == ()


MISFORTUNES = [
    ("store_lost", 2, 2, "lives_of_a_device_write_one_entry"),
    ("older_image", 2, 5, "the_cell_of_the_newest_life_takes_the_place_of_others"),
    ("clone", 12, 2, "lives_of_a_device_write_one_entry"),
    ("kill", 3, 2, "a_cell_leaves_without_what_its_life_had_sent_before"),
    ("gateway_torn", 40, 2, "rows_are_committed_a_turn_after_their_items"),
    ("power_lost", 3, 2, "rows_are_committed_a_turn_after_their_items"),
    ("other_release", 1, 3, "the_filter_is_not_in_the_id_of_its_items"),
    ("gateway_old", 1, 4, "a_gateways_disk_that_was_put_back_is_taken_as_whole"),
]
"""Kind, amount, seed, and a bug by which this very history goes wrong."""


@pytest.mark.parametrize(("kind", "amount", "seed", "bug"), MISFORTUNES)
def test_a_misfortune_alone_changes_no_row_and_does_where_a_bug_is_planted(kind, amount, seed, bug):
    schedule = [Fault(at, kind, f"pi-{n % 2}", amount) for n, at in enumerate((9, 16, 23))]
    calm = Scenario(seed, size=2, steps=30, ordered=True, gateways=("lake",))
    scenario = replace(calm, schedule=tuple(schedule))
    outcome = run(scenario)
    assert outcome.trouble == ()
    assert outcome.seen[kind] > 1
    with BUGS[bug].plant():
        assert run(scenario).trouble


def test_a_late_event_in_order_behind_the_cut_becomes_final_once_it_is_answered():
    calm = Scenario(4176, size=2, steps=45, ordered=True, gateways=("lake",))
    assert run(replace(calm, synced=True, unsynchronised=True, stamped=True)).trouble == ()


def test_what_waits_for_all_devices_is_known_after_the_power_was_lost():
    calm = Scenario(8, size=2, steps=30, ordered=True, gateways=("lake",))
    scenario = replace(calm, schedule=(Fault(26, "power_lost", "", 0),))
    assert order_of(scenario).wait_s == NEVER_S
    assert run(scenario).trouble == ()
    with BUGS["what_waits_for_x_is_forgotten_at_a_restart"].plant():
        assert "is None, and the oracle's" in run(scenario).trouble[0]


@pytest.mark.parametrize("seed", [0, 8, 16, 28, 93, 172, 293])
def test_a_scan_with_local_events_has_the_oracles_rows_under_every_fault(seed):
    outcome = run(synced(scenario_of(seed)))
    assert outcome.trouble == ()


def test_every_kind_of_order_is_drawn():
    orders = [order_of(scenario_of(seed)) for seed in range(2_000) if scenario_of(seed).ordered]
    assert len(orders) > 150
    assert {order.scan for order in orders} == set(SCANS)
    assert {order.before for order in orders} == set(BEFORE)
    assert {order.wait_s for order in orders} == set(WAITS_S)
    assert {order.of_outputs for order in orders} == {True, False}
    assert {order.leaves_soon for order in orders} == {True, False}
    assert {order.is_steady for order in orders if order.of_outputs} == {True, False}
    assert {order.widens for order in orders} == {order.keyed for order in orders} == {True, False}


def test_a_replay_names_what_its_program_has(capsys):
    assert main(["--seed", "3", "--having", "ordered", "--only", "kill"]) == 0
    assert "ordered" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "first", "found"),
    [
        ("a_promise_does_not_wait_for_cells_of_items", 31, "promises"),
        ("rows_of_the_fleet_are_final_by_the_greatest_promise", 462, "F is not there"),
        ("a_cell_leaves_without_what_its_life_had_sent_before", 63, "lacks the item"),
        ("a_reading_that_is_taken_back_leaves_as_a_reading", 31, "items of pi-"),
        ("a_promise_does_not_wait_for_outputs", 24, "promises"),
        ("a_promise_passes_the_timers_of_scans_that_the_fleet_hears", 489, "lacks the output"),
        ("the_cell_of_the_newest_life_takes_the_place_of_others", 31, "its streams read"),
        ("outputs_are_united_as_items_are", 47, "and the oracle's"),
        ("the_oldest_version_of_an_output_counts", 492, "and the oracle's"),
        ("what_time_brings_to_the_fleet_is_of_a_device", 58, "and the oracle's"),
        ("what_waits_for_x_is_forgotten_at_a_restart", 686, "is None, and the oracle's"),
    ],
)
def test_a_bug_of_the_order_is_found(name, first, found):
    caught = hunt(BUGS[name], range(first, first + 60))
    assert caught is not None
    assert found in caught.trouble


@pytest.mark.parametrize("seed", [17, 45])
def test_rows_at_local_events_are_final_only_once_their_device_has_gone_on(seed):
    assert run(synced(scenario_of(seed))).trouble == ()


def test_a_device_that_counts_later_hears_of_events_in_order_that_had_passed_without_it():
    """It follows a gateway that had passed them, and another one waits for its answers there."""
    assert run(synced(scenario_of(5061))).trouble == ()


@pytest.mark.parametrize(
    ("bug", "seed"),
    [
        ("a_basis_does_not_name_the_share", 1),
        ("who_has_not_answered_has_made_nothing", 8),
        ("rows_are_final_by_the_frontier_alone", 8),
        ("a_reading_is_in_a_part_and_leaves_as_an_item", 37),
        ("a_device_that_waits_for_a_share_counts_as_gone_on", 31),
        ("shares_count_by_their_arrival", 163),
    ],
)
def test_a_planted_bug_of_local_events_is_found(bug, seed):
    assert hunt(BUGS[bug], [seed]) is not None


def test_a_row_that_was_made_of_two_shares_shows_that_itself():
    """Its items carry the share that they were stepped under: no oracle is needed to see it."""
    caught = hunt(BUGS["parts_of_any_share_are_joined"], [1])
    assert caught is not None
    assert "is torn" in caught.trouble
