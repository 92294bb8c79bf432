"""Real device cores, the oracle and Spark over one history: equal `inputs`, equal result.

Devices run on virtual time over a bad network; whatever the broker routes is taken by a lander's
reader and merged by the step, in batches of its own. Then all three are compared, bit for bit.
"""

from collections import defaultdict
from random import Random

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from lasp_edge.protocol.inputs import membership_text
from simulations.oracle import Reading, dynamic_partials, inputs
from simulations.world.faults import FaultRates
from tests.cloud_tier.support_fleet import LandedFleet

pytestmark = pytest.mark.spark

SECOND_US = 1_000_000
ROUGH = FaultRates(
    loss=0.1, doubled=0.2, delayed=0.75, delay_steps=3, kill=72, cut=108, unsent=0.02
)
ROOMS = [f"room {n}" for n in range(12)]


def house():
    """A program with keys, keys that go by age, and a value without keys; sketches in all."""
    program = Program("house")
    event = program.event("temperature", resolution="0.01")

    def room(event):
        return event.tags["room"]

    held = program.declare_dynamic(BoundedLWWSet(bound=40), "held", key=room)
    recent = program.declare_dynamic(BoundedLWWSet(bound=9, max_age_s=12), "recent", key=room)
    whole = program.declare_dynamic(BoundedLWWSet(bound=60), "whole")

    program.collect(event, into=whole)

    @program.on_event(event)
    def sampled(event, update):
        for variable in (held, recent):
            update(variable, BoundedLWWSet.add, event.value, event.time_us)

    mixed = folds.struct(
        mean=folds.mean(),
        p=folds.quantile(0.5),
        seen=folds.distinct(8),
        last=folds.last(),
        top=folds.top(2),
    )
    program.fold_dynamic(program.fold(held, mixed, "here"), "by room")
    program.fold_dynamic(
        program.fold(recent, folds.struct(n=folds.count(), low=folds.min()), "now"), "recently"
    )
    program.fold_dynamic(program.fold(whole, folds.distinct(8), "kinds"), "all kinds")
    program.window("minute", source=event, fold=mixed, size_s=50, slide_s=20, key=room)
    return program.plan()


PROGRAM = house()


class Run:
    """A fleet, a lake, and the readings that the devices accepted."""

    def __init__(self, spark, root, seed, size=4):
        self.random = Random(seed)
        self.landed = LandedFleet(spark, PROGRAM, root, size=size, seed=seed, faults=ROUGH)
        self.fleet, self.lake = self.landed.fleet, self.landed.lake
        self.readings = defaultdict(list)

    def steps(self, count, devices=None):
        """Let devices read, each in the rooms it is in, and time pass."""
        for _ in range(count):
            for device in devices or self.fleet.devices:
                if self.fleet.devices[device].durable is not None:
                    self._read(device)
            self.fleet.step()

    def _read(self, device):
        for _ in range(self.random.randint(0, 4)):
            value = self.random.randrange(-500, 4000) / 100
            tags = {"room": self.random.choice(ROOMS)}
            at_us = self.fleet.now_us - self.random.randrange(3 * SECOND_US)
            self.fleet.read(device, "temperature", value, tags, at_us)
            reading = Reading(device, "temperature", value, at_us, tags)
            self.readings[device].append(reading._replace(accepted_us=self.fleet.now_us))

    def land(self):
        """Merge what came in, in a batch that repeats a part of an earlier one."""
        self.landed.land(lambda r: self.random.sample(r, len(r)) + r[: len(r) // 3])

    def settled(self):
        """Heal and settle the fleet, land its entries, and compare."""
        self.fleet.settle()
        self.land()
        return self.compare()

    def compare(self):
        """Hold Spark against every device and the oracle; return what Spark has, by fold."""
        fleet, found = self.fleet, {}
        retired = fleet.membership.retired
        assert self.lake.known.liveness.membership == fleet.membership
        for agent in fleet.running():
            assert membership_text(agent.commands().membership) == membership_text(fleet.membership)
        for name in PROGRAM.dynamic_folds:
            found[name] = self.landed.globals(name)
            there = {key: value for key, value in found[name].items() if value.devices_in}
            words = fleet.entries(name)
            partials = dynamic_partials(PROGRAM, name, self.readings, retired, fleet.now_us)
            if name != "recently":  # which goes by each device's ticks
                assert {key: value.partial for key, value in there.items()} == partials
            for key, value in there.items():
                assert value.inputs == inputs(PROGRAM, name, words, retired, key), (name, key)
        return found


@pytest.fixture
def run(spark, tmp_path):
    made = Run(spark, tmp_path, seed=0)
    yield made
    made.fleet.close()


def test_devices_oracle_and_spark_agree_through_retirement_and_return(run):
    fleet = run.fleet
    run.steps(10)
    run.land()
    fleet.stop("pi-3")
    fleet.retire("pi-3")
    run.steps(8)
    assert any(value.devices_in for value in run.settled()["by room"].values())
    fleet.start("pi-3")
    run.steps(4, ["pi-0", "pi-3"])
    retired = run.settled()
    windows = run.lake.current()
    fleet.admit("pi-3")
    assert run.settled() != retired
    assert run.lake.current() != windows, "what it read meanwhile counts now"
    found = {(key, start): value[0] for (_, key, start), value in run.lake.current().items()}
    assert found == fleet.lander.windows(PROGRAM, "minute")
    fleet.step(20)
    gone = run.settled()["recently"]
    assert gone
    assert not any(value.devices_in for value in gone.values()), "all were too old"
