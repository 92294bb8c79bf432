"""Synchronised scans: the published inputs of Flumina give its outputs; what cannot be is refused.

Inputs and outputs: github.com/angelhof/flumina (MIT), `experiments`.
"""

from random import Random

import pytest

from lasp_edge import Program, scans
from lasp_edge.event import Event
from lasp_edge.language.streaming import FLEET, graph_of
from lasp_edge.ordered.deltas import applied
from lasp_edge.ordered.places import reading_place
from tests.lasp_edge.scans.support_synchronised import (
    SCANS,
    Energy,
    EventWindow,
    MaxTemp,
    Modulo,
    PageViews,
    SmartHome,
    ValueBarrier,
    program_of,
)

A_1 = [(1, 1), (3, 5), (4, 3), (7, 7), (15, 3)]
A_2 = [(6, 6), (8, 5), (10, 6), (11, 5), (12, 1), (13, 0), (14, 9)]
ALL = range(3)


def readings(event, device, timed):
    return [(event, device, time, value) for time, value in timed]


def barriers(times):
    return readings("b", "9", [(time, time) for time in times])


def values(kind, given, seed=0, key=None):
    """Return the outputs of a scan over readings that arrive in some order, some of them twice."""
    graph = graph_of(program_of(kind, key=key).plan(), FLEET)
    rng, found = Random(seed), {}
    left = rng.sample(given, len(given))
    while left:
        size = rng.randint(1, 1 + len(given) // 4)
        batch, left = left[:size], left[size:]
        delta = {}
        for name, device, time, value in batch:
            place = reading_place(name, "", round(value * 1000), time, device)
            event = Event(name, float(value), time, device, {})
            delta.setdefault(name, {})[place] = (None, event)
        found = applied(graph.update(delta).get("found", {}), found)
    return [event.value for _, event in sorted(found.items())]


@pytest.mark.parametrize("seed", ALL)
def test_sums_at_barriers_are_those_of_abexample(seed):
    given = readings("a", "1", A_1) + readings("a", "2", A_2) + barriers([2, 5, 9, 16])
    assert values(ValueBarrier, given, seed) == [1, 9, 27, 51]
    assert values(EventWindow, given, seed) == [1, 8, 18, 24]


def test_sums_of_random_halves_are_those_of_abexample():
    rng = Random(1)
    odd = [time for time in range(1, 2001) if time != 1001]
    halves = [readings("a", rng.choice("12"), [(time, time)])[0] for time in odd]
    assert values(ValueBarrier, halves + barriers([1001, 2001])) == [500500, 1999999]


def test_sums_of_the_big_input_are_half_the_squares():
    odd = [(time, time) for time in range(1, 5000, 2)]
    given = readings("a", "1", odd) + readings("a", "2", odd)
    times = range(1000, 6000, 1000)
    assert values(ValueBarrier, given + barriers(times)) == [time * time // 2 for time in times]


@pytest.mark.parametrize("seed", ALL)
def test_the_alert_of_the_smart_home_is_theirs(seed):
    times = range(20, 301, 20)
    one = [30, 20, 47, 54, 40, 33, 20, 30, 60, 70, 49, 20, 31, 12, 21]
    two = [25, 26, 10, 40, 56, 20, 29, 21, 18, 80, 45, 60, 18, 12, 21]
    pressure = [10, 120, 50, 40, 56, 20, 29, 21, 18, 160, 280, 60, 18, 12, 21]
    given = readings("warm", "a1", zip(times, one, strict=True))
    given += readings("warm", "a2", zip(times, two, strict=True))
    given += readings("pressure", "b", zip(times, pressure, strict=True))
    given += readings("minute", "m", [(60 * n, 1) for n in range(1, 11)])
    assert values(SmartHome, given, seed) == [(142, 70)]


@pytest.mark.parametrize(
    ("houses", "watts", "count"), [("01", 459.338, 68), ("0", 442.882, 64), ("1", 16.456, 4)]
)
def test_the_first_slice_of_the_debs_sample_adds_up(houses, watts, count):
    loads = {"0": (DEBS_HOUSE_0, 64), "1": (DEBS_HOUSE_1, 4)}
    given = []
    for house in houses:
        found, plugs = loads[house]
        watts_of = [*found, *[0] * (plugs - len(found))]
        given += [("a", f"house {house}, {n}", 1, load) for n, load in enumerate(watts_of)]
    assert values(Energy, [*given, ("b", "z", 2, 1)]) == [(watts, count, watts / 2)]


DEBS_HOUSE_0 = [19.927, 9.472, 17.743, 21.254, 33.291, 18.033, 17.367, 15.737, 20.34, 40.356]
DEBS_HOUSE_0 += [14.593, 30.748, 10.977, 69.812, 6.147, 16.308, 31.633, 9.8, 39.344]
DEBS_HOUSE_1 = [16.456]
"""Watts above 0 in `sample_debs_house_*_load` at 1377986401; the other plugs have 0."""


def test_the_greatest_since_it_was_asked_for():
    given = readings("a", "s1", [(1, -70), (4, 71)]) + readings("a", "s2", [(2, -72)])
    assert values(MaxTemp, given + barriers([3, 5, 6])) == [-70, 71]


def test_values_that_end_like_the_model_are_hits():
    given = readings("a", "1", [(1, 100), (2, 107), (4, 7)]) + readings("a", "2", [(5, 207)])
    given += readings("b", "9", [(3, 106), (6, 8)])
    found = [("hit", 100), ("sum", 207), ("hit", 7), ("hit", 207), ("sum", 421)]
    assert values(Modulo, given) == found


def test_views_have_the_newest_metadata_of_their_page():
    def page(event):
        return str(event.value // 10)

    given = readings("b", "9", [(1, 10), (3, 11), (4, 20)])
    given += readings("a", "1", [(2, 15), (5, 16)]) + readings("a", "2", [(5, 25)])
    of_page_1 = [("was", 10, -1), ("view", 15, 10), ("was", 11, 10), ("view", 16, 11)]
    of_page_2 = [("was", 20, -1), ("view", 25, 20)]
    found = values(PageViews, given, key=page)
    assert [each for each in found if each[1] < 20] == of_page_1
    assert [each for each in found if each[1] >= 20] == of_page_2


@pytest.mark.parametrize("kind", SCANS)
def test_it_is_a_scan_over_the_fleet_with_parts(kind):
    plan = program_of(kind).plan()
    assert plan.streams["found"].fleet
    assert dict(plan.fleet_results["found"].parts) == kind.parts
    assert set(plan.item_streams) == set(kind().tells_apart)


class NoShare(scans.Synchronised):
    name, depends = "no_share", (("b", "a"),)

    def step(self, state, event):
        return state, []

    def join(self, state, part):
        return state


class Listed(NoShare):
    empty = []  # noqa: RUF012 - what is refused


class Failing(NoShare):
    def share(self, state):
        return state[5]


class Timed(NoShare):
    empty = 0

    def due(self, state):
        return 5


class Unknown(NoShare):
    empty, depends = 0, (("b", "ab"),)


class Nothing(NoShare):
    empty, depends = 0, ()


class Single(NoShare):
    empty, depends = 0, ("b", "a")


class Nameless(NoShare):
    empty, name = 0, None


REFUSED = {
    NoShare: "scan 's': NoShare: write empty = ..., the state from which each device begins",
    Listed: "scan 's': Listed: zero and share.zero. must be plain values: .*a tuple in place of a",
    Failing: "scan 's': Failing: zero and share.zero. must be plain values: IndexError",
    Timed: "scan 's': Timed: it has `due`, and what time alone brings is of no device",
    Unknown: "scan 's': Unknown asks for 'ab', and its source gives a, b alone",
    Nothing: "scan 's': Nothing: depends must be pairs of names of events",
    Single: r"scan 's': Single: depends must be pairs .* not \('b', 'a'\)",
    Nameless: "scan 's': name = \"...\" is needed in class Nameless",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_missing_is_named_at_once(kind):
    program = Program("p")
    with pytest.raises(ValueError, match=REFUSED[kind]):
        program.scan("s", source=[program.event("a"), program.event("b")], scan=kind)
    assert list(program.plan().streams) == []


def test_one_of_each_device_by_itself_is_refused():
    with pytest.raises(ValueError, match="about the order across devices; leave out per_device"):
        program_of(ValueBarrier, per_device=True)
