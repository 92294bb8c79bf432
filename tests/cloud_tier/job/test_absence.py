"""Devices that were silent for too long leave Spark's globals as they leave the devices' values."""

import pytest

from cloud_tier.lander.columns import LandedColumns
from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.topics import Topics
from simulations.fleet import Fleet
from tests.cloud_tier.lakes import LakeUnderTest, part

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


class Landed:
    """A fleet, and a lake that takes what the broker routes."""

    def __init__(self, spark, root):
        self.fleet = Fleet(PROGRAM, size=4, seed=3)
        self.lake = LakeUnderTest(spark, PROGRAM, root)
        self.records, self.segments = [], 0
        streams = (PROGRAM.windows.values(), PROGRAM.published_folds.values())
        here = (DEFAULT_SINK, self.fleet.hub.lander.lake)
        self.acceptance = Acceptance(*streams, Topics(PROGRAM.name), here)
        hear = self.fleet.hub.lander.hear

        def recorded(topic, payload, now_us):
            self.records.append(Record(now_us, topic, retained=False, payload=payload))
            return hear(topic, payload, now_us)

        self.fleet.hub.lander.hear = recorded

    def compare(self):
        """Land what came; hold Spark against every device; return the devices in, by fold."""
        self.segments += 1
        records, self.records = self.records, []
        accepted = self.acceptance.take(records)
        assert not accepted.refused
        tick = Tick(self.segments, Listening(self.fleet.now_us, 0))
        table = LandedColumns(PROGRAM).table(accepted, "lander", tick)
        self.lake.step(table.to_pylist())
        found = {}
        for name in PROGRAM.dynamic_folds:
            there = {key: value for key, value in self.globals(name).items() if value[2]}
            for agent in self.fleet.running():
                mine = {
                    key: (r.partial, r.inputs, r.devices)
                    for key, r in agent.results(name).items()
                    if r.devices
                }
                assert there == mine, (agent.name, name)
            found[name] = {key: devices for key, (_, _, devices) in there.items()}
        return found

    def globals(self, name):
        """Return key -> (partial, inputs, devices) of the current rows of a dynamic fold."""
        newest = {}
        for row in sorted(self.lake.rows(self.lake.lake.globals), key=lambda r: r["revision"]):
            if row["name"] == name:
                columns = PROGRAM.dynamic_folds[name].fold.columns_named
                partial = tuple(part(row[column]) for column in columns)
                newest[row["key"]] = (partial, row["inputs"], row["devices_in"])
        return newest


def test_spark_leaves_out_whom_the_devices_leave_out(spark, tmp_path):
    landed = Landed(spark, tmp_path)
    fleet = landed.fleet
    for number, device in enumerate(fleet.devices):
        fleet.read(device, "temperature", 10.0 * number, {"room": ROOMS[number % 2]})
    fleet.step(30)
    everybody = {"all": {"": 4}, "heard": {"": 4}, "heard by room": {"hall": 2, "attic": 2}}
    assert landed.compare() == everybody
    fleet.stop("pi-1")
    fleet.stop("pi-3")
    fleet.retire("pi-2")
    fleet.step(STALE_S + 60)
    assert landed.compare() == {
        "all": {"": 3},
        "heard": {"": 1},
        "heard by room": {"hall": 1},
    }
    fleet.admit("pi-2")
    fleet.start("pi-3")
    fleet.step(30)
    assert landed.compare() == {
        "all": {"": 4},
        "heard": {"": 3},
        "heard by room": {"hall": 2, "attic": 1},
    }
    fleet.close()
