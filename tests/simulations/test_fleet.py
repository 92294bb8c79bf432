"""A fleet on virtual time: whatever goes wrong, it ends with the truth, and the same seed again."""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

from crdts import BoundedLWWSet, Counter
from lasp_edge import Program, folds
from simulations.fleet import GENTLE, ROUGH, STEP_US, Faults, Fleet
from simulations.oracle import Reading, accepted, dynamic_partial, windows

CHECKOUT = Path(__file__).parents[2]
SEEDS = range(8)


def house() -> Program:
    """Return a program with everything: panes that no window has, min and max, a shared counter."""
    program = Program("house")
    temperature = program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(BoundedLWWSet(bound=10), "samples")
    total = program.declare(Counter(), "total")

    @program.on_event(temperature)
    def sampled(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)
        update(total, Counter.increment, 1)

    shape = folds.struct(mean=folds.mean(), low=folds.min(), high=folds.max())
    program.fold_dynamic(program.fold(samples, shape, "here"), "everywhere")
    program.window(
        "by_room",
        source=temperature,
        fold=shape,
        size_s=50,
        slide_s=20,
        key=lambda event: event.tags["room"],
    )
    return program


class Work:
    """Readings of a fleet, and what the oracle must know of them."""

    def __init__(self, seed: int, faults: Faults, size: int = 4) -> None:
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
                tags = {"room": self.random.choice("ab")}
                at_us = self.fleet.now_us - age_us
                reading = Reading(device, "temperature", value, at_us, tags)
            self.fleet.read(device, "temperature", reading.value, reading.tags, reading.time_us)
            known.append(reading)

    def steps(self, count: int) -> None:
        """Let all devices read, and time pass."""
        for _ in range(count):
            for device in self.fleet.agents:
                self.read(device)
            self.fleet.step()

    def settle(self) -> None:
        """Heal, settle, and hold everything against the oracle."""
        fleet, program = self.fleet, self.fleet.program
        fleet.settle()
        everything = [reading for readings in self.readings.values() for reading in readings]
        truth = windows(program, "by_room", everything)
        found = fleet.landed.windows(program, "by_room")
        assert found == {at: window.partial for at, window in truth.items()}, self.replay
        partial = dynamic_partial(program, "everywhere", self.readings)
        assert set(fleet.values("everywhere").values()) == {partial}, self.replay
        assert len(fleet.inputs("everywhere")) == 1, self.replay
        count = len(accepted(program, everything))
        counters = {a.core.variables.shared()["total"] for a in fleet.agents.values()}
        assert counters == {count}, self.replay
        ends_us = max(reading.time_us for reading in everything)
        for device, (_, low_us) in fleet.landed.promises.items():
            assert low_us is None or low_us <= ends_us + 50_000_000, (device, self.replay)
        fleet.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_rough_fleet_ends_with_the_truth(seed):
    work = Work(seed, ROUGH)
    work.steps(60)
    assert work.fleet.kills > 0
    work.settle()


FAULTS = {
    "loss": Faults(loss=0.6),
    "doubled": Faults(doubled=0.9, delay_us=9 * STEP_US),
    "delayed": Faults(delay_us=30 * STEP_US),
    "killed": Faults(kill=0.5),
    "cut off": Faults(cut=0.4),
    "broker empty": Faults(broker_reset=0.3),
    "lander forgets": Faults(lander_forgets=0.9),
    "link full": Faults(unsent=0.7),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone_and_heavy_ends_with_the_truth(fault):
    work = Work(1, FAULTS[fault])
    work.steps(40)
    work.settle()


def test_a_gentle_fleet_agrees_within_seconds():
    work = Work(3, GENTLE)
    work.steps(20)
    began_us = work.fleet.now_us
    work.settle()
    assert work.fleet.now_us - began_us <= 15 * STEP_US


@pytest.mark.slow
def test_a_device_that_is_killed_at_every_step_ends_with_the_truth():
    work = Work(2, Faults(loss=0.1, doubled=0.1, delay_us=3 * STEP_US))
    for step in range(40):
        for device in work.fleet.agents:
            work.read(device)
            if device == "pi-1" or step % 7 == 0:
                work.fleet.kill(device)
        work.fleet.step()
    work.settle()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_new_lake_is_filled_with_everything_again(seed):
    work = Work(seed, ROUGH)
    work.steps(25)
    work.fleet.new_lake("lake-2")
    work.steps(15)
    work.fleet.new_lake("lake-3")
    work.steps(10)
    work.settle()


def test_an_idle_fleet_fills_a_new_lake_too():
    work = Work(4, GENTLE)
    work.steps(10)
    work.fleet.settle()
    work.fleet.new_lake("lake-2")
    work.fleet.step(30)
    work.settle()


def test_a_device_that_is_offline_is_named_and_does_not_hold_the_others_up():
    work = Work(5, GENTLE, size=3)
    work.steps(10)
    work.fleet.cut("pi-2", 1_000)
    work.steps(10)
    work.fleet.step(60)
    results = [
        work.fleet.agents[name].core.variables.fleet()["everywhere"] for name in ("pi-0", "pi-1")
    ]
    assert [(result.settled, result.offline) for result in results] == [(True, ("pi-2",))] * 2
    assert results[0].inputs == results[1].inputs
    work.settle()


def test_an_idle_fleet_says_little():
    work = Work(6, GENTLE, size=5)
    work.steps(10)
    work.fleet.settle()
    before = work.fleet.published_bytes
    work.fleet.step(1_000)
    assert (work.fleet.published_bytes - before) / 1_000 / 5 < 20  # bytes a second and device
    work.fleet.close()


def test_a_fleet_that_cannot_settle_says_how_things_stand():
    work = Work(7, GENTLE)
    work.steps(3)
    with pytest.raises(AssertionError, match=r"not settled after 0 steps.*pi-3"):
        work.fleet.settle(steps=0)
    work.fleet.close()


TRACE = """
import hashlib
from tests.simulations.test_fleet import ROUGH, Work
work = Work(11, ROUGH)
seen = []
publish = work.fleet._publish
work.fleet._publish = lambda publication: (seen.append(publication), publish(publication))
work.steps(30)
work.fleet.settle()
print(len(seen), hashlib.sha256(repr(seen).encode()).hexdigest())
work.fleet.close()
"""


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace_whatever_the_hash_seed():
    traces = set()
    for hash_seed in ("0", "1", "4711"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        line = [sys.executable, "-c", TRACE]
        ran = subprocess.run(
            line, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        traces.add(ran.stdout)
    assert len(traces) == 1
