"""A scan with local events where a device's store is older, or gone: what was answered stays."""

from random import Random
from types import SimpleNamespace

import pytest

from device_agent.agent.fleet.fence import FenceState
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.status import FINAL
from lasp_edge.units import SECOND_US
from simulations.lake_parted import LakeBeside
from simulations.world.faults import Fault
from simulations.world.misfortunes import befall
from simulations.world.scenario import ARCHIVE
from tests.simulations.test_local_absences import rows
from tests.simulations.test_local_events import PLAN, fleet_of

GATEWAYS = [(DEFAULT_SINK,), (DEFAULT_SINK, ARCHIVE)]


def slices(fleet, count, *readers):
    """Let devices read, and then an event in order come, some times."""
    for number in range(count):
        for device in readers or ("pi-0", "pi-1"):
            fleet.read(device, "a", number + 1)
        fleet.pass_steps(2)
        fleet.read("pi-2", "b", 1)
        fleet.pass_steps(6)


def goes_back(fleet, kind):
    """Let the store of a device be as it was, or be gone; and all go on."""
    befall(fleet, Fault(0, kind, "pi-1", 2))
    fleet.pass_steps(30)
    slices(fleet, 3)
    fleet.pass_steps(20)


def without_revisions(found):
    return [row[:2] for row in found]


@pytest.mark.parametrize("gateways", GATEWAYS)
@pytest.mark.parametrize("kind", ["older_image", "store_lost"])
@pytest.mark.parametrize("restarts", [False, True])
def test_what_a_life_had_answered_stays_where_the_next_one_has_lost_its_readings(
    gateways, kind, restarts
):
    """The slice in which that life ended names the device: nobody knows what is missing there."""
    with fleet_of(*gateways) as fleet:
        slices(fleet, 2)
        fleet.devices["pi-1"].disk.images.clear()
        fleet.devices["pi-1"].disk.keep_image()
        slices(fleet, 4)
        fleet.pass_steps(20)
        truth = [value for _, value in sorted(fleet.truth().items()) if value[1] >= 0]
        before = [rows(fleet, number) for number in range(len(gateways))]
        goes_back(fleet, kind)
        if restarts:
            for sink in fleet.sinks:
                sink.crash(2)
            fleet.pass_steps(20)
        for number, was in enumerate(before):
            found = rows(fleet, number)
            assert [value for value, *_ in was] == truth
            assert found[:5] == was[:5], "nothing came late"
            assert found[5][:3] == (truth[5], ("pi-1",), FINAL)
            assert [names for _, names, *_ in found[6:]] == [()] * 3
            assert [value[1] for value, *_ in found[6:]] == [2] * 3


@pytest.mark.parametrize("gateways", GATEWAYS)
def test_who_had_not_answered_and_has_lost_its_readings_is_named(gateways):
    with fleet_of(*gateways) as fleet:
        fleet.devices["pi-1"].disk.images.clear()
        fleet.devices["pi-1"].disk.keep_image()
        fleet.read("pi-1", "a", 3)
        fleet.pass_steps(4)
        for sink in fleet.sinks:  # they have not heard of its last reading
            sink.cut_until = fleet.step_number + 6
        fleet.read("pi-1", "a", 4)
        fleet.pass_steps(1)
        fleet.read("pi-2", "b", 1)
        goes_back(fleet, "older_image")
        fleet.pass_steps(10)
        for number in range(len(gateways)):
            found = rows(fleet, number)
            assert found[0][0][1] < 2
            assert [names for _, names, *_ in found] == [("pi-1",), (), (), ()]


