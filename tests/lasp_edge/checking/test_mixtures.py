"""Two meters in one scan, two units in one sum: what `check` says of it, and what to write."""

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds, scans
from lasp_edge.checking.mixtures import mixtures
from lasp_edge.checking.whole import all_tried

ROOM = {"key": lambda event: event.tags["room"]}


def water(scan=None, **arguments):
    program = Program("water")
    litres = program.event("litres", resolution="1", unit="l")
    scan = scan or scans.differences(reset=True)
    used = program.scan("used", source=litres, scan=scan, **arguments)
    program.result(used)
    return program


def found_in(program):
    plan = program.plan()
    return mixtures(plan, all_tried(plan, is_lawful=False).tags)  # functions alone name all tags


OF_ONE = [
    scans.differences(),
    scans.rate(),
    scans.changes(),
    scans.debounce(5),
    scans.hysteresis(above=3, below=1),
    scans.held_for(lambda event: event.value > 3, 60),
    scans.time_weighted_mean(60),
]


@pytest.mark.parametrize("scan", OF_ONE, ids=lambda scan: scan.name)
def test_a_scan_of_one_signal_over_the_fleet_without_a_key_is_named_with_what_to_write(scan):
    (line,) = found_in(water(scan))
    assert line == (
        f"scan used: {scan.name} is of one signal, and without a key those of all devices are one: "
        "write per_device=True, or key=lambda event: event.tags[..]"
    )
    assert found_in(water(scan, per_device=True)) == []
    assert found_in(water(scan, **ROOM)) == []


def of_two(units, key, scan=None, *, united=False):
    program = Program("house")
    both = [program.event(f"e{n}", resolution="1", unit=unit) for n, unit in enumerate(units)]
    source = program.union(*both, "both") if united else both
    scan = scan or scans.differences()
    program.scan("used", source=source, scan=scan, key=key, per_device=True)
    return mixtures(program.plan(), {})


@pytest.mark.parametrize("united", [False, True])
@pytest.mark.parametrize(
    ("units", "key", "is_named"),
    [
        (("kWh", "l"), lambda event: event.tags["flat"], True),
        (("kWh", "l"), lambda event: (event.tags["flat"], event.name), False),
        (("", "l"), lambda event: (event.tags["flat"], event.name), False),
    ],
    ids=["two", "by name", "unknown"],
)
def test_a_scan_of_one_signal_over_two_units_of_one_key_is_named(units, key, is_named, united):
    lines = of_two(units, key, united=united)
    assert [line.partition(",")[0] for line in lines] == [
        "scan used: differences is of one signal"
    ] * is_named


@pytest.mark.parametrize("scan", OF_ONE, ids=lambda scan: scan.name)
def test_a_scan_of_one_signal_over_two_events_is_named_where_the_program_does_not_unite_them(scan):
    (line,) = of_two(("kWh", "kWh"), ROOM["key"], scan)
    assert line == (
        f"scan used: {scan.name} is of one signal, and readings of e0 and e1 that have one key are "
        "one: write a key with event.name in it, or unite them before if they are: "
        "program.union(e0, e1, name=..)"
    )
    assert of_two(("kWh", "kWh"), ROOM["key"], scan, united=True) == []
    assert of_two(("kWh", "kWh"), lambda event: (event.name, event.tags["room"]), scan) == []


def test_a_condition_that_asks_which_event_it_has_compares_none_with_another():
    opened = scans.held_for(lambda event: event.name == "e0" and event.value > 0, 60)
    assert of_two(("", ""), ROOM["key"], opened) == []


class Many(scans.Scan):
    """Counts events, and gives whether the last one was great."""

    name, zero = "many", 0

    def step(self, state, event):
        return state + 1, [state + 1]


class Sum(Many):
    name = "sum"

    def step(self, state, event):
        return state + round(event.value), [state]


class OfOne(Many):
    name = "of_one"

    def step(self, state, event):
        return state + (round(event.value) if event.name == "e0" else 0), [state]


@pytest.mark.parametrize(
    ("scan", "is_named"),
    [
        (scans.top(1), True),
        (scans.last(3), True),
        (scans.running(lambda total, event: total + event.value), True),
        (scans.running(lambda count, event: count + 1), False),
        (scans.running(lambda warm, event: event.value if event.name == "e0" else warm), False),
        (Sum(), True),
        (Many(), False),
        (OfOne(), False),
        (scans.sessions(60), False),
    ],
)
@pytest.mark.parametrize("united", [False, True])
def test_a_scan_that_makes_numbers_of_two_units_is_named(scan, is_named, united):
    lines = of_two(("°C", "°F"), ROOM["key"], scan, united=united)
    line = (
        "scan used: its readings are of e0 in °C and of e1 in °F, as they were read; convert one: "
        "program.map(e1, lambda event: .., resolution=)"
    )
    assert lines == is_named * [line]
    assert of_two(("°C", "°C"), ROOM["key"], scan, united=united) == []


