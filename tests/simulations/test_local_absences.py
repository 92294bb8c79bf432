"""Rows of a scan with local events name the devices without whose answer an event in order is."""

import pytest

from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.status import FINAL, REVISED
from lasp_edge.units import SECOND_US
from simulations.world.faults import START_US, Fault
from simulations.world.misfortunes import befall
from simulations.world.scenario import ARCHIVE
from tests.simulations.test_local_events import fleet_of

AT_US = START_US + 25 * SECOND_US
"""Between two readings of a device, before an event in order."""


def rows(fleet, sink=0):
    """Return (value, names, status, revision) of the rows at events in order, in their order."""
    stored = sorted(fleet.sinks[sink].lander.core.streams.stored("found"))
    at_order = [(place, row) for place, row in stored if row.event and place[2][0] == "b"]
    return [(row.event.value, row.excluded, *row[1:3]) for _, row in at_order]


def goes_on(fleet, *devices):
    """Let some devices read on for as long as a silent one is waited for, and longer."""
    for _ in range(4):
        for device in devices:
            fleet.read(device, "a", 9)
        fleet.pass_steps(10)


def without_its_answer(fleet, *values):
    """Let a device promise past an event in order that it does not know, and fall silent."""
    for value in values:
        fleet.read("pi-1", "a", value)
        fleet.pass_steps(2)
    befall(fleet, Fault(0, "cut", "pi-2", 10_000))
    fleet.read("pi-2", "b", 1)
    time_us = fleet.now_us
    fleet.pass_steps(10)
    fleet.read("pi-1", "a", 9)
    fleet.pass_steps(10)
    befall(fleet, Fault(0, "cut", "pi-1", 10_000))
    fleet.devices["pi-2"].connect_step = fleet.step_number
    goes_on(fleet, "pi-0", "pi-2")
    for sink in fleet.sinks:
        assert sink.lander.core.promises["pi-1"].low_us > time_us


@pytest.mark.parametrize("sinks", [(DEFAULT_SINK,), (DEFAULT_SINK, ARCHIVE)])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("values", [(3, 4), ()], ids=["a part", "nothing"])
def test_who_has_promised_past_an_event_in_order_is_named_there_until_it_has_answered(
    sinks, restarts, values
):
    with fleet_of(*sinks) as fleet:
        without_its_answer(fleet, *values)
        for number, sink in enumerate(fleet.sinks):
            assert rows(fleet, number) == [((1, 0, 0), ("pi-1",), FINAL, 1)]
            if restarts:
                sink.crash(2)
        fleet.devices["pi-1"].connect_step = fleet.step_number
        fleet.pass_steps(30)
        count = len(values)
        for number in range(len(sinks)):
            assert rows(fleet, number) == [((1, count, count), (), REVISED, 2)]


def divided(fleet, befalls, *devices):
    """Let an event in order come late, between others; return the rows.

    Args:
        fleet: of three devices.
        befalls: what befalls the device before that gave its part of both halves in one.
        devices: they go on.
    """
    for value in (3, 4):
        fleet.read("pi-1", "a", value)
        fleet.pass_steps(4)
    fleet.read("pi-2", "b", 1)
    fleet.pass_steps(4)
    goes_on(fleet, "pi-0", "pi-1", "pi-2")
    assert rows(fleet) == [((1, 2, 2), (), FINAL, 1)]
    befalls()
    fleet.read("pi-0", "b", 2, late_s=(fleet.now_us - AT_US) // SECOND_US)
    goes_on(fleet, *devices)
    return rows(fleet)


def test_a_late_event_in_order_divides_what_a_retired_device_gave_and_rows_name_it():
    with fleet_of(DEFAULT_SINK) as fleet:

        def retires():
            befall(fleet, Fault(0, "cut", "pi-1", 10_000))
            fleet.operator.retire("pi-1")
            fleet.pass_steps(5)

        found = divided(fleet, retires, "pi-0", "pi-2")
        assert [each[1:3] for each in found] == [(("pi-1",), FINAL), (("pi-1",), REVISED)]
        fleet.sinks[0].crash(2)
        goes_on(fleet, "pi-0", "pi-2")
        assert rows(fleet) == found


def test_a_late_event_in_order_divides_what_a_lost_store_held_and_rows_name_its_device():
    with fleet_of(DEFAULT_SINK) as fleet:

        def loses():
            befall(fleet, Fault(0, "store_lost", "pi-1", 1))
            fleet.pass_steps(5)

        found = divided(fleet, loses, "pi-0", "pi-1", "pi-2")
        for _ in range(2):
            assert [each[1:3] for each in found] == [(("pi-1",), FINAL), (("pi-1",), REVISED)]
            fleet.sinks[0].crash(2)
            goes_on(fleet, "pi-0", "pi-1", "pi-2")
            found = rows(fleet)
