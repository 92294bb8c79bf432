"""A device whose program differs from all others': what it makes of its readings cannot be joined.

Nothing tells the two programs apart. Its part is refused and counted, rows go on without it and
name it, and what it answers rightly later revises them.
"""

from contextlib import contextmanager
from random import Random
from types import SimpleNamespace

import pytest

from device_agent.gateway.line import awaited
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.status import FINAL, REVISED
from lasp_edge.protocol.window_rows import names_in
from lasp_edge.tool.times import shown_time
from lasp_edge.units import SECOND_US
from simulations.lake_parted import LakeBeside
from tests.lasp_edge.language.test_parting import plan_of
from tests.lasp_edge.scans.support_synchronised import EventWindow
from tests.simulations.test_local_absences import goes_on, rows
from tests.simulations.test_local_events import LocalFleet

TWISTED = ("pi-1",)
TWISTS = {
    "a text": lambda made: f"{made}x",
    "nothing": lambda made: None,
    "a list in a list": lambda made: ((made, (made,)),),
}


def of_two_files(kind, twist):
    """Return a scan whose local events are stepped otherwise on some devices while it is on."""

    class TwoFiles(kind):
        twisted = False

        def step(self, state, event):
            is_other = type(self).twisted and event.device in TWISTED and event.name == "a"
            return (twist(state), []) if is_other else super().step(state, event)

    return TwoFiles


@contextmanager
def fleet_of(kind, twist):
    scan = of_two_files(kind, TWISTS[twist])
    fleet = LocalFleet(DEFAULT_SINK, plan=plan_of("a", scan))
    try:
        yield fleet, scan
    finally:
        fleet.close()


def slices(fleet, *values):
    """Let all read, and then end a slice, for each value."""
    for value in values:
        for device in ("pi-0", "pi-1"):
            fleet.read(device, "a", value)
        fleet.pass_steps(2)
        fleet.read("pi-2", "b", 1)
        fleet.pass_steps(6)


def restart(fleet, device):
    fleet.end(device, fleet.devices[device], 1)
    fleet.pass_steps(6)


@pytest.mark.parametrize("twist", TWISTS)
@pytest.mark.parametrize("restarts", [False, True])
def test_a_part_that_cannot_be_joined_is_refused_and_its_device_named(twist, restarts):
    with fleet_of(EventWindow, twist) as (fleet, scan):
        scan.twisted = True
        slices(fleet, 3, 4)
        if restarts:
            fleet.sinks[0].crash(2)
        slices(fleet, 5)
        goes_on(fleet, "pi-0", "pi-1", "pi-2")
        assert [row[:3] for row in rows(fleet)] == [(n, TWISTED, FINAL) for n in (3, 4, 5)]
        core = fleet.sinks[0].lander.core
        (reason,) = [each for each in core.failed if "pi-1" in each]
        assert "found: the part of pi-1" in reason
        assert core.failed[reason] == 3
        (line,) = awaited(core, DEFAULT_SINK)
        first = shown_time(rows_at(fleet)[0]).partition(".")[0]
        assert f"the part of pi-1 is refused since {first} UTC (" in line
        assert "lasp-edge retire pi-1" in line


def test_what_the_device_answers_rightly_later_revises_the_rows_that_name_it():
    with fleet_of(EventWindow, "a text") as (fleet, scan):
        scan.twisted = True
        slices(fleet, 3, 4)
        scan.twisted = False
        restart(fleet, "pi-1")
        slices(fleet, 5, 6)
        goes_on(fleet, "pi-0", "pi-1", "pi-2")
        found = [(3, TWISTED, FINAL), (4, TWISTED, FINAL), (10, (), FINAL), (12, (), FINAL)]
        assert [row[:3] for row in rows(fleet)] == found
        assert awaited(fleet.sinks[0].lander.core, DEFAULT_SINK) == []
        late_s = (fleet.now_us - rows_at(fleet)[0]) // SECOND_US + 1
        fleet.read("pi-1", "a", 1, late_s)
        fleet.pass_steps(10)
        assert [row[:3] for row in rows(fleet)] == [(7, (), REVISED), *found[1:]]


def lake_rows(lake):
    """Return place -> (value, names, status) of the rows of a lake, in the order of their times."""
    query = "SELECT * FROM source ORDER BY time_us, revision"
    rows = lake.tables.select(lake.tables.lake.results, query).to_pylist()
    (column,) = lake.plan.fleet_results["found"].columns
    newest = {each["place"]: each for each in rows}
    return {
        place: (each[column], names_in(each["excluded"]), each["status"])
        for place, each in newest.items()
    }


def test_a_lake_has_the_rows_and_names_of_the_gateway_whenever_its_job_dies():
    with fleet_of(EventWindow, "a text") as (fleet, scan):
        lake = LakeBeside(SimpleNamespace(world=fleet, plan=fleet.plans[1]), Random(1))
        scan.twisted = True
        slices(fleet, 3, 4)
        goes_on(fleet, "pi-0", "pi-1", "pi-2")
        lake.batch()
        first_us = rows_at(fleet)[0]
        assert list(lake_rows(lake).values()) == [row[:3] for row in rows(fleet)]
        assert list(lake_rows(lake).values()) == [(3, TWISTED, FINAL), (4, TWISTED, FINAL)]
        scan.twisted = False
        restart(fleet, "pi-1")
        fleet.read("pi-1", "a", 1, (fleet.now_us - first_us) // SECOND_US + 1)
        goes_on(fleet, "pi-0", "pi-1", "pi-2")
        lake.begin()
        lake.batch()
        assert list(lake_rows(lake).values()) == [row[:3] for row in rows(fleet)]
        assert list(lake_rows(lake).values()) == [(7, (), REVISED), (4, TWISTED, FINAL)]


def rows_at(fleet):
    """Return the times of the events in order that have rows."""
    return sorted(place[0] for place in fleet.rows())