HOT = [
    (scans.hysteresis(above=25, below=20), True),
    (scans.held_for(lambda event: event.value > 25, 60), True),
    (scans.pattern(lambda e: e.value > 0, lambda e: e.value < -5, within_s=60), True),
    (scans.held_for(lambda event: event.value > (25 if event.name == "e0" else 77), 60), False),
    (scans.pattern(lambda e: e.name == "e0", lambda e: e.value > 25, within_s=60), True),
    (scans.held_for(lambda event: event.value > 0, 60), False),
    (scans.changes(), False),
]


@pytest.mark.parametrize(("scan", "is_named"), HOT, ids=range(len(HOT)))
@pytest.mark.parametrize("united", [False, True])
@pytest.mark.parametrize("key", [None, lambda e: (e.tags["room"], e.name)], ids=["none", "by name"])
def test_one_level_of_readings_in_two_units_is_named_whatever_the_key(scan, is_named, united, key):
    line = (
        "scan used: readings of e0 in °C and of e1 in °F are compared with one level; convert one: "
        "program.map(e1, lambda event: .., resolution=)"
    )
    lines = of_two(("°C", "°F"), key, scan, united=united)
    assert lines.count(line) == is_named
    assert not is_named or not any("event.name in it" in each for each in lines)
    assert line not in of_two(("°C", "°C"), key, scan, united=united)


@pytest.mark.parametrize(
    ("where", "is_named"),
    [
        (lambda event: event.value > 25, True),
        (lambda event: event.value > {"e0": 25, "e1": 77}[event.name], False),
        (lambda event: event.tags["unit"] == "°C" and event.value > 25, False),
        (lambda event: event.value != 85, False),
    ],
    ids=["level", "by name", "by tag", "other"],
)
def test_one_condition_of_readings_in_two_units_is_named(where, is_named):
    program, warm, hot, _ = two_units()
    both = program.union(warm, hot, "both")
    program.window("w", source=both, fold=folds.count(), size_s=60, where=where)
    program.filter(both, where, "f")
    lines = mixtures(program.plan(), {})
    assert [line.partition(":")[0] for line in lines] == [
        "where of window w",
        "filter f",
    ] * is_named


def test_what_a_map_has_converted_is_in_one_unit():
    program, warm, hot, _ = two_units()
    also = program.map(hot, lambda event: (event.value - 32) / 1.8, "also", resolution="0.1")
    both = program.union(warm, also, "both")
    top = {"scan": scans.top(1), **ROOM, "per_device": True}
    program.scan("top", source=both, **top)
    program.scan("levels", source=both, **{**top, "scan": scans.hysteresis(above=25, below=20)})
    program.scan("used", source=both, **{**top, "scan": scans.differences()})
    assert mixtures(program.plan(), {}) == []


@pytest.mark.parametrize("unit", ["kW", "W", ""])
@pytest.mark.parametrize("filtered", [False, True])
def test_a_reading_that_is_compared_with_a_parameter_in_another_unit_is_named(unit, filtered):
    program = Program("house")
    power = program.event("power", resolution="1", unit="W", least=0, most=10_000)
    limit = program.parameter("limit", "2", resolution="0.1", unit=unit)
    source = program.filter(power, lambda event: event.value > 1, "some") if filtered else power
    of_one = {"source": source, "fold": folds.count(), "size_s": 60, "uses": (limit,)}
    program.window("a", where=lambda event, at: event.value > at[limit], **of_one)
    program.window("b", where=lambda event, at: 3 < at["limit"] <= event.value, **of_one)
    program.window("c", where=lambda event, at: event.value > at[limit] * 1_000, **of_one)
    program.window("d", where=lambda event, at: event.value / 1_000 > at[limit], **of_one)
    of_one = {"source": source, "per_device": True, "uses": (limit,)}
    program.scan("e", scan=lambda at: scans.hysteresis(above=at[limit], below=1), **of_one)
    program.scan(
        "f", scan=lambda at: scans.held_for(lambda event: event.value > at[limit], 60), **of_one
    )
    lines = mixtures(program.plan(), {})
    where = ["where of window a", "where of window b", "scan e", "scan f"]
    assert [line.partition(":")[0] for line in lines] == (where if unit == "kW" else [])
    assert all(
        line.endswith(
            "parameter limit is in kW, and readings of power are in W; declare it with "
            'unit="W", or convert it'
        )
        for line in lines
    )


@pytest.mark.parametrize("scan", [scans.sessions(60), scans.top(3), scans.last(2)])
def test_a_scan_that_may_be_of_many_signals_is_not_named(scan):
    program = Program("doors")
    door = program.event("door", resolution="1")
    program.map(program.scan("s", source=door, scan=scan), lambda event: 1, "m", resolution="1")
    assert mixtures(program.plan(), {}) == []


