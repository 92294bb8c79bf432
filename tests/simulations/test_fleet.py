"""A fleet on virtual time: whatever goes wrong, it ends with the truth, and the same seed again."""

from collections import defaultdict
from contextlib import closing
from random import Random

import pytest

from crdts import BoundedLWWSet, Counter
from lasp_edge import Program, folds
from simulations.benchmarks import energy
from simulations.comparison import compare
from simulations.fleet import GENTLE, ROUGH, STEP_US, Fleet
from simulations.oracle import (
    Reading,
    accepted,
    dynamic_partials,
    inputs,
    windows,
)
from simulations.world.faults import FaultRates

SEEDS = range(3)
HOUR_US = 12 * STEP_US
"""So often the rooms change."""


def house() -> Program:
    """Return a program with everything.

    Panes that no window has, min and max, a shared counter, and sets by room: some whose keys stay,
    some whose keys go when nobody reads there for a while.
    """
    program = Program("house")
    temperature = program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(BoundedLWWSet(bound=10), "samples")
    total = program.declare(Counter(), "total")

    by_room = program.declare_dynamic(BoundedLWWSet(bound=4), "by_room", key=room)
    program.collect(temperature, into=by_room)
    aged = BoundedLWWSet(bound=20, max_age_s=40)
    lately = program.declare_dynamic(aged, "lately", key=lambda event: room(event)[0])

    @program.on_event(temperature)
    def sampled(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)
        update(lately, BoundedLWWSet.add, event.value, event.time_us)
        update(total, Counter.increment, 1)

    shape = folds.struct(mean=folds.mean(), low=folds.min(), high=folds.max())
    program.fold_dynamic(program.fold(samples, shape, "here"), "everywhere")
    program.fold_dynamic(program.fold(by_room, shape, "rooms_here"), "rooms_everywhere")
    last = folds.struct(last=folds.last(), top=folds.top(3), middle=folds.quantile(0.5))
    program.fold_dynamic(program.fold(lately, last, "lately_here"), "lately_everywhere")
    program.window(
        "window_by_room",
        source=temperature,
        fold=shape,
        size_s=50,
        slide_s=20,
        key=room,
    )
    return program.plan()


def room(event):
    return event.tags["room"]


class Work:
    """Readings of a fleet, and what the oracle must know of them."""

    def __init__(self, seed: int, faults: FaultRates, size: int = 4) -> None:
        self.replay = f"replay with: Work({seed}, {faults}, size={size})"
        self.fleet = Fleet(house(), size=size, seed=seed, faults=faults)
        self.random = Random(seed)
        self.readings: dict[str, list[Reading]] = defaultdict(list)

    def read(self, device: str) -> None:
        """Let a device read some values: new, late or repeated."""
        for _ in range(self.random.randint(0, 3)):
            known = self.readings[device]
            if known and self.random.random() < 0.3:
                reading = self.random.choice(known)
            else:
                age_us = self.random.choice([0, 0, 1, 60]) * self.random.randint(0, 1_000_000)
                value = round(self.random.uniform(15, 30), 2)
                tags = {"room": f"{self.random.choice('ab')}{self.fleet.now_us // HOUR_US % 100}"}
                at_us = self.fleet.now_us - age_us
                reading = Reading(device, "temperature", value, at_us, tags)
            reading = reading._replace(accepted_us=self.fleet.now_us)
            self.fleet.read(device, "temperature", reading.value, reading.tags, reading.time_us)
            known.append(reading)

    def running(self) -> list[str]:
        """Return the devices that are switched on."""
        return [name for name, agent in self.fleet.devices.items() if agent.durable]

    def steps(self, count: int) -> None:
        """Let all devices read, and time pass."""
        for _ in range(count):
            for device in self.running():
                self.read(device)
            self.fleet.step()

    def check_inputs(self, name: str) -> None:
        """Hold the `inputs` of a dynamic fold against their definition."""
        fleet = self.fleet
        retired, words = fleet.membership.retired, fleet.entries(name)
        truth = inputs(fleet.plan, name, words, retired)
        assert {device.inputs(name) for device in fleet.running()} == {truth}, self.replay

    def check_keys(self, name: str) -> None:
        """Hold a dynamic fold with keys against the oracle, key by key."""
        fleet, retired = self.fleet, self.fleet.membership.retired
        truth = dynamic_partials(fleet.plan, name, self.readings, retired, self.fleet.now_us)
        words = fleet.entries(name)
        for device, results in fleet.results(name).items():
            found = {key: result.partial for key, result in results.items()}
            assert found == truth, (device, self.replay)
            for key, result in results.items():
                assert result.inputs == inputs(fleet.plan, name, words, retired, key)

    def check_windows(self, without=()) -> None:
        """Hold the windows in the lake against the oracle, without some devices' readings."""
        name, program = "window_by_room", self.fleet.plan
        readings = [r for device, rs in self.readings.items() if device not in without for r in rs]
        truth = windows(program, name, readings)
        found = self.fleet.lander.windows(program, name, without)
        assert found == {at: window.partial for at, window in truth.items()}, self.replay

    def settle(self) -> None:
        """Heal, settle, and hold everything against the oracle."""
        fleet, program = self.fleet, self.fleet.plan
        fleet.settle()
        everything = [reading for readings in self.readings.values() for reading in readings]
        self.check_windows(fleet.membership.retired)  # what they said late need not be there
        for name in program.dynamic_folds:
            self.check_inputs(name)
            self.check_keys(name)
        count = len(accepted(program, everything))
        counters = {fleet.devices[name].core.variables.shared()["total"] for name in self.running()}
        assert counters == {count}, self.replay
        ends_us = max(reading.time_us for reading in everything)
        for device, promise in fleet.lander.promises.entries.items():
            assert (promise.low_us or 0) <= ends_us + 50_000_000, (device, self.replay)
        fleet.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_rough_fleet_ends_with_the_truth(seed):
    work = Work(seed, ROUGH)
    work.steps(60)
    assert work.fleet.world.seen["kill"] > 0
    work.settle()


