"""A program without local events: devices send what they would for any scan, and run none of it."""

import sys

import pytest

from device_agent.agent.scans import shares as agent_shares
from device_agent.gateway import shares as gateway_shares
from lasp_edge import Program, scans
from lasp_edge.evaluation import parted as evaluation
from lasp_edge.ordered import answers, gathering, parted
from lasp_edge.protocol import shares as frames
from simulations.benchmarks import energy
from simulations.fleet import Fleet

OF_LOCAL = {
    module.__file__
    for module in (answers, parted, gathering, evaluation, frames, agent_shares, gateway_shares)
}


class Plain(scans.Scan):
    """The same scan, which says nothing of its order across devices."""

    name, parts, zero = energy.Load.name, energy.Load.parts, energy.Load.zero
    step = energy.Load.step


def plan_of(scan, **more):
    program = Program("energy")
    power = program.event("power", resolution="1", unit="W")
    end = program.event("slice", resolution="1")
    load = program.scan("load", source=[power, end], key=energy.house_of, scan=scan, **more)
    program.result(load)
    return program.plan()


def published(plan, called=None):
    """Return what devices publish while they read for half a minute; presences name the program."""
    found = []

    class Recorded(Fleet):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            right = self._entries.published

            def note(world, device, publication):
                right(world, device, publication)
                if "/presence/" not in publication.topic:
                    found.append((device.name, publication.topic, publication.payload))

            self._entries.published = note

    fleet = Recorded(plan, size=2, seed=7)
    if called is not None:
        sys.setprofile(lambda frame, kind, _: called.add(frame.f_code.co_filename))
    try:
        for number in range(30):
            fleet.read(f"pi-{number % 2}", "power", 100 + number, {"house": "h"})
            if number % 10 == 9:
                fleet.read("pi-0", "slice", number, {"house": "h"})
            fleet.step()
    finally:
        sys.setprofile(None)
        fleet.close()
    return found


def test_without_local_devices_send_byte_for_byte_what_any_scan_makes_them_send():
    sent = published(plan_of(energy.Load))
    assert sent == published(plan_of(Plain))
    assert len({topic for _, topic, _ in sent}) > 1  # beats, and readings


@pytest.mark.parametrize("has_local", [False, True])
def test_without_local_nothing_of_local_events_runs_on_a_device(has_local):
    called = set()
    published(plan_of(energy.Load, **({"local": "power"} if has_local else {})), called)
    assert bool(called & OF_LOCAL) == has_local
