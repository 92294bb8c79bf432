"""A store that is older, or empty, answers events in order once more, with less than was answered.

What had reached a gateway of an earlier life's answers stays, as panes do. Where nothing had, the
later life's answer counts, and rows name the device.
"""

import pytest

from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.status import FINAL
from simulations.world.faults import Fault
from simulations.world.misfortunes import befall
from simulations.world.scenario import ARCHIVE
from tests.simulations.test_local_absences import goes_on, rows
from tests.simulations.test_local_events import fleet_of

SINKS = [(DEFAULT_SINK,), (DEFAULT_SINK, ARCHIVE)]
FAULTS = ["older_image", "store_lost"]


def an_open_event_in_order(fleet, *, answers=True):
    """Let one device answer an event in order, of which another one does not hear yet."""
    goes_on(fleet, "pi-0", "pi-1", "pi-2")
    fleet.devices["pi-1"].disk.keep_image()
    befall(fleet, Fault(0, "cut", "pi-0", 10_000))
    for value in (3, 4):
        fleet.read("pi-1", "a", value)
        fleet.pass_steps(2)
    if not answers:
        befall(fleet, Fault(0, "cut", "pi-1", 10_000))
    fleet.read("pi-2", "b", 1)
    fleet.pass_steps(8)


@pytest.mark.parametrize("sinks", SINKS)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("restarts", [False, True])
def test_what_a_device_had_answered_stays_where_its_store_knows_less(sinks, fault, restarts):
    with fleet_of(*sinks) as fleet:
        an_open_event_in_order(fleet)
        befall(fleet, Fault(0, fault, "pi-1", 1))
        fleet.pass_steps(10)
        if restarts:
            fleet.end("pi-1", fleet.devices["pi-1"], 1)
            fleet.sinks[0].crash(2)
            fleet.pass_steps(10)
        fleet.devices["pi-0"].connect_step = fleet.step_number
        goes_on(fleet, "pi-0", "pi-1", "pi-2")
        for number in range(len(sinks)):
            ((value, names, status, _),) = rows(fleet, number)
            assert (value, names, status) == ((1, 14, 14), (), FINAL)


@pytest.mark.parametrize("sinks", SINKS)
@pytest.mark.parametrize("fault", FAULTS)
def test_where_nothing_had_arrived_the_row_has_what_is_left_and_names_the_device(sinks, fault):
    with fleet_of(*sinks) as fleet:
        an_open_event_in_order(fleet, answers=False)
        befall(fleet, Fault(0, fault, "pi-1", 1))
        fleet.pass_steps(10)
        for device in ("pi-0", "pi-1"):
            fleet.devices[device].connect_step = fleet.step_number
        goes_on(fleet, "pi-0", "pi-1", "pi-2")
        for number in range(len(sinks)):
            ((_, names, status, _),) = rows(fleet, number)
            assert (names, status) == (("pi-1",), FINAL)
