"""Local events in a fleet: events in order at one instant, a week away, a gateway that dies."""

from contextlib import contextmanager

import pytest

from device_agent.agent.intake.batch import Batch
from device_agent.agent.scans import streams
from device_agent.agent.scans.shares import Shares
from device_agent.gateway.core import WaitingTerms
from lasp_edge.event import Event
from lasp_edge.language.streaming import FLEET, graph_of
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.places import reading_place
from lasp_edge.ordered.waiting_cells import WaitingCells
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.status import FINAL, REVISED, TENTATIVE
from lasp_edge.protocol.waiting import DEAD_AFTER_US
from lasp_edge.units import SECOND_US
from simulations.world.faults import Fault
from simulations.world.local_events import synced
from simulations.world.misfortunes import befall
from simulations.world.programs import LIVE
from simulations.world.run import run
from simulations.world.scenario import ARCHIVE, Scenario, scenario_of
from simulations.world.world import World
from tests.lasp_edge.language.test_parting import plan_of
from tests.lasp_edge.scans.support_synchronised import Epochs

PLAN = plan_of("a", Epochs)
HOUR_US = 3_600 * SECOND_US
TERMS = WaitingTerms(roster=("pi-0", "pi-1", "pi-2"), dead_after_us=20 * SECOND_US)


class LocalFleet(World):
    """Three devices and their gateways; whatever is read is remembered for the oracle."""

    def __init__(self, *gateways, plan=PLAN, retain_s=7 * 86_400):
        archive = ARCHIVE in gateways
        has = Scenario(5, 3, 0, gateways=gateways, archive=archive, retain_s=retain_s)
        super().__init__(has, None, plan, terms=TERMS)
        self.content = {"a": {}, "b": {}}
        for name, device in self.devices.items():
            self.wake(name, device)
        self.pass_steps(20)

    def read(self, device, name, value, late_s=0):
        reader, time_us = self.devices[device], self.now_us - late_s * SECOND_US
        reader.read(Batch(LIVE, [name], [time_us], [value], [{}]), reader.now_us(self.now_us))
        place = reading_place(name, "", value, time_us, device)
        self.content[name][place] = Event(name, float(value), time_us, device, {})

    def pass_steps(self, count, us=0):
        for _ in range(count):
            self.now_us += us
            self.step()
        assert not self.trouble, self.trouble

    def slices(self, count):
        """Let two devices read, and a third one end a slice, some times."""
        for number in range(count):
            for device in ("pi-0", "pi-1"):
                self.read(device, "a", number)
            self.pass_steps(3)
            self.read("pi-2", "b", 1)
            self.pass_steps(4)

    def rows(self, sink=0):
        """Return place -> value and status of the rows at a gateway."""
        rows = self.sinks[sink].lander.core.streams.stored("found")
        return {place: (row.event.value, row.status) for place, row in rows if row.event}

    def truth(self):
        found = outputs_of(graph_of(self.plans[1], FLEET).nodes, self.content)["found"]
        return {place: event.value for place, event in found.items()}

    def is_settled(self, sink=0):
        rows = self.rows(sink)
        return {place: value for place, (value, _) in rows.items()} == self.truth() and all(
            status != TENTATIVE for _, status in rows.values()
        )

    def settle(self, sink=0):
        """Read nothing more, and go on until all rows are final and those of the oracle."""
        for device in self.running():
            device.durable.core.handle_end()
        for _ in range(200):
            if self.is_settled(sink):
                return
            self.pass_steps(1)
        raise AssertionError(f"{self.rows(sink)}, not {self.truth()}")

    def followed(self):
        return {device.durable.core.shares.followed for device in self.running()}


@contextmanager
def fleet_of(*gateways, **given):
    fleet = LocalFleet(*gateways, **given)
    try:
        yield fleet
    finally:
        fleet.close()


def test_events_in_order_of_all_devices_at_one_instant_have_the_rows_of_one_order():
    with fleet_of(DEFAULT_SINK) as fleet:
        for number in range(4):
            for device in TERMS.roster:
                fleet.read(device, "a", number)
            fleet.pass_steps(1)
            for device in TERMS.roster:  # all of them, and local ones of the same instant
                fleet.read(device, "b", number % 2)
                fleet.read(device, "a", number + 1)
            fleet.pass_steps(1)
        fleet.settle()
        assert len({place[0] for place in fleet.truth()}) == 4
        assert len(fleet.truth()) == 12


