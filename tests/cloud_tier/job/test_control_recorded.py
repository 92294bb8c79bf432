"""Recorded data under five entries: a gateway that is killed twice, Spark and the oracle agree."""

import gzip
import json

import pytest

from cloud_tier.lander.columns import LandedColumns
from crdts import ControlLog, Replica
from crdts.control_log import INHERITED
from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from device_agent.gateway.core import WaitingTerms
from device_agent.gateway.store import FleetStore
from lasp_edge import Program, folds
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.status import FINAL, REVISED
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US as S
from simulations.oracle import Reading, windows
from simulations.world.lander import SimulatedLander
from tests.cloud_tier.lakes import LakeUnderTest
from tests.device_agent.agents import Device
from tests.support_commands import schedule_command

pytestmark = pytest.mark.spark

HOUR_US = 3_600 * S
BEGIN_US = 1_594_598_400 * S
"""The midnight at which the recording begins."""
OPERATOR = Replica(1, 5, "operator")
TERMS = {"dead_after_us": 48 * HOUR_US}
ENTRIES = {
    3: [("above", "", 12 * HOUR_US, "21.5")],
    11: [
        ("offset", "iot-device-02", 2 * HOUR_US + 1, "-0.30"),
        ("offset", "iot-device-02", 9 * HOUR_US + 1_234_567, INHERITED),
    ],
    15: [("span_s", "", 7 * HOUR_US, "450")],
    18: [("step_s", "", 8 * HOUR_US - 1, "90")],
    20: [("error", "", 5 * HOUR_US, "0.02")],
}
"""Hour -> what an operator says then: of tomorrow, of a sensor that was wrong, of the past."""
KILLED = {15: "after its commit", 22: "before its commit"}


def recorded_program():
    """Return a program in which five parameters change all that a window has."""
    program = Program("recorded")
    temp = program.event("temp", resolution="0.01", unit="°C")
    above = program.parameter("above", "-100", resolution="0.1")
    offset = program.parameter("offset", "0", resolution="0.01")
    span = program.parameter("span_s", "300")
    step = program.parameter("step_s", "150")
    error = program.parameter("error", "0.05", resolution="0.01")
    program.window(
        "levels",
        source=temp,
        fold=folds.struct(count=folds.count(), total=folds.sum(), low=folds.min()),
        size_s=span,
        slide_s=step,
        uses=(above, offset),
        value=lambda event, at: event.value + at[offset],
        where=lambda event, at: event.value > at[above],
    )
    program.window(
        "p90",
        source=temp,
        fold=lambda at: folds.quantile(0.9, relative_error=at[error]),
        size_s=600,
        uses=(error,),
    )
    return program.plan()


@pytest.fixture(scope="module")
def readings(shared_data):
    """The temperatures of three devices and a day, in the order in which they came."""
    with gzip.open(shared_data / "rpi_mqtt_3dev" / "messages.jsonl.gz", "rt") as lines:
        messages = map(json.loads, lines)
        return [
            Reading(m["device"], "temp", m["data"]["temp"], round(m["ts"] * S)) for m in messages
        ]


