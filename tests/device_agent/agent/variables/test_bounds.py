"""Sets whose bound operators change: what is kept, and which devices' partials are added up."""

from random import Random

import pytest

from crdts import BoundedLWWSet, ControlLog, Replica
from lasp_edge import Program, folds
from lasp_edge.folds.bounds import Bound, NewestBound
from lasp_edge.protocol.frames import VariableFrame
from lasp_edge.units import SECOND_US as S
from simulations.oracle import Reading, dynamic_partials, local_partials
from tests.device_agent.agents import NOW_US, Device
from tests.support_commands import schedule_command

OPERATOR = Replica(1, 5, "operator")


def greenhouse(fold=folds.mean, *, keyed=False, stale_after_s=None):
    program = Program("greenhouse")
    temperature = program.event("temperature", resolution="0.1")
    last = program.parameter("last", "5")
    key = (lambda event: event.tags["room"]) if keyed else None
    samples = program.declare_dynamic(BoundedLWWSet(bound=last), "samples", key=key)
    program.collect(temperature, into=samples)
    local = program.fold(samples, fold, "here")
    program.fold_dynamic(local, "everywhere", stale_after_s=stale_after_s)
    return program.plan()


class Fleet:
    """Two devices, and the operator whose log they hear."""

    def __init__(self, directory, plan):
        self.plan, self.log, self.number = plan, ControlLog(), 0
        self.devices = {
            name: Device(directory / name, plan, name=name) for name in ("cellar", "attic")
        }
        self.read = {name: [] for name in self.devices}

    def say(self, from_us, value, *, deaf=()):
        self.log |= self.log.set("last", "", from_us, value, "ann")
        self.tell(name for name in self.devices if name not in deaf)

    def tell(self, devices):
        self.number += 1
        for name in devices:
            frame = schedule_command(OPERATOR, self.number, "last", "", self.log)
            self.devices[name].hear(frame)

    def take(self, name, times_us, room="hall"):
        device, known = self.devices[name], self.read[name]
        values = [(len(known) + at) / 10 for at in range(len(times_us))]
        known += [
            Reading(name, "temperature", value, time_us, {"room": room})
            for value, time_us in zip(values, times_us, strict=True)
        ]
        device.read(values, times_us, {"room": room})

    def meet(self):
        """Let the devices publish, and each hear what the other one published."""
        for device in self.devices.values():
            device.tick()
        for name, device in self.devices.items():
            for other, peer in self.devices.items():
                for frame in device.frames(VariableFrame):
                    if other != name:
                        peer.hear(frame)

    def check(self):
        whole = dynamic_partials(self.plan, "everywhere", self.read, log=self.log)
        for name, device in self.devices.items():
            here = local_partials(self.plan, "here", self.read[name], log=self.log)
            assert device.core.samples.partials("here") == here
            entries = device.core.samples.counting(self.plan.dynamic_folds["everywhere"])
            assert {key: entries.total(key).partial for key in entries.keys} == whole


@pytest.mark.parametrize("seed", range(8))
def test_values_equal_the_truth_however_readings_are_batched(tmp_path, seed):
    drawn = Random(seed)
    fold = drawn.choice([folds.mean, folds.max, folds.stddev, lambda: folds.quantile(0.5)])
    fleet = Fleet(tmp_path, greenhouse(fold(), keyed=drawn.random() < 0.5))
    now_us = NOW_US
    for _ in range(30):
        now_us += drawn.randrange(1, 20) * S
        what = drawn.random()
        name = drawn.choice(sorted(fleet.devices))
        if what < 0.6:
            count = drawn.choice((1, 2, 9, 17))
            times = [now_us - drawn.randrange(15 * S) for _ in range(count)]
            fleet.take(name, times, drawn.choice(("hall", "shed")))
        elif what < 0.8:
            ahead_us = now_us + drawn.randrange(1, 30 * S)
            fleet.say(ahead_us, drawn.choice(["2", "7", "12", "0", "", None]))
        elif what < 0.9:
            fleet.devices[name].tick()
        else:
            fleet.devices[name].tick()
            fleet.devices[name].restart()
    fleet.meet()
    fleet.check()
    assert any(fleet.read.values())


@pytest.fixture
def fleet(tmp_path):
    fleet = Fleet(tmp_path, greenhouse())
    for name in fleet.devices:
        fleet.take(name, [NOW_US + at * S for at in range(10)])
    return fleet


def total(fleet, name):
    entries = fleet.devices[name].core.samples.counting(fleet.plan.dynamic_folds["everywhere"])
    found = entries.total("")
    return found.partial[4], found.devices


def test_devices_that_have_not_come_over_do_not_count(fleet):
    fleet.meet()
    assert total(fleet, "cellar") == (10, 2)  # five samples of each
    fleet.say(NOW_US, "3", deaf=("attic",))
    fleet.meet()
    assert total(fleet, "cellar") == total(fleet, "attic") == (3, 1)
    fleet.tell(["attic"])
    fleet.meet()
    fleet.check()
    assert total(fleet, "cellar") == total(fleet, "attic") == (6, 2)


