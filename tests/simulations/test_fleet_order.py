"""One order over the fleet: a gateway has the oracle's rows, whatever befalls devices and it."""

from collections import Counter
from random import Random

import pytest

from simulations.fleet import GENTLE, Fleet
from simulations.replay import replaying
from simulations.world.faults import FaultRates
from simulations.world.lander import SimulatedLander
from tests.device_agent.agent.panes.support_fleetlet import Fleetlet
from tests.device_agent.agents import NOW_US, Device
from tests.lasp_edge.language.test_parting import plan_of
from tests.lasp_edge.scans.support_synchronised import SCANS, Epochs, program_of
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


@pytest.mark.parametrize("seed", range(2))
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


def test_a_program_with_local_events_is_tried_with_a_gateway():
    plan = plan_of("a", Epochs)
    readings = readings_of(plan, Random(3), count=60)
    with replaying(plan, readings, faults=HARD, seed=7) as replay:
        assert not replay.compared.wrong()
        assert replay.failures == []
        assert list(replay.fleet.world.sinks[0].lander.core.streams.rows("found"))


def test_another_order_of_arrival_gives_the_same_rows():
    plan, rng = PROGRAMS["join"], Random(5)
    readings = [each for each in readings_of(plan, rng, count=60) if not each.retracted]
    found = []
    for seed in range(2):
        shuffled = Random(seed).sample(readings, len(readings))
        with replaying(plan, shuffled, faults=HARD, seed=seed) as replay:
            found.append(replay.fleet.lander.rows(plan, "dew_point"))
    assert found[0] == found[1]


def test_words_of_all_devices_are_counted_by_the_cycle():
    """Each word has the counts 1, 2, 3, ... in the order of its times, whoever wrote it."""
    plan, rng = PROGRAMS["words"], Random(11)
    lines = [each for each in readings_of(plan, rng, count=60) if not each.retracted]
    lines = list({each.time_us: each for each in lines}.values())
    with replaying(plan, lines, faults=HARD, seed=3) as replay:
        rows = sorted(replay.fleet.lander.rows(plan, "counts").values())
    words = [w for each in sorted(lines, key=lambda e: e.time_us) for w in each.value.split()]
    seen = Counter()
    expected = []
    for word in words:
        seen[word] += 1
        expected.append(("r", word, seen[word]))
    assert [row.parts for row in rows] == expected


def test_a_device_that_was_away_for_an_hour_puts_its_readings_in_their_places():
    """After ten minutes nobody waits for it; then what was final without it is revised."""
    plan, rng, times_us = PROGRAMS["sessions"], Random(4), []
    fleet = Fleet(plan, size=2, seed=4)

    def stored():
        return dict(fleet.lander.core.streams.stored("visits"))

    fleet.step(20)
    fleet.cut("pi-1", 3_600)
    for minute in range(60):
        if minute % 5 < 3:
            fleet.read(rng.choice(("pi-0", "pi-1")), "door", minute, {"house": "oak"})
            times_us.append(fleet.now_us)
        fleet.step(60)
    final = {place: row for place, row in stored().items() if row.status == "final"}
    assert fleet.lander.core.coverage.excluded == ("pi-1",)
    fleet.settle()
    after = stored()
    fleet.close()
    found = [row.event.value for _, row in sorted(after.items()) if row.event is not None]
    assert found == visits_of(times_us)
    changed = [at for at, row in final.items() if after[at].event != row.event]
    assert len(changed) > len(final) / 2
    assert {after[at].status for at in changed} == {"revised"}


def visits_of(times_us, gap_us=90_000_000):
    """Return first, last and count of each run of times, by the definition."""
    runs = []
    for at_us in times_us:
        if runs and at_us - runs[-1][1] <= gap_us:
            runs[-1] = (runs[-1][0], at_us, runs[-1][2] + 1)
        else:
            runs.append((at_us, at_us, 1))
    return runs


def test_a_second_gateway_that_is_added_after_a_day_has_the_rows_of_the_first(tmp_path):
    """Devices have sent all of that day already, and send it to the new one again."""
    plan, rng = PROGRAMS["both_sides"], Random(9)
    landers = [SimulatedLander("store-1", plan)]
    fleetlets = [
        Fleetlet(Device(tmp_path / name, plan, name=name), *landers) for name in ("pi-0", "pi-1")
    ]
    for hour in range(26):
        if hour == 24:
            landers.append(SimulatedLander("store-2", plan, sink="gateway"))
        for each in fleetlets:
            each.landers = landers
            times_us = [each.device.now_us - rng.randrange(3_600) * 1_000_000 for _ in range(3)]
            values = [rng.randrange(12) for _ in times_us]
            each.device.take(values, times_us, [{}] * 3, name="x")
            each.run(3_600, step_s=300)
    for each in fleetlets:
        each.device.core.handle_end()
        each.run(3_600, step_s=300)
    first, second = ({n: each.rows(plan, n) for n in plan.fleet_results} for each in landers)
    assert first == second
    assert len(first["changes"]) > 60
    assert min(place[0] for _, place in second["changes"]) < NOW_US
