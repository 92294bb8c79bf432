"""`check` names the alerts that no value reaches, with the greatest value there can be."""

import pytest

from crdts import BoundedLWWSet, GSet
from lasp_edge import Program, folds, scans
from lasp_edge.checking.alerts import empty_bins, small_shares, unreachable, unreached_levels
from lasp_edge.checking.looks import looked_at
from lasp_edge.examples.greenhouse import program as greenhouse
from lasp_edge.language.triggers import Trigger


@pytest.fixture
def house():
    """Return a program with an event from 10 to 50, its last 5 samples, and what folds them."""
    program = Program("reach")
    program.x = program.event("x", resolution="0.5", least=10, most=50)
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.collect(program.x, into=samples)
    parts = {"n": folds.count(), "mean": folds.mean(), "total": folds.sum(), "sd": folds.stddev()}
    program.here = program.fold(samples, folds.struct(**parts, hot=folds.any()), "here")
    program.fleet = program.fold_dynamic(program.here, "fleet")
    return program


def lines(program, watched, **levels):
    program.alert("a", watched, **levels)
    return unreachable(program.plan())


@pytest.mark.parametrize(
    ("part", "levels", "text"),
    [
        ("mean", {"above": 50}, "above 50, and 50 is the greatest there can be (x has most=50)"),
        ("mean", {"below": 10}, "below 10, and 10 is the least there can be (x has least=10)"),
        (
            "n",
            {"above": 5},
            "above 5, and 5 is the greatest there can be (its set keeps 5 samples)",
        ),
        ("n", {"below": 0}, "below 0, and 0 is the least there can be; write a higher level"),
        ("total", {"above": 250}, "above 250, and 250 is the greatest there can be (its set keeps"),
        ("sd", {"above": 40}, "above 40, and 40 is the greatest there can be"),
        ("hot", {"above": 1}, "above 1, and 1 is the greatest there can be"),
        ("mean", {"above": 30, "below": 9}, "it would at mean of here 9 or below, and 10 is the l"),
        (
            "mean",
            {"below": 30, "hysteresis": 21},
            "it would at mean of here 51 or above, and 50 is",
        ),
    ],
)
def test_a_level_beyond_all_values_is_named_and_the_one_before_it_is_not(house, part, levels, text):
    (line,) = lines(house, house.here, part=part, **levels)
    assert line.startswith("alert a never goes o")
    assert text in line


@pytest.mark.parametrize(
    ("watched", "part", "levels"),
    [
        ("here", "mean", {"above": 49.5}),
        ("here", "n", {"above": 4}),
        ("here", "n", {"below": 1}),
        ("here", "total", {"above": 249.5}),
        ("here", "sd", {"above": 28}),  # of 10 and 50: 28.28
        ("here", "mean", {"above": 30, "below": 10}),
        ("fleet", "n", {"above": 5}),  # of several devices
        ("fleet", "total", {"above": 250}),
    ],
)
def test_a_level_that_a_value_can_reach_is_no_news(house, watched, part, levels):
    assert lines(house, watched, part=part, **levels) == []


def test_a_window_without_readings_has_no_row_to_be_below_one(house):
    count = house.window("n", source=house.x, fold=folds.count(), size_s=60)
    (line,) = lines(house, count, below=1)
    assert "a window without a reading has no row" in line
    assert "max_age_s=60" in line
    highest = house.window("h", source=house.x, fold=folds.max(), size_s=60)
    house.alert("b", highest, above=50)
    assert len(unreachable(house.plan())) == 2


def test_what_functions_give_is_not_known(house):
    value = house.window(
        "v", source=house.x, fold=folds.max(), size_s=60, value=lambda event: event.value * 2
    )
    limit = house.parameter("limit", "60")
    mapped = house.map(house.x, lambda event: event.value * 2, "m", resolution="1")
    stream = house.window("s", source=mapped, fold=folds.max(), size_s=60)
    twice = house.combine("twice", lambda fleet: fleet["n"] * 2, house.fleet, resolution="1")
    house.alert("by parameter", house.here, part="mean", above=limit)
    house.alert("of a stream", stream, above=100)
    house.alert("combined", twice, above=10)
    assert lines(house, value, above=80) == []


def test_what_handlers_write_is_not_known_and_what_they_watch_is(house):
    seen = house.declare(GSet(), "seen")
    house.on_event(house.x)(lambda event, update: update(seen, GSet.add, event.value))
    house.on_value(house.here, part="n", above=5)(lambda value, update: None)
    (line,) = lines(house, house.here, part="mean", above=60)
    assert line.startswith("on_value of here never goes on: it waits for n of here above 5, and 5")
    assert unreachable(greenhouse.plan()) == []


@pytest.mark.parametrize(
    ("side", "span", "is_beyond"),
    [
        ("above", {"least": 4_000}, True),
        ("above", {"least": 2_999}, False),
        ("above", {}, False),
        ("below", {"least": -100, "most": -1}, True),
        ("below", {"least": -100, "most": 1}, False),
    ],
)
def test_a_level_that_no_value_of_a_parameter_can_bring_into_reach_is_named(side, span, is_beyond):
    program = Program("mill")
    power = program.event("power", resolution="1", least=0, most=3_000)
    limit = program.parameter("limit", str(span.get("least", 5)), **span)
    window = program.window("w", source=power, fold=folds.max(), size_s=60)
    program.alert("a", window, **{side: limit}, hysteresis=1)
    found = unreachable(program.plan())
    assert [line.partition(":")[0] for line in found] == [
        "alert a never goes on, whatever limit is"
    ] * is_beyond


