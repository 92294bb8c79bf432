"""Two real gateways and a scan with local events: the one that devices follow is killed.

Real agents read sensors over MQTT and go on all the time. The other gateway has the rows of one
order, and none that either calls final is ever wrong, while the first one is away and after that.
"""

import csv
import io
import json
from collections import Counter
from random import Random

import pytest

from lasp_edge.link import BrokerUrl, Link
from lasp_edge.ordered.places import place_text
from simulations.oracle import Reading, rows
from tests.brokers import until_true
from tests.device_agent.gateway.test_process import Gateway
from tests.device_agent.support_stage import START_S, Stage, asked

pytestmark = [pytest.mark.slow, pytest.mark.broker]
PROGRAM = """
import sys

from device_agent.agent.scans import shares
from lasp_edge import Program, scans
from lasp_edge.protocol import greetings

if sys.argv[1:2] == ["agent"]:  # else it follows a gateway that is silent for ten minutes
    shares.DEAD_AFTER_US = 1_500_000
if sys.argv[1:2] == ["gateway"]:  # else one that acknowledges nothing is heard each four minutes
    greetings.GREETED_AGAIN_US = 600_000


class Barrier(scans.Synchronised):
    name, zero, parts = "barrier", (0, 0), {{"total": "1", "before": "1"}}
    depends = (("end", "piece"), ("end", "end"))

    def step(self, state, event):
        before, total = state
        if event.name == "end":
            return (total, 0), [(total, before)]
        return (before, total + round(event.value)), []

    def share(self, state):
        return state[0], 0

    def join(self, state, part):
        return state[0], state[1] + part[1]


program = Program("{name}")
piece, end = program.event("piece", resolution="1"), program.event("end", resolution="1")
found = program.scan("made", source=[piece, end], scan=Barrier(), local=piece)
program.result(found)
"""
DEVICES = ("desk", "press")
WAITS = "tentative"
SLICES = 3
"""Slices that are read before somebody looks at them."""


class Floor:
    """Two gateways, and agents whose sensors speak over MQTT."""

    def __init__(self, stage):
        self.stage, self.random, self.second = stage, Random(3), 0
        stage.lander.link.stop(0.0)
        url = BrokerUrl.parse(stage.broker.url)
        self.link = Link(url, client_id="sensors", subscriptions=[], jitter=Random(1))
        self.link.start()
        self.gateways = {name: Named(stage, name) for name in ("first", "second")}
        words = ("--time", "ts", "--lateness", "0")
        self.agents = {
            name: stage.agent(name, "--source", f"mqtt:sensors/{name}", *words) for name in DEVICES
        }
        self.readings, self.shown = {}, {}

    def read(self, device, **values):
        """Let a sensor of a device say something, at the present second."""
        at_s = START_S + self.second + (0.5 if "end" in values else 0)
        line = {"ts": at_s, **values}
        self.link.publish(f"sensors/{device}", json.dumps(line).encode(), qos=1)
        ((name, value),) = values.items()
        reading = Reading(device, name, value, round(at_s * 1e6), {})
        self.readings[device, name, at_s] = reading

    def begin(self):
        """Let all read something, until they have."""
        for device, agent in self.agents.items():

            def has_read(device=device, agent=agent):
                self.read(device, piece=1)
                return agent.newest()["accepted"]

            until_true(has_read)

    def work(self):
        """Let each device read something, and the desk end a slice."""
        self.second += 1
        for device in DEVICES:
            self.read(device, piece=self.random.randrange(100))
        self.read("desk", end=self.second)

    def truth(self):
        """Return place -> parts of the rows of one order over all readings so far."""
        found = rows(self.stage.program, "made", self.readings.values())
        return {place_text(place): row.parts for (_, place), row in found.items()}

    def follow(self, name):
        """Go on until all devices follow a gateway."""
        until_true(lambda: self.goes_on() and set(self.followed()) == {f"gateway-{name}"})

    def has_read(self):
        """Return whether each agent has accepted what its sensors have said."""
        said = Counter(device for device, *_ in self.readings)
        return all(agent.newest()["accepted"] == said[name] for name, agent in self.agents.items())

    def followed(self):
        return [agent.newest()["shares"]["follows"] for agent in self.agents.values()]

    def goes_on(self):
        """Read on where all was read; rows that are final anywhere are those of one order."""
        if self.has_read():
            self.work()
        truth = self.truth()
        self.shown = {name: gateway.shown() for name, gateway in self.gateways.items()}
        for name, shown in self.shown.items():
            final = {at: parts for at, (status, parts) in shown.items() if status != WAITS}
            assert final == {at: truth[at] for at in final}, f"a final row of {name} is wrong"
            assert "revised" not in {status for status, _ in shown.values()}
        return True

    def settle(self, *names):
        """Read some slices, and go on until gateways have the final rows of these."""
        for _ in range(SLICES):
            self.work()
        truth = self.truth()

        def have_all():
            return all(
                self.shown[name].get(at) == ("final", parts)
                for name in names
                for at, parts in truth.items()
            )

        until_true(lambda: self.goes_on() and have_all())


class Named(Gateway):
    """A gateway of several."""

    def __init__(self, stage, name):
        self.stage, self.data = stage, stage.directory / f"gateway-{name}"
        self.more = ("--name", name, "--dead-after", "600", "--roster", ",".join(DEVICES))
        self.start()

    def shown(self):
        """Return what `lasp-edge results` prints: place -> status and parts."""
        printed = asked("results", "made", "--gateway", self.data, "--csv")
        lines = csv.DictReader(io.StringIO(printed))
        return {
            line["place"]: (line["status"], (int(line["total_q"]), int(line["before_q"])))
            for line in lines
        }


@pytest.fixture
def floor(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, PROGRAM)
    floor = Floor(stage)
    yield floor
    floor.link.stop(0.0)
    for gateway in floor.gateways.values():
        gateway.kill()
    stage.close()


def test_devices_go_on_with_another_gateway_where_the_one_that_they_follow_is_killed(floor):
    floor.begin()
    floor.settle("first", "second")
    floor.follow("first")
    floor.gateways["first"].kill()
    floor.settle("second")
    floor.follow("second")
    floor.gateways["first"].start()  # with less than it had published, and than the other one has
    floor.settle("first", "second")
    floor.follow("first")
    assert all(agent.process.poll() is None for agent in floor.agents.values())
