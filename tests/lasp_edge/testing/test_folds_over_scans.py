"""Folds without an inverse over a scan: an output that is taken back is out of them, for good."""

import pytest

from lasp_edge import Program, folds, scans
from lasp_edge.testing import replay
from simulations.fleet import Fleet
from simulations.oracle import Reading, windows

START_S = 1_764_028_800
EXTREMES = folds.struct(
    low=folds.min(),
    high=folds.max(),
    top=folds.top(2),
    half=folds.quantile(0.5),
    kinds=folds.distinct(),
    n=folds.count(),
)


def program_of(fold=EXTREMES):
    program = Program("meter")
    litres = program.event("litres", resolution="1")
    used = program.scan("used", source=litres, scan=scans.differences(), per_device=True)
    program.window("by_minute", source=used, fold=fold, size_s=60)
    return program


def run(readings, faults=()):
    given = [("a", "litres", value, START_S + at_s) for at_s, value in readings]
    found = replay(program_of(), given, faults=faults, seed=5)
    assert found.failures == []
    return found.window("by_minute")


@pytest.mark.parametrize("faults", [(), "rough", ["kill=200"]])
def test_a_late_reading_takes_the_greatest_difference_back(faults):
    late = [(0, 0), (10, 10), (20, 110), (30, 115), (15, 60), (70, 116)]
    row, _ = run(late, faults)
    assert (row["low"], row["high"], row["top_1"], row["top_2"]) == (5.0, 50.0, 50.0, 50.0)
    assert (row["n"], row["kinds"]) == (4, 3.0)
    assert row["half"] == pytest.approx(10, rel=0.01), "of 5, 10, 50 and 50 the rank is 1"


def test_a_later_life_of_the_device_takes_back_what_the_former_one_sent():
    fleet = Fleet(program_of().plan(), size=1, seed=1)
    given = [(0, 0), (10, 10), (20, 110), (30, 115)]
    begin_us = fleet.now_us // 60_000_000 * 60_000_000 - 180_000_000
    readings = [Reading("pi-0", "litres", value, begin_us + s * 1_000_000) for s, value in given]
    for reading in readings:
        fleet.read("pi-0", "litres", reading.value, time_us=reading.time_us)
    fleet.step(120)
    fleet.kill("pi-0")
    fleet.step(30)
    late = Reading("pi-0", "litres", 60, begin_us + 15_000_000)
    fleet.read("pi-0", "litres", 60, time_us=late.time_us)
    fleet.settle()
    truth = windows(fleet.plan, "by_minute", [*readings, late])
    landed = fleet.lander.windows(fleet.plan, "by_minute")
    assert landed == {at: each.partial for at, each in truth.items()}
    (partial,) = landed.values()
    window = fleet.plan.windows["by_minute"]
    assert window.fold.lower(partial, window.resolution)["high"] == 50.0
    fleet.close()