def test_a_gentle_fleet_agrees_within_seconds():
    work = Work(3, GENTLE)
    work.steps(20)
    began_us = work.fleet.now_us
    work.settle()
    assert work.fleet.now_us - began_us <= 15 * STEP_US


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_new_lake_is_filled_with_everything_again(seed):
    work = Work(seed, ROUGH)
    work.steps(25)
    work.fleet.befall("new_lake")
    work.steps(15)
    work.fleet.befall("new_lake")
    work.steps(10)
    work.settle()


def test_an_idle_fleet_fills_a_new_lake_too():
    work = Work(4, GENTLE)
    work.steps(10)
    work.fleet.settle()
    work.fleet.befall("new_lake")
    work.fleet.step(30)
    work.settle()


def test_a_device_that_is_offline_is_named_and_does_not_hold_the_others_up():
    work = Work(5, GENTLE, size=3)
    work.steps(10)
    work.fleet.cut("pi-2", 1_000)
    work.steps(10)
    work.fleet.step(60)
    results = [work.fleet.results("everywhere")[name][""] for name in ("pi-0", "pi-1")]
    assert [(result.settled, result.offline) for result in results] == [(True, ("pi-2",))] * 2
    assert results[0].inputs == results[1].inputs
    work.settle()


def test_a_retired_device_that_is_gone_holds_nobody_up_and_its_panes_count():
    work = Work(8, GENTLE, size=3)
    work.steps(30)
    work.fleet.step(40)  # its panes have landed
    work.fleet.stop("pi-2")
    work.steps(10)
    with pytest.raises(AssertionError, match="not settled"):
        work.fleet.settle(steps=60)
    assert work.fleet.results("everywhere")["pi-0"][""].offline == ("pi-2",)
    work.fleet.retire("pi-2")
    work.settle()
    work.check_windows()


def test_a_retired_device_that_lives_on_counts_again_when_it_is_admitted():
    work = Work(9, GENTLE, size=3)
    work.steps(20)
    work.fleet.step(60)
    before = len(work.fleet.lander.panes)
    work.fleet.retire("pi-1")
    work.fleet.step()
    at_us = work.fleet.now_us
    work.steps(20)
    work.fleet.step(60)
    late = [pane for pane in work.fleet.lander.panes if pane[3] == "pi-1" and pane[2] > at_us]
    assert late == []
    assert len(work.fleet.lander.panes) > before
    partials = dynamic_partials(work.fleet.plan, "everywhere", work.readings, ["pi-1"])
    assert all(found == partials for found in work.fleet.values("everywhere").values())
    assert not work.fleet.devices["pi-1"].core.done
    work.fleet.admit("pi-1")
    work.settle()


def test_an_idle_fleet_says_little():
    work = Work(6, GENTLE, size=5)
    work.steps(10)
    work.fleet.settle()
    work.fleet.step(30)  # until all results for people are out
    before = work.fleet.world.bytes
    work.fleet.step(1_000)
    assert (work.fleet.world.bytes - before) / 1_000 / 5 < 20  # bytes a second and device
    work.fleet.close()


def test_a_fleet_that_cannot_settle_says_how_things_stand():
    work = Work(7, GENTLE)
    work.steps(3)
    with pytest.raises(AssertionError, match=r"not settled after 0 steps.*pi-3"):
        work.fleet.settle(steps=0)
    work.fleet.close()


def test_where_each_share_follows_from_the_one_before_a_fleet_settles_event_by_event():
    fleet, readings = Fleet(energy.modelled.plan(), size=2, seed=1), []
    with closing(fleet):
        fleet.step(5)
        for at in range(12):
            for device, event in (("pi-0", "power"), ("pi-1", "slice")):
                time_us = fleet.now_us + 20 * at + (event == "slice")
                readings.append(Reading(device, event, at, time_us, {"house": "h"}))
                fleet.read(device, event, at, {"house": "h"}, time_us)
        begun_us = fleet.now_us
        fleet.settle(steps=40)
        assert fleet.now_us - begun_us > 40 * STEP_US
        found = compare(fleet.world, readings)
    assert found.known["result load"] == 12
    assert not +found.differing
