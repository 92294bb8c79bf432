"""Parameters change under a fleet of real cores and stores, and a real gateway's core.

Each window ends as each reading with the parameters at its own time, in each window that has it.
"""

from random import Random

import pytest

from crdts import ControlLog, Replica
from device_agent.gateway.core import WaitingTerms
from device_agent.settings import SECOND_US as S
from device_agent.settings import Settings
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.control import ControlFrame
from lasp_edge.protocol.kinds import topic_of
from lasp_edge.protocol.status import FINAL, REVISED, TENTATIVE
from simulations.oracle import Reading, windows
from simulations.world.lander import SimulatedLander
from tests.device_agent.agents import NOW_US, Device
from tests.lasp_edge.language.support_controlled import greenhouse

OPERATOR = Replica(1, 5, "operator")
PLAN = greenhouse().plan()
SETTINGS = Settings(keep_readings=True, fence_wait_us=0, lateness_us=10 * S)
VALUES = {
    "above": ("-50", "0", "5.5"),
    "offset": ("0", "-1.5", "10"),
    "span_s": ("40", "60", "30"),
    "step_s": ("20", "10", "30"),
    "mode": ("day", "night"),
    "error": ("0.01", "0.02"),
}


class ControlWorld:
    """Some devices, an operator and a gateway, over a network that loses, doubles and delays."""

    def __init__(self, directory, seed, *, size=3, rough=True, plan=PLAN, wait_us=0):
        self.drawn, self.plan, self.rough = Random(seed), plan, rough
        self.devices = [
            Device(directory / name, plan, settings=SETTINGS, name=name, nonce=seed * 100 + at)
            for at, name in enumerate(f"pi-{number}" for number in range(size))
        ]
        names = [each.name for each in self.devices]
        terms = WaitingTerms(names, dead_after_us=600 * S, tentative_after_us=wait_us)
        self.gateway = SimulatedLander("gateway-1", plan, terms=terms)
        self.gateway.connected(NOW_US)
        self.log, self.said = ControlLog(), 0
        self.step, self.starts = 0, 10_000 + seed * 1_000
        self.air = []
        self.away = {}
        self.deaf = set()

    @property
    def now_us(self):
        return NOW_US + self.step * 5 * S

    def say(self, parameter, scope, from_us, value):
        self.log |= self.log.say(parameter, scope, from_us, value, "ann")

    def fly(self, to, topic, payload):
        times = 1
        if self.rough:
            times = self.drawn.choice((0, 1, 1, 1, 2))
        for _ in range(times):
            delay = self.drawn.randint(0, 3) if self.rough else 0
            self.air.append((self.step + delay, len(self.air), to, topic, payload))

    def tell(self):
        """What is retained reaches those that listen."""
        for parameter, scope in self.log.lanes():
            self.said += 1
            frame = ControlFrame.of(OPERATOR, self.said, parameter, scope, self.log)
            for to in (*self.devices, None):
                if not self.rough or self.drawn.random() < 0.5:
                    self.fly(to, topic_of(frame, self.devices[0].core.agent.topics), frame.encode())

    def live(self, *, reads=True):
        self.step += 1
        self.tell()
        for device in self.devices:
            device.now_us = self.now_us - 5 * S
            self.befall(device)
            if reads:
                self.read(device)
            for publication in device.tick(5):
                if publication.payload and self.away.get(device.name, 0) <= self.step:
                    self.fly(None, publication.topic, publication.payload)
        self.deliver()
        self.gateway.commit(self.now_us)

    def befall(self, device):
        if self.rough and self.drawn.random() < 0.03:
            self.starts += 1
            device.restart(self.starts)
        if self.rough and self.drawn.random() < 0.03:
            self.away[device.name] = self.step + self.drawn.randint(2, 10)

    def deliver(self):
        due = sorted((m for m in self.air if m[0] <= self.step), key=lambda m: m[:2])
        self.air = [m for m in self.air if m[0] > self.step]
        for _, _, to, topic, payload in due:
            if to is None:
                self.land(topic, payload)
            elif self.away.get(to.name, 0) <= self.step and not self.is_unheard(to, topic):
                to.durable.hear(topic, payload, to.now_us)

    def is_unheard(self, device, topic):
        return device.name in self.deaf and "/control/" in topic

    def read(self, device):
        count = self.drawn.choice((0, 1, 2))
        late = 60 if self.rough and self.drawn.random() < 0.1 else 4
        times = [
            self.now_us - self.drawn.randint(0, late) * S - self.drawn.randrange(S)
            for _ in range(count)
        ]
        if self.rough and self.drawn.random() < 0.2:
            times = [None] * count
        values = [self.drawn.randint(-300, 300) / 10 for _ in range(count)]
        device.read(values, times, {"room": self.drawn.choice(("hall", "shed"))})
        device.now_us = self.now_us - 5 * S

    def land(self, topic, payload):
        answer = self.gateway.hear(topic, payload, self.now_us)
        if isinstance(answer, AckFrame):
            to = next(each for each in self.devices if each.name == answer.about)
            self.fly(to, topic_of(answer, to.core.agent.topics), answer.encode())

    def settle(self):
        """Faults are over: everybody hears everything, and all promise far ahead."""
        self.rough = False
        self.away.clear()
        self.deaf.clear()
        for device in self.devices:
            device.core.handle_end()
        for _ in range(300):
            self.live(reads=False)
            if all(device.core.done for device in self.devices) and not self.air:
                break
        else:
            raise AssertionError([device.core.report() for device in self.devices])
        for _ in range(5):
            self.live(reads=False)

    def truth(self):
        readings = [
            Reading(
                device.name,
                row["event"],
                row["value"],
                row["time_us"],
                row["tags"],
                stamped=True,
            )
            for device in self.devices
            for row in device.store.readings()
        ]
        return {
            (name, *at): tuple(each)
            for name in self.plan.windows
            for at, each in windows(self.plan, name, readings, self.log).items()
        }

    def found(self):
        return {
            tuple(at): (rows[-1].partial, rows[-1].devices_in)
            for at, rows in self.gateway.revisions.items()
            if rows[-1].devices_in
        }

    def rows(self, status):
        every = [row for rows in self.gateway.revisions.values() for row in rows]
        return [row for row in every if row.status == status]

    def end(self):
        for device in self.devices:
            device.kill()


