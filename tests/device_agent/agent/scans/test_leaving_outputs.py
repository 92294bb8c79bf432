"""Outputs of a device's streams leave for the order over the fleet, and promises wait for them."""

from lasp_edge import Program, scans
from lasp_edge.ordered.sent_outputs import newest, outputs_in
from tests.device_agent.agent.scans.test_leaving import FIRST_US, SECOND_US, read
from tests.device_agent.agents import Device


def runs(high=0):
    """Return a program of each device's runs, in one order over the fleet."""
    program = Program("water")
    litres = program.event("litres", resolution="0.5")
    run = program.scan("run", source=litres, scan=scans.sessions(gap_s=30), per_device=True)
    count = program.map(run, lambda event: event.value[2], "count", resolution="1")
    program.result(program.scan("all", source=count, scan=scans.changes()))
    return program.plan()


def outputs(device):
    """Return (seconds, value) of what the device's entries hold of its runs; None: it is gone."""
    sent = device.program.item_streams["count"].stream
    cells = [
        outputs_in(row.partial[0], (pane.incarnation, pane.nonce, row.seq))
        for pane, row in device.rows()
        if pane.stream == sent
    ]
    return sorted(
        ((at.time_us - FIRST_US) // SECOND_US, content and content[1])
        for at, (_, content) in newest(cells).items()
    )


def test_an_output_leaves_once_its_timer_rang_and_is_replaced_where_a_reading_came_late(tmp_path):
    device = Device(tmp_path, runs())
    read(device, [(0, 1), (10, 1), (100, 1), (200, 1)])
    assert outputs(device) == [(40, 2), (130, 1)]
    read(device, [(15, 1)])
    assert outputs(device) == [(40, None), (45, 3), (130, 1)]


def test_no_promise_goes_beyond_the_next_timer_of_a_scan_that_the_fleet_hears(tmp_path):
    device = Device(tmp_path, runs())
    read(device, [(0, 1), (200, 1)])
    due_us = FIRST_US + 230 * SECOND_US
    assert device.core.streams.bounded_us(due_us + 1, device.now_us) == due_us
    assert device.core.streams.bounded_us(due_us - 1, device.now_us) == due_us - 1