def test_a_place_that_is_taken_back_is_newer_than_what_it_said(fleet):
    fleet.say(NOW_US, "3")
    fleet.meet()
    fleet.say(NOW_US, None, deaf=("attic",))
    fleet.take("cellar", [NOW_US + 20 * S])
    fleet.meet()
    assert total(fleet, "attic") == (4, 1)  # three were kept, and one came
    fleet.tell(["attic"])
    fleet.meet()
    assert total(fleet, "attic") == (7, 2)


def test_a_later_bound_waits_for_the_first_reading_of_its_time(fleet):
    fleet.say(NOW_US + 60 * S, "2")
    fleet.meet()
    assert total(fleet, "cellar") == (10, 2)
    fleet.take("attic", [NOW_US + 60 * S])
    fleet.meet()
    assert total(fleet, "cellar") == (2, 1)
    fleet.take("cellar", [NOW_US + 61 * S])
    fleet.meet()
    assert total(fleet, "cellar") == (4, 2)


def test_a_batch_is_cut_where_the_bound_changes(fleet):
    fleet.say(NOW_US + 60 * S, "12")
    fleet.take("cellar", [NOW_US + at * S for at in (50, 51, 52, 53, 54, 55, 60, 61, 62)])
    fleet.take("attic", [NOW_US + 60 * S])
    fleet.meet()
    fleet.check()
    assert total(fleet, "attic") == (5 + 3 + 5 + 1, 2)


def test_a_new_bound_is_told_where_the_partial_stays_as_it_was(tmp_path):
    fleet = Fleet(tmp_path, greenhouse(folds.count))
    for name in fleet.devices:
        fleet.take(name, [NOW_US + at * S for at in range(10)])
    fleet.meet()
    fleet.say(NOW_US + 60 * S, "5")
    fleet.take("attic", [NOW_US + 60 * S])
    fleet.meet()
    assert total(fleet, "cellar") == total(fleet, "attic") == (5, 1)


def test_a_restart_keeps_a_larger_bound(fleet):
    fleet.say(NOW_US, "8")
    fleet.take("cellar", [NOW_US + at * S for at in range(20, 24)])
    fleet.devices["cellar"].tick()
    fleet.devices["cellar"].restart()
    fleet.devices["cellar"].tick()
    assert fleet.devices["cellar"].core.samples.partials("here")[""][4] == 8


def test_a_restart_keeps_the_bound_of_a_sample_that_has_left(fleet):
    fleet.say(NOW_US + 60 * S, "7")
    fleet.take("cellar", [NOW_US + at * S for at in (60, *range(20, 28))])
    fleet.devices["cellar"].tick()
    before = fleet.devices["cellar"].core.samples.partials("here")
    fleet.devices["cellar"].restart()
    fleet.devices["cellar"].tick()
    assert fleet.devices["cellar"].core.samples.partials("here") == before
    assert before[""][2:5] == (7, 1, 7)


def test_a_restart_knows_which_of_two_equal_bounds_was_reached(fleet):
    fleet.say(1_000 * S, "2")
    fleet.say(2_000 * S, "2")
    fleet.take("attic", [2_000 * S])
    for at_us in (900 * S, 901 * S):
        fleet.take("attic", [at_us])  # the sample of the second bound leaves
    fleet.meet()
    attic = fleet.devices["attic"]
    before = attic.core.samples.sets.bound(("samples", ""))
    assert before.from_us == 2_000 * S
    attic.restart()
    assert attic.core.samples.sets.bound(("samples", "")) == before


def test_a_strangers_partial_has_one_whole_bound():
    fold = NewestBound(folds.mean(), "last")
    assert fold.within_limits(fold.under(Bound(1, 5, 3), (1, 5)))
    for wrong in ((1, None, 3, 1), (None, None, None, 1), (1, 5, 0, 1), (1, 5, 3, 9)):
        assert not fold.within_limits((*wrong, 1, 5))


def test_of_two_bounds_the_newer_stands_alone():
    fold = NewestBound(folds.mean(), "last")
    assert fold.combine(fold.zero, fold.zero) == fold.zero
    one, two = (fold.under(Bound(1, at, 3), (1, at)) for at in (5, 6))
    assert fold.combine(one, two) == fold.combine(two, one) == two
    assert fold.combine(fold.zero, one) == one


def test_mistakes_are_told():
    program = Program("greenhouse")
    program.event("temperature", resolution="0.1")
    mode = program.parameter("mode", "day", choices=("day", "night"))
    tenths = program.parameter("tenths", "5", resolution="0.1")
    nothing = program.parameter("nothing", "0")
    other = Program("other").parameter("last", "5")
    for given, needed in ((mode, "whole number"), (tenths, "whole number"), (nothing, "above 0")):
        with pytest.raises(ValueError, match=needed):
            BoundedLWWSet(bound=given)
    with pytest.raises(ValueError, match="of another program"):
        program.declare_dynamic(BoundedLWWSet(bound=other), "samples")
    last = program.parameter("last", "5")
    with pytest.raises(ValueError, match="declare_dynamic"):
        program.declare(BoundedLWWSet(bound=last), "shared")