def test_a_device_that_was_away_for_a_week_answers_all_of_it_and_its_rows_are_revised():
    with fleet_of(DEFAULT_SINK) as fleet:
        away = fleet.devices["pi-1"]
        befall(fleet, Fault(0, "cut", "pi-1", 10_000))
        for number in range(14):
            fleet.read("pi-0", "a", number)
            fleet.read("pi-1", "a", number)
            fleet.pass_steps(1)
            fleet.read("pi-2", "b", number % 3)
            fleet.pass_steps(1)
            fleet.pass_steps(1, 12 * HOUR_US)
            fleet.pass_steps(12)
        fleet.pass_steps(30)
        without = fleet.rows()
        assert {status for _, status in without.values()} == {FINAL}
        assert fleet.sinks[0].lander.core.coverage.excluded == ("pi-1",)
        away.connect_step = fleet.step_number
        fleet.settle()
        changed = {at for at, (value, _) in without.items() if fleet.rows()[at][0] != value}
        assert len(changed) > 10
        assert {fleet.rows()[at][1] for at in changed} == {REVISED}


def after_the_followed_gateway_has_died(fleet):
    for number in range(3):
        fleet.read("pi-0", "a", number)
        fleet.read("pi-1", "b", number)
        fleet.pass_steps(4)
    assert fleet.followed() == {f"gateway-{ARCHIVE}"}, "the least name"
    fleet.read("pi-2", "a", 7)
    fleet.read("pi-1", "b", 7)
    fleet.pass_steps(1)
    fleet.sinks[1].crash(1 << 30)
    for number in range(3):
        fleet.pass_steps(4, DEAD_AFTER_US // 10)
        fleet.read("pi-0", "a", number)
        fleet.read("pi-1", "b", number)
    fleet.pass_steps(4, DEAD_AFTER_US // 10)


def test_where_the_followed_gateway_dies_devices_answer_the_other_one():
    with fleet_of(DEFAULT_SINK, ARCHIVE) as fleet:
        after_the_followed_gateway_has_died(fleet)
        fleet.settle(0)
        assert fleet.followed() == {f"gateway-{DEFAULT_SINK}"}


def test_who_goes_on_following_a_dead_gateway_answers_nothing(monkeypatch):
    right = Shares._follow

    def follow(self, now_us):
        if not self.followed:
            right(self, now_us)

    monkeypatch.setattr(Shares, "_follow", follow)
    with fleet_of(DEFAULT_SINK, ARCHIVE) as fleet:
        after_the_followed_gateway_has_died(fleet)
        fleet.pass_steps(50)
        assert not fleet.is_settled(0)


def test_where_the_scan_has_changed_a_gateway_that_keeps_its_store_goes_on():
    """Its events in order are stored, and devices make their parts of them again."""

    class Changed(Epochs):
        """Steps as before, under another name."""

        name = "changed"

    with fleet_of(DEFAULT_SINK) as fleet:
        for number in range(4):
            fleet.read("pi-0", "a", number)
            fleet.read("pi-1", "b", number)
            fleet.pass_steps(6)
        before = fleet.rows()
        assert len(before) == 4
        changed = plan_of("a", Changed)
        assert changed.streams["found"].fingerprint != PLAN.streams["found"].fingerprint
        for device in fleet.devices.values():
            device.plan = changed
            fleet.end(device.name, device, 1)
        fleet.sinks[0].run_program(changed)
        for number in range(3):
            fleet.pass_steps(4)
            fleet.read("pi-0", "a", number)
            fleet.read("pi-2", "b", number)
        fleet.settle()
        assert before.keys() < fleet.rows().keys()


@pytest.mark.parametrize("seed", [1, 9])
def test_readings_of_a_time_long_ago_wait_for_events_in_order(seed, monkeypatch):
    """Seed 1: a device restarts while they wait. Seed 9: a place comes late while others wait."""
    monkeypatch.setattr(streams, "LONG_AGO_US", -HOUR_US)
    monkeypatch.setattr(streams, "PATIENCE_US", 1_500_000)
    waited, put = [], WaitingCells.put

    def noted(*given):
        waited.append(put(*given))
        return waited[-1]

    monkeypatch.setattr(WaitingCells, "put", noted)
    assert not run(synced(scenario_of(seed))).trouble
    assert any(waited)


def test_a_device_that_has_never_started_comes_later():
    has = Scenario(5, 2, 0, schedule=())
    world = World(has)
    try:
        befall(world, Fault(1, "kill", "pi-1", 8))
        for _ in range(7):
            world.step()
        assert (world.devices["pi-0"].starts, world.devices["pi-1"].starts) == (1, 0)
        world.step()
        assert world.devices["pi-1"].starts == 1
    finally:
        world.close()
