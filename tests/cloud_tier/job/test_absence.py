"""Devices that were silent for too long leave Spark's globals as they leave the devices' values."""

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from tests.cloud_tier.support_fleet import LandedFleet

pytestmark = pytest.mark.spark

STALE_S = 120
ROOMS = ("hall", "attic")


def house():
    """A program with keys and without, each value over all devices and over those heard."""
    program = Program("house")
    event = program.event("temperature", resolution="0.1")
    whole = program.declare_dynamic(BoundedLWWSet(bound=5), "whole")
    rooms = program.declare_dynamic(
        BoundedLWWSet(bound=5), "rooms", key=lambda event: event.tags["room"]
    )
    program.collect(event, into=whole)
    program.collect(event, into=rooms)
    here = program.fold(whole, folds.mean(), "here")
    program.fold_dynamic(here, "all")
    program.fold_dynamic(here, "heard", stale_after_s=STALE_S)
    mixed = folds.struct(mean=folds.mean(), p=folds.quantile(0.5))
    by_room = program.fold(rooms, mixed, "by room")
    program.fold_dynamic(by_room, "heard by room", stale_after_s=STALE_S)
    return program.plan()


PROGRAM = house()


def compare(landed):
    """Land what came; hold Spark against every device; return the devices in, by fold."""
    landed.land()
    return {
        name: {
            key: value.devices_in for key, value in landed.globals(name).items() if value.devices_in
        }
        for name in PROGRAM.dynamic_folds
    }


def test_spark_leaves_out_whom_the_devices_leave_out(spark, tmp_path):
    landed = LandedFleet(spark, PROGRAM, tmp_path, size=4, seed=3)
    fleet = landed.fleet
    for number, device in enumerate(fleet.devices):
        fleet.read(device, "temperature", 10.0 * number, {"room": ROOMS[number % 2]})
    fleet.step(30)
    everybody = {"all": {"": 4}, "heard": {"": 4}, "heard by room": {"hall": 2, "attic": 2}}
    assert compare(landed) == everybody
    fleet.stop("pi-1")
    fleet.stop("pi-3")
    fleet.retire("pi-2")
    fleet.step(STALE_S + 60)
    assert compare(landed) == {
        "all": {"": 3},
        "heard": {"": 1},
        "heard by room": {"hall": 1},
    }
    fleet.admit("pi-2")
    fleet.start("pi-3")
    fleet.step(30)
    assert compare(landed) == {
        "all": {"": 4},
        "heard": {"": 3},
        "heard by room": {"hall": 2, "attic": 1},
    }
    fleet.close()
