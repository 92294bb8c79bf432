"""A gateway's wrong clock moves no device's clock, and the frontier needs no median of clocks.

The frontier is the least promise of the devices that are alive, and a promise is at most its
device's own clock. So it never passes the median of the clocks of those devices either. A median
over all devices would hold it for ever where most batteries are empty.
"""

from statistics import median_low

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdts import Frontier, Membership, Replica
from lasp_edge.protocol.acks import Answer
from lasp_edge.protocol.frontier import Listening, Liveness, Tick, advance
from lasp_edge.protocol.topics import topic_of
from lasp_edge.units import SECOND_US
from simulations.world.checks import Checks
from simulations.world.faults import Fault
from simulations.world.links import TO_BROKER, LegMessage
from simulations.world.run import disturbed
from simulations.world.scenario import Scenario
from simulations.world.world import World

DEAD_US = 600 * SECOND_US
HEARD_STEPS = 12
"""Steps until each device has received the clocks of the others."""
NOW_US = 1_700_000_000 * SECOND_US


def promised(claims):
    """Return what a sink knows of devices that promised (clock, seconds behind it, heard)."""
    promises = Frontier()
    for number, (clock_us, behind_us, heard_us) in enumerate(claims):
        sender = Replica(1, 7, f"pi-{number}")
        promises |= promises.promise(sender, 1, clock_us - behind_us, heard_us)
    clock = Listening(NOW_US, NOW_US - 10 * DEAD_US)
    return Liveness(promises, {"": Tick(1, clock)}, Membership(), host_us=NOW_US)


def frontier_of(claims):
    return advance(None, promised(claims), None, DEAD_US).frontier


def test_a_median_over_all_devices_stands_still_when_most_batteries_are_empty():
    died_us = NOW_US - 2 * DEAD_US
    claims = [(NOW_US, SECOND_US, NOW_US), (died_us, 0, died_us), (died_us, 0, died_us)]
    assert median_low([clock_us for clock_us, _, _ in claims]) == died_us, "for ever"
    assert frontier_of(claims) == NOW_US - SECOND_US


@given(
    st.lists(
        st.tuples(
            st.integers(NOW_US - 9 * DEAD_US, NOW_US + 3_600 * SECOND_US),
            st.integers(0, 100 * SECOND_US),
            st.integers(NOW_US - DEAD_US, NOW_US),
        ),
        min_size=1,
    )
)
def test_the_frontier_never_passes_the_median_of_the_clocks_of_live_devices(claims):
    assert frontier_of(claims) <= median_low([clock_us for clock_us, _, _ in claims])


def forged(world, off_us, number):
    """Yield answers of landers that do not exist, one fewer than devices, with a wrong clock.

    With the gateway they are as many as have a right clock. More of them would be believed: who
    fears that signs, or sets `--trust-clock`.
    """
    clock_s = (world.now_us + off_us) // SECOND_US
    for stranger in range(len(world.devices) - 1):
        sender = Replica(1, 1_000 + stranger, f"lander-{stranger}")
        for device in world.devices:
            sink = (f"forged-{stranger}", f"store-{stranger}")
            for frame in Answer().frames(sender, number, device, sink, clock_s, 0):
                yield LegMessage(TO_BROKER, topic_of(frame, world.topics), frame.encode())


ALONE = [(off_s, 1, False) for off_s in (3_600, -3_600, 400)]
AMONG_FORGED = [(off_s, 3, True) for off_s in (3_600, -3_600, 400)]


@pytest.mark.parametrize(
    ("off_s", "size", "is_forged"), [*ALONE, (3_600, 2, False), (3_600, 3, False), *AMONG_FORGED]
)
def test_a_wrong_clock_of_a_gateway_moves_no_clock_and_no_window(off_s, size, is_forged):
    """The kernels do not know that their clocks are right; laws hold at each step (`Checks`)."""
    scenario = Scenario(7, size, 25, gateways=("lake",), unsynchronised=True)
    world = World(scenario, Checks(), start_us=scenario.start_us)
    (gateway,) = world.sinks
    gateway.clock.jump(off_s)
    gateway.restart()
    for step in disturbed(world):
        if is_forged and step > HEARD_STEPS:
            for message in forged(world, off_s * SECOND_US, step):
                world.send(message)
        for device in world.running():
            assert device.core.timing.state == "trusted"
        frontier_us = gateway.lander.coverage.frontier
        assert frontier_us is None or frontier_us <= world.now_us
    assert world.trouble == []
    world.close()


@pytest.mark.parametrize("right_after", [13, 20])
def test_a_device_that_starts_in_1970_goes_by_the_sink_as_soon_as_that_tells_the_time(right_after):
    """The sink's machine starts in 1970, too, and its answers tell no time until it is set right.

    Laws hold at each step (`Checks`): the device waits as long, and goes on soon after.
    """
    both = (Fault(6, "clock_1970", "pi-0", 41), Fault(7, "gateway_1970", "", right_after))
    scenario = Scenario(7, 1, 45, landers=("lake",), schedule=both)
    world = World(scenario, Checks(), start_us=scenario.start_us)
    (sink,), while_wrong, state = world.sinks, set(), ""
    for _ in disturbed(world):
        state = world.devices["pi-0"].core.timing.state
        while_wrong |= {state} if sink.clock.wrong else set()
    assert world.trouble == []
    assert (while_wrong, state) == ({"waiting"}, "behind")
    world.close()