def test_a_late_event_in_order_in_a_lost_slice_names_the_device_at_both_halves():
    """The answer of before was made of the whole slice: it counts at neither."""
    with fleet_of(DEFAULT_SINK) as fleet:
        slices(fleet, 1)
        at_us = fleet.now_us
        slices(fleet, 2)
        goes_back(fleet, "store_lost")
        before = rows(fleet)
        fleet.read("pi-0", "b", 1, late_s=(fleet.now_us - at_us) // SECOND_US)
        fleet.pass_steps(40)
        found = rows(fleet)
        assert len(found) == len(before) + 1
        assert [names for _, names, *_ in found[:4]] == [(), ("pi-1",), ("pi-1",), ("pi-1",)]
        assert [names for _, names, *_ in found[4:]] == [()] * 3


@pytest.mark.parametrize("gateways", GATEWAYS)
def test_a_life_that_no_sink_answers_waits_with_its_answers_until_one_does(gateways):
    """It starts alone on an older store, and the broker has kept what gateways published."""
    with fleet_of(*gateways) as fleet:
        device = fleet.devices["pi-1"]
        device.disk.images.clear()
        device.disk.keep_image()
        slices(fleet, 3)
        fleet.pass_steps(20)
        before = rows(fleet)
        for sink in fleet.sinks:
            sink.crash(fleet.step_number + 25)
        for peer in ("pi-0", "pi-2"):
            befall(fleet, Fault(0, "cut", peer, 25))
        befall(fleet, Fault(0, "older_image", "pi-1", 2))
        fleet.pass_steps(20)
        assert device.core.fence.state is FenceState.ALONE
        fleet.pass_steps(60)
        slices(fleet, 2)
        fleet.pass_steps(20)
        for number in range(len(gateways)):
            found = rows(fleet, number)
            assert without_revisions(found[:2]) == without_revisions(before[:2])
            assert [names for _, names, *_ in found] == [(), (), ("pi-1",), (), ()]


@pytest.mark.parametrize("gateways", GATEWAYS)
@pytest.mark.parametrize("kind", ["older_image", "store_lost"])
def test_what_the_next_life_reads_of_a_slice_that_was_answered_before_counts_or_it_is_named(
    gateways, kind
):
    """A sensor was cut off from its device: what it measured after the last reading comes late."""
    with fleet_of(*gateways) as fleet:
        fleet.devices["pi-1"].disk.images.clear()
        fleet.devices["pi-1"].disk.keep_image()
        slices(fleet, 2)
        at_us = fleet.now_us - 7 * SECOND_US  # after its last reading, and before the event
        slices(fleet, 2, "pi-0")
        fleet.pass_steps(20)
        befall(fleet, Fault(0, kind, "pi-1", 2))
        fleet.pass_steps(30)
        for late_us in (at_us, at_us + 8 * SECOND_US):
            fleet.read("pi-1", "a", 5, late_s=(fleet.now_us - late_us) // SECOND_US)
        fleet.pass_steps(20)
        slices(fleet, 2)
        fleet.pass_steps(20)
        counts = [
            sum(device == "pi-1" for _, device, *_ in between)
            for between in slices_of(fleet.content)
        ]
        assert counts == [1, 2, 1, 0, 1, 1]
        for number in range(len(gateways)):
            found = rows(fleet, number)
            assert len(found) == len(counts)
            assert [names for _, names, *_ in found] == [(), ("pi-1",), (), (), (), ()]
            assert [value[1] for value, *_ in found] == [2, 2, 2, 1, 2, 2]


def slices_of(content):
    """Yield the places of local readings between each two events in order."""
    before = ()
    for end in sorted(content["b"]):
        yield [place for place in content["a"] if before < place < end]
        before = end


@pytest.mark.parametrize("kind", ["older_image", "store_lost"])
def test_a_lake_beside_has_the_same_rows_and_names_the_same_devices(kind):
    """It hears of no lost store: what an answer states of itself is all that it knows."""
    with fleet_of(*GATEWAYS[-1]) as fleet:
        fleet.devices["pi-1"].disk.images.clear()
        fleet.devices["pi-1"].disk.keep_image()
        slices(fleet, 3)
        fleet.pass_steps(20)
        lake = LakeBeside(SimpleNamespace(world=fleet, plan=PLAN), Random(1), result="found")
        lake.batch()
        goes_back(fleet, kind)
        lake.batch()
        assert not list(lake.wrong(is_settled=True))
        names = [names for _, names, *_ in rows(fleet)]
        assert names == [(), (), ("pi-1",), (), (), ()]
