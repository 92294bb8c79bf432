"""Outputs of a device's streams leave for the order over the fleet, and promises wait for them."""

from device_agent.agent.scans import leaving
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


def changed(*, text=False):
    """Return a program of each device's changes, in one order over the fleet."""
    program = Program("water")
    line = program.event("litres", text=text)
    count = program.scan("count", source=line, scan=scans.changes(), per_device=True)
    program.result(
        program.scan("all", source=count, scan=scans.changes()),
        parts={"value": "text" if text else "1"},
    )
    return program.plan()


def test_an_output_joins_those_of_its_cell_that_left_before(tmp_path):
    device = Device(tmp_path, changed())
    for at_s in (1, 2, 3):
        read(device, [(at_s, at_s)])
    assert [at_s for at_s, _ in outputs(device)] == [1, 2, 3]


def test_an_output_that_no_entry_can_hold_is_left_out_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(leaving, "MOST_BYTES", 160)
    monkeypatch.setattr(leaving, "PART_BYTES", 160)
    device = Device(tmp_path, changed(text=True))
    read(device, [(1, "a"), (2, "b" * 200), (3, "c")])
    assert [at_s for at_s, content in outputs(device) if content] == [1, 3]
    assert [name for name in device.counted if "is not sent, and no row" in name]


def test_no_promise_goes_beyond_the_next_timer_of_a_scan_that_the_fleet_hears(tmp_path):
    device = Device(tmp_path, runs())
    read(device, [(0, 1), (200, 1)])
    due_us = FIRST_US + 230 * SECOND_US
    assert device.core.streams.bounded_us(due_us + 1, device.now_us) == due_us
    assert device.core.streams.bounded_us(due_us - 1, device.now_us) == due_us - 1
