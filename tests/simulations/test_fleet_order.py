"""One order over the fleet: a gateway has the oracle's rows, whatever befalls devices and it."""

from random import Random

import pytest

from simulations.fleet import GENTLE
from simulations.replay import replaying
from simulations.world.faults import FaultRates
from tests.lasp_edge.scans.support_synchronised import SCANS, program_of
from tests.simulations.support_fleet_order import PROGRAMS, readings_of

HARD = FaultRates(
    loss=0.2,
    doubled=0.2,
    delayed=0.8,
    kill=180,
    cut=180,
    lander_crash=120,
    broker_forgets=72,
)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_rows_of_the_fleet_are_the_oracles(name, seed):
    rng, plan = Random(seed), PROGRAMS[name]
    readings = readings_of(plan, rng, count=rng.choice([20, 80]))
    faults = HARD if seed else GENTLE
    with replaying(plan, readings, faults=faults, seed=seed) as replay:
        assert not replay.compared.wrong()
        assert replay.failures == []
        for result in plan.fleet_results:
            rows = replay.fleet.lander.rows(plan, result)
            assert rows
            devices = {row.place[1] for row in rows.values()}
            assert devices == {""} or len(devices) > 1  # timers are of no device


@pytest.mark.parametrize("kind", SCANS)
def test_the_rows_of_a_synchronised_scan_are_the_oracles(kind):
    plan, rng = program_of(kind).plan(), Random(len(kind.name))
    with replaying(plan, readings_of(plan, rng, count=80), faults=HARD, seed=7) as replay:
        assert not replay.compared.wrong()
        assert replay.failures == []
        assert replay.fleet.lander.rows(plan, "found") or kind.name == "smart_home"


def test_another_order_of_arrival_gives_the_same_rows():
    plan, rng = PROGRAMS["join"], Random(5)
    readings = [each for each in readings_of(plan, rng, count=60) if not each.retracted]
    found = []
    for seed in range(2):
        shuffled = Random(seed).sample(readings, len(readings))
        with replaying(plan, shuffled, faults=HARD, seed=seed) as replay:
            found.append(replay.fleet.lander.rows(plan, "dew_point"))
    assert found[0] == found[1]
