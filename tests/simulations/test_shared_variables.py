"""Shared variables under every fault: all devices hold the same, and it is what was done."""

from random import Random

import pytest

from crdts import Counter, GSet, ORMap, ORSet
from lasp_edge import Program
from simulations.fleet import ROUGH, Fleet
from simulations.world.lander import LANDER

NAMES = ("pi-0", "pi-1", "pi-2")


def ledger():
    """Return a program whose shared variables grow and shrink as readings say."""
    program = Program("ledger")
    added, removed = program.event("added"), program.event("removed")
    doors = program.declare(ORSet(), "doors")
    ever = program.declare(GSet(), "ever")
    total = program.declare(Counter(), "total")
    by_floor = program.declare(ORMap(Counter()), "by_floor")

    @program.on_event(added)
    def add(event, update):
        element = int(event.value)
        update(doors, ORSet.add, element)
        update(ever, GSet.add, element)
        update(total, Counter.increment, 1)
        update(by_floor, ORMap.update, element % 5, Counter.increment, 1)

    @program.on_event(removed)
    def remove(event, update):
        if event.value < 0:
            update(doors, ORSet.clear)
        else:
            update(doors, ORSet.remove, int(event.value))

    return program.plan()


def worked(fleet, drawn, steps=80):
    """Let all devices add and remove; return what was added and what somebody removed."""
    added, removed = [], set()
    for step in range(steps):
        for at, name in enumerate(NAMES):
            fleet.read(name, "added", 1_000 * at + step)
            added.append(1_000 * at + step)
            if drawn.random() < 0.5:
                gone = drawn.choice(added)
                fleet.read(name, "removed", gone)
                removed.add(gone)
        fleet.step()
    return set(added), removed


def landed(fleet):
    """Return the values of the shared variables that the lander has."""
    return {name: state.value for name, state in fleet.lander.shared.items()}


@pytest.mark.parametrize("seed", range(2))
def test_devices_hold_the_same_whatever_went_wrong(seed):
    fleet, replay = Fleet(ledger(), size=3, seed=seed, faults=ROUGH), f"replay with seed {seed}"
    added, removed = worked(fleet, Random(seed))
    fleet.settle()
    held = [device.core.variables.shared() for device in fleet.running()]
    assert held[0] == held[1] == held[2], replay
    assert landed(fleet) == held[0], replay
    assert held[0]["ever"] == added, replay
    assert held[0]["total"] == sum(held[0]["by_floor"].values()) == len(added), replay
    assert added - removed <= held[0]["doors"] <= added, replay
    # Everything is removed: all that is left of it is which dots there were.
    fleet.read("pi-1", "removed", -1)
    fleet.step(200)
    for device in fleet.running():
        state = device.core.variables.shared_states["doors"]
        assert state.whole.value == set(), replay
        assert not state.whole.context.cloud, replay
        assert fleet.lander.shared["doors"] == state.whole, replay
    fleet.close()


def test_a_new_lake_is_given_everything():
    """What was said before it came, the broker tells nobody again here: it asks."""
    fleet = Fleet(ledger(), size=3, seed=5)
    worked(fleet, Random(5), steps=5)
    fleet.settle()
    fleet.befall("new_lake")
    fleet.step(200)
    assert landed(fleet) == fleet.running()[0].core.variables.shared()
    fleet.close()


def test_a_lander_that_starts_again_takes_no_news_twice():
    fleet = Fleet(ledger(), size=3, seed=5)
    worked(fleet, Random(5), steps=5)
    fleet.settle()
    lander = fleet.lander.restarted(fleet.plan, LANDER)
    before = {name: state.copy() for name, state in lander.shared.items()}
    for topic, payload in fleet.world.broker.retained.items():
        lander.hear(topic, payload, fleet.now_us)
    assert lander.shared == before
    fleet.close()
