"""Rows of results leave a device as panes, and are in a lander what the device says."""

from random import Random

import pytest

from device_agent.agent.stored_rows import Retraction
from lasp_edge import Program, scans
from lasp_edge.evaluation.history import stored_rows
from lasp_edge.language.streaming import plain_parts
from lasp_edge.ordered.sent_rows import SentRow
from lasp_edge.protocol.acceptance import Record
from lasp_edge.protocol.frames import PaneFrame
from tests.device_agent.agent.scans.support_streams import SECOND_US
from tests.device_agent.agents import NOW_US, ack_of
from tests.device_agent.gateway.support_gateway import GatewayUnderTest


def is_landed(device):
    """Return whether a lander holds what the device's streams must say."""
    for _ in range(60):
        device.land(10)
    truth = device.truth()
    for name, result in device.program.stream_results.items():
        rows = {
            (device.name, place): SentRow(place, event.key, plain_parts(result, event.value))
            for place, event in truth[name].items()
        }
        assert device.landed.rows(device.program, name) == rows, name
    return True


def test_rows_land_and_what_is_taken_back_goes(begin):
    device = begin()
    device.meter([(60 * n, v, "a") for n, v in enumerate((100, 130, 310, 180, 200))])
    assert is_landed(device)
    values = [row.parts for _, row in sorted(device.landed.rows(device.program, "used").items())]
    assert values == [(60,), (360,), (360,), (40,)]
    at_us = NOW_US + 120 * SECOND_US
    device.taken_back.add((at_us, 310, "a"))
    device.take([Retraction(310)], [at_us], [{"tap": "a"}], name="litres")
    device.meter([(120, 160, "a")])
    assert is_landed(device)
    values = [row.parts for _, row in sorted(device.landed.rows(device.program, "used").items())]
    assert values == [(60,), (60,), (40,), (40,)]
    result = device.program.stream_results["used"]
    rows = stored_rows(device.store.history, result, at_us, 3)
    assert [row.parts.get("difference") for row in rows] == [None, 20.0, 20.0]


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_several_lives_are_what_the_last_one_says(begin, seed):
    rng, device, at_s = Random(seed), begin(), 0
    for _ in range(12):
        readings = []
        for _ in range(rng.randrange(1, 6)):
            at_s += rng.randrange(1, 25)
            late_s = rng.choice((0, 0, 3, 40, 400))
            readings.append((max(0, at_s - late_s), rng.randrange(400) / 2, rng.choice("ab")))
        device.meter(readings)
        if rng.random() < 0.4:
            device.tick(rng.randrange(1, 4))
        if rng.random() < 0.4:
            device.restart()
        if rng.random() < 0.3:
            device.land()
    assert is_landed(device)


def test_a_promise_waits_for_the_rows_that_time_alone_brings(begin):
    """The run of tap a is over thirty seconds after its last reading, which comes from tap b."""
    device = begin()
    device.meter([(0, 100, "a"), (10, 130, "a"), (20, 140, "b")])
    device.tick(1)
    device.land()
    device.hear(ack_of(device.name, *device.frames(PaneFrame)))
    device.now_us += 60 * SECOND_US
    low_us = device.core.panes.lows(device.now_us)[0].low_us
    assert low_us <= NOW_US + 40 * SECOND_US


def test_who_has_read_everything_promises_all_rows(begin):
    """The last run is said thirty seconds after the last reading, by time alone."""
    device = begin()
    device.meter([(0, 100, "a"), (10, 130, "a")])
    device.take([None], [None], [{}], name="litres", done=True)
    device.settle()
    places = [place for name in ("used", "runs") for place in device.said(name)]
    assert max(places)[0] == NOW_US + 40 * SECOND_US
    device.land(20)
    assert device.low_us > NOW_US + 40 * SECOND_US


def test_a_gateway_takes_rows_that_it_does_not_keep(begin):
    """Else a device would offer them for ever, and never be done."""
    device = begin()
    device.meter([(0, 100, "a"), (10, 130, "a"), (70, 140, "a")])
    gateway, now_us = GatewayUnderTest(device.program), device.now_us
    sent = [each for each in device.tick(20) if each.pane_frame]
    records = [Record(now_us, each.topic, retained=False, payload=each.payload) for each in sent]
    accepted = gateway.acceptance.take(records)
    assert accepted.rows
    assert not accepted.refused
    gateway.keeper.commit(gateway.core.join(accepted, None).changes)
    windows = {window.stream for window in device.program.windows.values()}
    assert {pane[0] for pane in gateway.keeper.panes} == windows


def test_a_text_that_is_too_long_is_no_part_of_a_row(begin):
    program = Program("notes")
    line = program.event("line", text=True)
    program.result(program.map(line, lambda event: 20 * event.value, "long"), parts={"n": "text"})
    said = program.scan("said", source=line, scan=scans.changes(), per_device=True)
    program.result(said, parts={"text": "text"})
    device = begin(program=program.plan())
    device.take(["x" * 100, "y"], [NOW_US, NOW_US + 1], [{}, {}], name="line")
    device.tick()
    assert device.values("long") == ["y" * 20]
    assert device.values("said") == ["x" * 100, "y"]
    (reason,) = [name for name in device.counted if name.startswith("failed: result long")]
    assert device.counted[reason] == 1