def test_two_meters_of_one_device_are_told_apart_by_the_tag_that_the_program_asks_for():
    program = water(per_device=True)
    program.window(
        "by_meter", source="used", fold=folds.sum(), size_s=60, key=lambda e: e.tags["meter"]
    )
    (line,) = found_in(program)
    assert line == (
        "scan used: differences is of one signal, and without a key those of a device with "
        'several meter are one: write key=lambda event: event.tags["meter"]'
    )


def test_keys_of_the_scan_before_are_kept():
    def after(**arguments):
        program = water(scans.changes(), **ROOM, per_device=True)
        last = program.scan("held", source="used", scan=scans.debounce(5), **arguments)
        program.result(last)
        return found_in(program)

    (line,) = after(per_device=True)
    assert line == (
        "scan held: debounce is of one signal, and without a key all keys of used are one: write "
        "key=lambda event: event.key"
    )
    assert after(per_device=True, key=lambda event: event.key) == []


def test_several_events_of_one_scan_are_named():
    program = Program("both")
    a, b = (program.event(name, resolution="1") for name in "ab")
    program.result(program.scan("d", source=[a, b], scan=scans.differences(), per_device=True))
    (line,) = found_in(program)
    assert line == (
        "scan d: differences is of one signal, and without a key a and b are one: write "
        "key=lambda event: event.name"
    )


def two_units(**more):
    program = Program("units")
    warm = program.event("warm", resolution="0.1", unit="°C")
    hot = program.event("hot", resolution="0.1", unit="°F")
    last = program.declare_dynamic(BoundedLWWSet(bound=5), "last", **more)
    return program, warm, hot, last


def test_readings_of_two_units_in_one_set_are_named():
    program, warm, hot, last = two_units()
    program.collect(warm, into=last)
    program.collect(hot, into=last)
    program.fold(last, folds.mean(), "here")
    (line,) = found_in(program)
    assert line == (
        "variable last: its samples are of hot in °F and of warm in °C, as they were read; "
        "convert one in a handler, and say measures= for the unit that they have then"
    )


def handlers(program, warm, hot, last):
    @program.on_event(warm)
    def one(event, update):
        update(last, BoundedLWWSet.add, event.value, event.time_us)

    @program.on_event(hot)
    def other(event, update):
        update(last, BoundedLWWSet.add, (event.value - 32) / 1.8, event.time_us)

    program.fold(last, folds.mean(), "here")
    return program


def test_a_handler_that_may_convert_says_so_by_what_the_set_measures():
    assert len(found_in(handlers(*two_units()))) == 1
    assert found_in(handlers(*two_units(measures="warm"))) == []


def test_readings_of_two_units_in_one_stream_are_named_where_numbers_are_made_of_them():
    program, warm, hot, _ = two_units()
    program.window("mean", source=[warm, hot], fold=folds.mean(), size_s=60)
    program.window("many", source=[warm, hot], fold=folds.count(), size_s=60)
    (line,) = found_in(program)
    assert line == (
        "window mean: its readings are of warm in °C and of hot in °F, as they were read; convert "
        "one: program.map(hot, lambda event: .., resolution=)"
    )


def test_a_handler_that_writes_nothing_mixes_nothing():
    program, warm, hot, last = two_units()
    program.collect(warm, into=last)
    program.on_event(hot)(lambda event, update: None)
    program.fold(last, folds.mean(), "here")
    assert found_in(program) == []


@pytest.mark.parametrize("unit", ["°F", "°C", ""])
def test_a_level_in_another_unit_than_the_value_is_named(unit):
    program, warm, _, last = two_units()
    program.collect(warm, into=last)
    limit = program.parameter("limit", "80", unit=unit)
    fleet = program.fold_dynamic(program.fold(last, folds.max(), "here"), "fleet")
    program.alert("hot", fleet, above=limit)
    hour = program.window("hour", source=warm, fold=folds.count(), size_s=60)
    program.alert("many", hour, above=limit)
    found = [line for line in found_in(program) if line.startswith("alert")]
    assert found == (
        ["alert hot: parameter limit is in °F, and max of fleet is in °C"] if unit == "°F" else []
    )


@pytest.mark.parametrize(
    "scan", [scans.sessions(gap_s=60), scans.pattern(lambda event: event.value > 1, absent_s=60)]
)
@pytest.mark.parametrize(
    ("key", "found"),
    [(None, 1), (lambda event: event.key, 0), (lambda event: "", 0)],
    ids=("none", "its key", "all are one"),
)
def test_a_scan_that_waits_behind_one_with_keys_has_keys_as_well(scan, key, found):
    program = Program("doors")
    door = program.event("door", resolution="1")
    first = program.scan(
        "first", source=door, scan=scans.changes(), key=lambda e: e.tags["room"], per_device=True
    )
    program.scan("second", source=first, scan=scan, key=key, per_device=True)
    lines = [line for line in mixtures(program.plan(), {}) if line.startswith("scan second")]
    assert len(lines) == found
    assert all('or key=lambda event: "" if all are meant' in line for line in lines)