@pytest.mark.parametrize(
    ("edges", "text"),
    [
        ([250, 300], "all readings are in bin_0, below 250, as x is 10 to 50; write edges in its"),
        ([0, 5], "all readings are in bin_2, from 5 on, as x is 10 to 50; write edges in its unit"),
        (
            [20.1, 20.3],
            "bin_1 stays empty: no reading of x lies from 20.1 to 20.3, in steps of 0.5",
        ),
        ([20, 20.5, 50], None),
        ([0, 20], None),
        ([20, 100], None),
        (
            [20, 80, 100],
            "bin_2 stays empty: no reading is 80 or more, as x is 10 to 50; leave",
        ),
        ([20, 50, 100], None),
        ([20], None),
    ],
)
def test_a_histogram_with_a_bin_that_no_reading_reaches_is_named(house, edges, text):
    fold = folds.struct(n=folds.count(), spread=folds.histogram(edges))
    house.window("w", source=house.x, fold=fold, size_s=60)
    found = empty_bins(house.plan())
    assert [line.partition(": ")[2].startswith(text or "") for line in found] == [True] * bool(text)


def test_the_bins_of_what_a_function_makes_are_not_known(house):
    fold = folds.histogram([250, 300])
    house.window("w", source=house.x, fold=fold, value=lambda e: e.value * 10, size_s=60)
    house.window("open", source=house.event("y", resolution="0.1"), fold=fold, size_s=60)
    assert empty_bins(house.plan()) == []


@pytest.mark.parametrize(
    ("above", "below", "text"),
    [
        (
            65,
            61,
            "scan s never gives 1: no reading is above 65 (x is 10 to 50); write",
        ),
        (50, 20, "scan s never gives 1: no reading is above 50"),
        (20, 10, "scan s never gives 0: no reading is below 10"),
        (49.5, 10.5, ""),
    ],
)
def test_a_level_of_a_scan_that_no_reading_passes_is_named(house, above, below, text):
    some = house.filter(house.x, lambda event: event.value > 12, "some")
    levels = scans.hysteresis(above=above, below=below)
    house.scan("s", source=some, scan=levels, per_device=True)
    doubled = house.map(house.x, lambda event: 2 * event.value, "doubled", resolution="1")
    house.scan("of_doubled", source=doubled, scan=levels, per_device=True)
    found = unreached_levels(house.plan())
    assert [line.startswith(text) for line in found] == [True] * bool(text)


@pytest.mark.parametrize(
    ("name", "fold", "levels", "is_named"),
    [
        ("humidity", folds.mean(), {"above": 0.8, "below": 0.7}, True),
        ("battery", folds.last(), {"below": 0.2, "hysteresis": 0.1}, True),
        ("humidity", folds.mean(), {"above": 80, "below": 70}, False),
        ("humidity", folds.mean(), {"above": 1, "below": 0}, False),
        ("humidity", folds.stddev(), {"above": 0.8, "below": 0.7}, False),
        ("humidity", folds.count(), {"above": 0.5, "hysteresis": 0}, False),
        ("lost_packets", folds.mean(), {"above": 0.8, "below": 0.7}, False),
    ],
    ids=["mean", "last", "percent", "one", "spread", "count", "may be little"],
)
def test_a_level_that_is_a_share_of_what_is_in_percent_is_named(name, fold, levels, is_named):
    program = Program("cellar")
    moist = program.event(name, resolution="0.1", unit="%", least=0, most=100)
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.collect(moist, into=samples)
    here = program.fold(samples, fold, "here")
    program.alert("a", here, **levels)
    reached = {side: level for side, level in levels.items() if side in {"above", "below"}}
    program.on_value(here, **reached)(lambda value, update: None)
    lines = [line.partition(":")[0] for line in small_shares(program.plan())]
    assert lines == ["alert a", "on_value of here"] * is_named


def test_a_share_as_a_level_of_a_scan_is_named_with_what_to_write():
    program = Program("cellar")
    moist = program.event("humidity", resolution="0.1", unit="%")
    for name, above in (("a", 0.8), ("b", 80)):
        scan = scans.hysteresis(above=above, below=above - 0.1)
        program.scan(name, source=moist, scan=scan, per_device=True)
    assert small_shares(program.plan()) == [
        "scan a: its level is 0.8, and humidity is in %; for 80 %, write 80"
    ]


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        (
            {"below": 2, "above": 3},
            (
                "frost goes on where max of here is above 3, and off at 2 or below; the other way "
                "round it is below=2, hysteresis=1"
            ),
        ),
        ({"below": 2, "hysteresis": 1}, ""),
        ({"below": 2}, ""),
        ({"above": 3}, ""),
    ],
)
def test_an_alert_of_two_levels_says_which_way_it_goes(levels, says):
    program = Program("cellar")
    warm = program.event("warm", resolution="0.1", unit="°C")
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.collect(warm, into=samples)
    here = program.fold(samples, folds.max(), "here")
    program.alert("frost", here, **levels)
    assert looked_at(program.plan()).lines == [f"ALERT {says}"] * bool(says)


def test_the_other_way_round_is_what_an_alert_of_two_levels_names():
    two = Trigger.of("a", below=2, above=3)
    other = Trigger.of("a", below=2, hysteresis=1)
    assert (two.rises, other.rises) == (True, False)
    assert {two.level, two.rearm} == {other.level, other.rearm}
