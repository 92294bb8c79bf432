"""What streams say lands from a fleet with every fault as the oracle says: windows and rows."""

from random import Random

import pytest

from lasp_edge import Program, folds, scans
from simulations.fleet import ROUGH, Fleet
from simulations.oracle import Reading, rows, windows


def water():
    program = Program("water")
    litres = program.event("litres", resolution="0.5")
    used = program.scan(
        "used",
        source=litres,
        scan=scans.differences(reset=True),
        key=lambda event: event.tags["tap"],
        per_device=True,
    )
    program.window("used_by_tap", source=used, fold=folds.mean(), size_s=20, key=lambda e: e.key)
    much = program.filter(litres, lambda event: event.value > 50, "much")
    program.window("greatest", source=much, fold=folds.max(), size_s=30, slide_s=10)
    program.result(used)
    return program.plan()


@pytest.mark.parametrize("seed", range(3))
def test_what_streams_say_lands_as_the_oracle_says(seed):
    rng, fleet, readings = Random(seed), Fleet(water(), size=3, seed=seed, faults=ROUGH), []
    for _ in range(60):
        for name in [name for name, agent in fleet.devices.items() if agent.durable]:
            for _ in range(rng.randint(0, 2)):
                back_us = rng.choice((0, 0, 1, 40)) * rng.randint(0, 1_000_000)
                at_us, tags = fleet.now_us - back_us, {"tap": rng.choice("ab")}
                reading = Reading(name, "litres", rng.randrange(200) / 2, at_us, tags)
                if rng.random() < 0.2 and readings:
                    reading = rng.choice([r for r in readings if r.device == name] or [reading])
                fleet.read(name, "litres", reading.value, reading.tags, reading.time_us)
                readings.append(reading)
        fleet.step()
    fleet.settle()
    for name in fleet.plan.windows:
        truth = {at: found.partial for at, found in windows(fleet.plan, name, readings).items()}
        landed = fleet.lander.windows(fleet.plan, name, ())
        landed = {at: partial for at, partial in landed.items() if any(partial)}
        assert landed == truth, f"seed {seed}"
    for name in fleet.plan.stream_results:
        landed = fleet.lander.rows(fleet.plan, name)
        assert landed == rows(fleet.plan, name, readings), f"seed {seed}"
    fleet.close()