def say_something(world, *, late):
    parameter = world.drawn.choice(sorted(VALUES))
    lead = world.drawn.randint(60, 120)
    if late:
        lead = world.drawn.choice((lead, -world.drawn.randint(0, 300), 0))
    scope = ""
    if parameter in {"above", "offset"}:
        scope = world.drawn.choice(("", "", "pi-1"))
    value = world.drawn.choice([None, *VALUES[parameter]])
    world.say(parameter, scope, world.now_us + lead * S + world.drawn.randrange(3), value)


@pytest.mark.parametrize("seed", range(6))
def test_every_window_ends_as_the_definition_says(tmp_path, seed):
    world = ControlWorld(tmp_path, seed)
    for step in range(60):
        if step % 9 == 5:
            say_something(world, late=True)
        world.live()
    world.settle()
    assert world.found() == world.truth()
    for rows in world.gateway.revisions.values():
        assert [row.status for row in rows].count(FINAL) <= 1
        assert [row.revision for row in rows] == list(range(len(rows)))
    world.end()


@pytest.mark.parametrize("seed", range(3))
def test_entries_for_the_future_revise_nothing(tmp_path, seed):
    world = ControlWorld(tmp_path, seed, rough=False)
    for step in range(60):
        if step % 9 == 5:
            say_something(world, late=False)
        world.live()
    assert world.rows(FINAL)
    world.settle()
    assert world.found() == world.truth()
    assert world.rows(REVISED) == []
    world.end()


