"""FlameStream's cases of grouping where the items are of several devices: a gateway groups them."""

from random import Random

import pytest

from lasp_edge import Program, scans
from lasp_edge.ordered.cells import PRESENT, RETRACTED
from tests.device_agent.gateway.support_streams import DEVICES, Fleet
from tests.lasp_edge.ordered.support_flamestream import FULL, GROUPING

BASE = 1_000
"""A group is a number whose digits are the values."""


def number(group):
    """Return a group of values from 1 to 999 as one number."""
    found = 0
    for value in group:
        found = found * BASE + int(value)
    return found


def plan_of(size, *, partial=True):
    """Return a program that groups the readings of all doors."""
    program = Program("doors")
    door = program.event("door")
    groups = program.scan("groups", source=door, scan=scans.last(size, partial=partial))
    found = program.map(groups, lambda event: number(event.value), "all")
    program.result(found, parts={"group": "1"})
    return program.plan()


def grouped(arrivals, size, *, partial=True, restarts=False):
    """Return the groups at a gateway to which items come one by one, each of the next device."""
    fleet, read = Fleet(plan_of(size, partial=partial)), {}
    for at_s, value in arrivals:
        known = read.setdefault(at_s, value)
        state = PRESENT if value else RETRACTED
        fleet.land([fleet.reads(DEVICES[at_s % 3], at_s, known, state=state)])
        if restarts:
            fleet.restart()
    fleet.land([], 2 * BASE)
    fleet.check()
    return {parts[0] for _, parts in fleet.rows("all").values()}


@pytest.mark.parametrize("case", GROUPING)
def test_grouping_of_two(case):
    arrivals, expected = GROUPING[case]
    places = sorted({place for place, _ in arrivals})
    names = sorted({value for _, value in arrivals if value})
    given = [(places.index(p), v and names.index(v) + 1) for p, v in arrivals]
    wanted = {number(names.index(each) + 1 for each in group) for group in expected}
    assert grouped(given, 2) == grouped(given, 2, restarts=True) == wanted


@pytest.mark.parametrize(("size", "order", "expected"), FULL)
def test_groups_that_are_not_full_are_undone(size, order, expected):
    found = grouped([(each, each) for each in order], size, partial=False)
    assert found == {number(group) for group in expected}


def test_shuffle_reordering():
    order = Random(2).sample(range(300), 300)
    found = grouped([(n, n + 1) for n in order], 6)
    assert found == {number(range(max(1, n - 4), n + 2)) for n in range(300)}