class Site:
    """Three devices, a gateway on its file, and a lake, all of which hear the same."""

    def __init__(self, spark, directory, plan, names):
        self.plan, self.directory, self.now_us = plan, directory, BEGIN_US
        settings = Settings(fence_wait_us=0)
        self.devices = {
            name: Device(directory / name, plan, settings=settings, name=name, now_us=BEGIN_US)
            for name in names
        }
        self.lake = LakeUnderTest(spark, plan, directory / "lake", roster=names, **TERMS)
        self.log, regimes = ControlLog(), FleetRegimes(plan)
        sink = (DEFAULT_SINK, "lake-1")
        self.acceptance = Acceptance(
            plan.pane_streams, (), Topics(plan.name), sink, control=regimes
        )
        self.columns, self.records, self.merges = LandedColumns(plan, regimes), [], 0
        self.store, self.starts = None, 0
        self.start_gateway()

    def start_gateway(self):
        if self.store is not None:
            self.store.close()
        self.store, self.starts = FleetStore(self.directory / "gateway"), self.starts + 1
        process = Replica(1, self.starts, "gateway")
        terms = WaitingTerms(list(self.devices), **TERMS)
        self.gateway = SimulatedLander(
            "lake-1", self.plan, process=process, keeper=self.store, terms=terms
        )
        self.gateway.connected(self.now_us)

    def hear(self, topic, payload):
        self.records.append(Record(self.now_us, topic, retained=False, payload=payload))
        return self.gateway.hear(topic, payload, self.now_us)

    def say(self, entries):
        for parameter, scope, from_us, value in entries:
            self.log |= self.log.set(parameter, scope, BEGIN_US + from_us, value, "ann")
        for number, lane in enumerate(self.log.lanes(), 1):
            frame = schedule_command(OPERATOR, number, *lane, self.log)
            for device in self.devices.values():
                device.hear(frame)
            self.hear(topic_of(frame, Topics(self.plan.name)), frame.encode())

    def read(self, readings):
        """Let each device read its own, in one batch."""
        self.now_us = max(self.now_us, *(reading.time_us for reading in readings))
        for name, device in self.devices.items():
            own = [reading for reading in readings if reading.device == name]
            times_us, values = [r.time_us for r in own], [r.value for r in own]
            device.now_us = self.now_us
            batch = Batch("test", ["temp"] * len(own), times_us, values, [{}] * len(own))
            device.durable.read(batch, device.now_us)

    def turn(self, dies=""):
        """Let devices publish, and a gateway commit and answer; True if panes came.

        With the first panes it dies where the call asks for it, and the next one begins.
        """
        self.now_us += S
        answers, panes = [], False
        for device in self.devices.values():
            device.now_us = self.now_us - S
            published = device.tick(1)
            panes = panes or bool(device.frames(PaneFrame, published))
            answers += [(device, self.hear(p.topic, p.payload)) for p in published if p.payload]
        if not panes or dies != "before its commit":
            self.gateway.commit(self.now_us)
        if panes and dies:
            self.start_gateway()
            return True
        for device, answer in answers:
            if answer is not None:
                device.hear(answer)
        return panes

    def deliver(self, dies):
        """Let everything be delivered that was read."""
        for number in range(20):
            starts = self.starts
            panes = self.turn(dies)
            dies = dies if self.starts == starts else ""
            if number and not panes:
                return

    def merge(self):
        self.merges += 1
        records, self.records = self.records, []
        accepted = self.acceptance.take(records)
        tick = Tick(self.merges, Listening(self.now_us, BEGIN_US))
        self.lake.step(self.columns.table(accepted, "lander", tick).to_pylist())

    def settle(self):
        for device in self.devices.values():
            device.core.handle_end()
        for _ in range(300):
            self.turn()
            if all(device.core.done for device in self.devices.values()):
                break
        for _ in range(30):
            self.turn()
        self.merge()

    def gateway_rows(self):
        return [
            row
            for name in self.plan.windows
            for row in self.store.current(name, BEGIN_US - HOUR_US, BEGIN_US + 48 * HOUR_US)
        ]


def test_gateway_and_lake_hold_what_the_definition_says(spark, tmp_path, readings):
    plan, names = recorded_program(), sorted({reading.device for reading in readings})
    site = Site(spark, tmp_path, plan, tuple(names))
    for hour in range(25):
        until_us = BEGIN_US + (hour + 1) * HOUR_US
        site.read([each for each in readings if until_us - HOUR_US <= each.time_us < until_us])
        if hour in ENTRIES:
            site.say(ENTRIES[hour])
        site.deliver(KILLED.get(hour, ""))
        if hour in {9, 14, 19}:
            site.merge()
    site.settle()
    truth = {
        (name, *at): tuple(each)
        for name in plan.windows
        for at, each in windows(plan, name, readings, site.log).items()
    }
    rows = site.gateway_rows()
    assert {tuple(row.at): (row.partial, row.devices_in) for row in rows if row.devices_in} == truth
    assert {at: row for at, row in site.lake.current().items() if row[1]} == truth
    assert {row.status for row in rows} == {FINAL, REVISED}
    assert all(each.count(FINAL) == 1 for each in site.lake.statuses().values())
    assert len(truth) > 700
    assert site.starts == 3
