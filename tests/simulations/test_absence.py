"""A device that is silent for too long leaves the fleet's value everywhere, and comes back."""

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from simulations.fleet import ROUGH, Fleet

STALE_S = 120


def house(*, keyed=False):
    """Return a program with two fleet-wide means: of all devices, and of those that are heard."""
    program = Program("house")
    temperature = program.event("temperature", resolution="0.1")
    samples = program.declare_dynamic(
        BoundedLWWSet(bound=5), "samples", key=(lambda e: e.tags["room"]) if keyed else None
    )
    program.collect(temperature, into=samples)
    here = program.fold(samples, folds.mean(), "here")
    program.fold_dynamic(here, "all")
    program.fold_dynamic(here, "heard", stale_after_s=STALE_S)
    return program.plan()


@pytest.fixture
def start():
    fleets = []

    def begin(plan, **more):
        fleets.append(Fleet(plan, size=4, seed=more.pop("seed", 7), **more))
        return fleets[-1]

    yield begin
    for fleet in fleets:
        fleet.close()


def warm(fleet, rooms=("hall",)):
    """Let each device read: 10, 20, 30 and 40 degrees."""
    for number, device in enumerate(fleet.devices):
        fleet.read(device, "temperature", 10.0 * (number + 1), {"room": rooms[number % len(rooms)]})
    fleet.step(20)


def agreed(fleet, name, key=""):
    """Return partial and devices of what all running devices say alike, with equal inputs."""
    found = {
        (result.partial, result.inputs, result.devices)
        for by_key in fleet.results(name).values()
        for result in [by_key[key]]
    }
    ((partial, _, devices),) = found
    return partial, devices


def test_a_dead_sensor_leaves_the_mean_everywhere_and_is_back_when_it_is_heard(start):
    fleet = start(house())
    warm(fleet)
    assert agreed(fleet, "heard") == ((4, 1000), 4)
    fleet.stop("pi-3")
    fleet.step(STALE_S - 30)
    assert agreed(fleet, "heard") == ((4, 1000), 4)
    fleet.step(60)
    assert agreed(fleet, "heard") == ((3, 600), 3)
    assert agreed(fleet, "all") == ((4, 1000), 4)
    fleet.start("pi-3")
    fleet.step(30)
    assert agreed(fleet, "heard") == ((4, 1000), 4)


def test_a_device_that_measures_nothing_new_is_not_absent(start):
    fleet = start(house())
    warm(fleet)
    fleet.step(5 * STALE_S)
    assert agreed(fleet, "heard") == ((4, 1000), 4)


def test_a_device_that_was_cut_off_is_absent_to_the_others_and_none_to_it(start):
    fleet = start(house())
    warm(fleet)
    fleet.cut("pi-0", 2 * STALE_S)
    fleet.step(STALE_S + 60)
    alone = fleet.results("heard").pop("pi-0")[""]
    assert (alone.partial, alone.devices) == ((4, 1000), 4)
    assert {fleet.results("heard")[f"pi-{n}"][""].partial for n in (1, 2, 3)} == {(3, 900)}
    fleet.step(STALE_S)
    assert agreed(fleet, "heard") == ((4, 1000), 4)


def test_a_note_outlives_who_made_it(start):
    fleet = start(house())
    warm(fleet)
    fleet.stop("pi-3")
    fleet.step(STALE_S + 60)
    for device in ("pi-0", "pi-1", "pi-2"):
        fleet.kill(device)
    fleet.step(30)
    assert agreed(fleet, "heard") == ((3, 600), 3)


def test_a_retired_device_and_a_silent_one_both_leave(start):
    fleet = start(house())
    warm(fleet)
    fleet.retire("pi-2")
    fleet.stop("pi-3")
    fleet.step(STALE_S + 60)
    assert agreed(fleet, "heard") == ((2, 300), 2)
    fleet.admit("pi-2")
    fleet.step(30)
    assert agreed(fleet, "heard") == ((3, 600), 3)


def test_a_silent_device_leaves_each_of_its_keys(start):
    fleet = start(house(keyed=True))
    warm(fleet, ("hall", "attic"))
    fleet.stop("pi-3")
    fleet.stop("pi-1")
    fleet.step(STALE_S + 60)
    assert agreed(fleet, "heard", "hall") == ((2, 400), 2)
    assert all("attic" not in by_key for by_key in fleet.results("heard").values())
    fleet.start("pi-1")
    fleet.step(30)
    assert agreed(fleet, "heard", "attic") == ((1, 200), 1)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happened_devices_agree_when_it_is_over(start, seed):
    fleet = start(house(), seed=seed, faults=ROUGH)
    for _ in range(6):
        warm(fleet)
    fleet.stop("pi-3")
    fleet.step(STALE_S)
    fleet.calm()
    fleet.step(4 * STALE_S)
    partial, devices = agreed(fleet, "heard")
    assert (partial[0], devices) == (15, 3), f"replay with seed {seed}"


def noted_in_stores(fleet):
    """Return which devices are noted as absent in the store of any running device."""
    found = [device.durable.store.restored().facts.absences or {} for device in fleet.running()]
    return {absent for notes in found for devices in notes.values() for absent in devices}


def test_a_note_that_was_taken_back_is_in_no_store(start):
    fleet = start(house())
    warm(fleet)
    fleet.stop("pi-3")
    fleet.step(STALE_S + 60)
    assert noted_in_stores(fleet) == {"pi-3"}
    fleet.start("pi-3")
    fleet.step(60)
    assert noted_in_stores(fleet) == set()
