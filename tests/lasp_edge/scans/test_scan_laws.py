"""The laws of every built-in scan, over one table: its arguments decide, and its cost is known."""

import inspect
import sys

import pytest

from lasp_edge.ordered.calling import Failures
from lasp_edge.ordered.log import BEFORE_ALL_US, ScanLog
from lasp_edge.ordered.outputs import LogName
from lasp_edge.ordered.places import child_place
from lasp_edge.testing import check_scan
from tests.lasp_edge.ordered.support_streams import SCANS, drawn_event, place_at, seeded

SHORT, LONG = 60, 240
LATE, PAUSE_S = 5, 10
MOST_STEPS = 12
"""Steps after one late event of a scan that says it is local, over the drawn values."""


def events(count):
    """Return events in groups of four; a longer stream begins with all of a shorter one."""
    rng = seeded(11)
    return [drawn_event(rng, place_at(at + at // 4 * PAUSE_S)) for at in range(count)]


def place_of(event):
    return (event.time_us, event.device, (), ())


def steps_of_a_late_event(scan, count):
    """Return how many steps a stream takes when an event comes near its beginning."""
    log = ScanLog(scan, LogName(scan.name), Failures())
    stream = events(count)
    log.apply([(place_of(event), event) for event in stream], -BEFORE_ALL_US)
    before, late = log.steps, stream[LATE]
    log.apply([(child_place(place_of(late), 1), late)], -BEFORE_ALL_US)
    return log.steps - before


@pytest.mark.parametrize("name", SCANS)
def test_it_depends_on_its_arguments_alone(name):
    stream = events(SHORT)
    times_s, names = [event.time_us / 1_000_000 for event in stream], [each.name for each in stream]
    values = [int(event.value) for event in stream]
    check_scan(SCANS[name], values, times_s=times_s, names=names)


@pytest.mark.parametrize("name", [name for name, scan in SCANS.items() if scan.local])
def test_a_late_event_costs_a_local_scan_the_same_however_long_the_stream_is(name):
    short, long = (steps_of_a_late_event(SCANS[name], count) for count in (SHORT, LONG))
    assert short == long <= MOST_STEPS


def test_a_late_event_of_a_running_state_costs_all_behind_it():
    assert not SCANS["running"].local
    assert steps_of_a_late_event(SCANS["running"], LONG) == LONG - LATE


@pytest.mark.parametrize("kind", sorted({type(scan) for scan in SCANS.values()}, key=str))
def test_its_file_says_its_laws_and_its_cost(kind):
    words = inspect.getdoc(sys.modules[kind.__module__])
    assert "Law" in words
    assert "Cost:" in words