def test_a_device_that_does_not_hear_an_entry_for_the_future_holds_the_frontier(tmp_path):
    world = ControlWorld(tmp_path, 1, rough=False)
    for step in range(60):
        if step == 10:
            world.deaf.add("pi-2")
            world.say("offset", "", world.now_us + 60 * S, "10")
        if step == 40:
            assert world.gateway.coverage.frontier < world.now_us - 100 * S
            world.deaf.clear()
        world.live()
    world.settle()
    assert world.found() == world.truth()
    assert world.rows(REVISED) == []
    world.end()


def test_what_a_late_entry_touches_is_revised_once(tmp_path):
    world = ControlWorld(tmp_path, 2, rough=False)
    for step in range(70):
        if step == 30:
            world.deaf.add("pi-2")
            world.say("offset", "", world.now_us - 100 * S, "10")
            final = {tuple(row.at) for row in world.rows(FINAL)}
        if step == 34:
            world.away["pi-1"] = world.step + 6
        if step == 45:
            assert world.rows(REVISED) == [], "held until all have promised anew"
            world.deaf.clear()
        world.live()
    world.settle()
    assert world.found() == world.truth()
    revised = [tuple(row.at) for row in world.rows(REVISED)]
    assert len(revised) == len(set(revised)) > 5
    assert set(revised) <= final
    world.end()


def test_the_gateway_may_be_restarted_while_it_holds_rows(tmp_path):
    world = ControlWorld(tmp_path, 3, rough=False)
    for step in range(60):
        if step == 30:
            world.deaf.add("pi-2")
            world.say("offset", "", world.now_us - 100 * S, "10")
        if step in {33, 38}:
            world.gateway = world.gateway.restarted(PLAN, Replica(1, step, "gateway"))
            world.gateway.connected(world.now_us)
        if step == 45:
            assert world.rows(REVISED) == []
            world.deaf.clear()
        world.live()
    world.settle()
    assert world.found() == world.truth()
    revised = [tuple(row.at) for row in world.rows(REVISED)]
    assert len(revised) == len(set(revised)) > 5
    world.end()


def test_windows_that_are_no_more_get_a_row_that_says_so(tmp_path):
    world = ControlWorld(tmp_path, 4, rough=False)
    for step in range(50):
        if step == 30:
            world.say("step_s", "", world.now_us - 100 * S, "40")
        world.live()
    world.settle()
    assert world.found() == world.truth()
    gone = [row for row in world.rows(REVISED) if not row.devices_in]
    assert gone
    assert {(row.at.window, row.partial) for row in gone} == {("sums", (0,))}
    assert all(row.at.start_us % (40 * S) for row in gone)
    world.end()


def test_windows_that_wait_have_a_row_when_they_are_due_and_not_before(tmp_path):
    world = ControlWorld(tmp_path, 5, rough=False, wait_us=60 * S)
    for step in range(70):
        if step == 20:
            assert world.rows(FINAL)
            assert world.rows(TENTATIVE) == []
            world.away["pi-2"] = world.step + 30
        if step == 30:
            assert world.rows(TENTATIVE) == [], "it is away for less than that"
        if step == 40:
            world.gateway = world.gateway.restarted(PLAN, Replica(1, step, "gateway"))
            world.gateway.connected(world.now_us)
        world.live()
    assert {row.excluded for row in world.rows(TENTATIVE)} == {("pi-2",)}
    world.settle()
    assert world.found() == world.truth()
    assert world.rows(REVISED) == []
    assert not [rows for rows in world.gateway.revisions.values() if rows[-1].status != FINAL]
    world.end()


def test_what_is_held_is_revised_when_it_is_due_and_says_who_is_missing(tmp_path):
    world = ControlWorld(tmp_path, 2, rough=False, wait_us=60 * S)
    for step in range(70):
        if step == 30:
            world.deaf.add("pi-2")
            world.say("offset", "", world.now_us - 100 * S, "10")
        if step == 40:
            assert world.rows(REVISED) == [], "nobody has waited for that long"
        if step == 60:
            assert len(world.rows(REVISED)) > 5
            assert {row.excluded for row in world.rows(REVISED)} == {("pi-2",)}
            world.deaf.clear()
        world.live()
    world.settle()
    assert world.found() == world.truth()
    world.end()
