"""A stranger speaks as a life of a device: what the device itself sends is taken in the end."""

import pytest

from crdts import Replica
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.topics import topic_of
from simulations.world.checks import Checks
from simulations.world.faults import Fault
from simulations.world.links import TO_BROKER, LegMessage
from simulations.world.misfortunes import heal
from simulations.world.run import at_rest, disturbed, unsettled
from simulations.world.scenario import ARCHIVE, Scenario
from simulations.world.world import World

FAR = 1 << 20
"""Incarnations by which the stranger is ahead."""
CUT = Fault(3, "cut", "pi-0", 100)
NEW_LAKE = Fault(4, "new_lake", "", 1)
SAID = "may count twice"
"""What the device reports of a life that it does not know: for all that it can tell it had one."""
MOST_STEPS = 180
"""Steps until the device is heard: two minutes in which a sink goes on to vouch for the stranger,
one in which other sinks hear the later life only, and what lies between two questions."""


def forged(world, nonce, number):
    """Return a beat of a life that the device never had: the world has a stranger, and a twin."""
    world.seen.update(("hostile", "clone"))
    beat = BeatFrame(Replica(FAR, nonce, "pi-0"), number, (), False, ())  # noqa: FBT003
    return LegMessage(TO_BROKER, topic_of(beat, world.topics), beat.encode())


@pytest.mark.parametrize(
    ("gateways", "landers"), [(("lake",), ()), ((), ("lake",)), ((ARCHIVE,), ("lake",))]
)
def test_a_device_is_heard_by_a_new_store_to_which_a_stranger_spoke_for_a_minute(gateways, landers):
    """The archive knows the device: there the later life is held back until it has gone on."""
    archive = ARCHIVE in {*gateways, *landers}
    has = {"archive": archive, "gateways": gateways, "landers": landers}
    scenario = Scenario(8, 2, 80, schedule=(CUT, NEW_LAKE), **has)
    checks = Checks()
    world = World(scenario, checks, start_us=scenario.start_us)
    for step in disturbed(world):
        if step > NEW_LAKE.step and step % 3 == 0:
            world.send(forged(world, 77, step))
    heal(world)
    for _ in range(MOST_STEPS):
        world.step()
    assert at_rest(world), unsettled(world)
    assert world.devices["pi-0"].core.replica.incarnation == FAR + 1
    checks.at_the_end(world)
    assert [each for each in world.trouble if SAID not in each] == []
    world.close()


def test_single_frames_of_strangers_are_held_back_however_many_they_are():
    scenario = Scenario(8, 2, 80, schedule=(CUT, NEW_LAKE))
    world = World(scenario, Checks(), start_us=scenario.start_us)
    for step in disturbed(world):
        if step > NEW_LAKE.step:
            world.send(forged(world, step, step))
    (sink,) = world.sinks
    assert sink.lander._acceptance.witness.of("pi-0") is None, "the simulated lander's own"
    heal(world)
    while not at_rest(world) and world.trouble == []:
        world.step()
    assert world.devices["pi-0"].core.replica.incarnation < FAR
    world.close()
