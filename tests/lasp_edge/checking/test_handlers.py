"""`check` finds functions that cannot be called, and says who reads what the fleet is worth."""

from functools import partial

import pytest

from crdts import BoundedLWWSet, Counter, GSet
from lasp_edge import Program, folds
from lasp_edge.checking.handlers import (
    feeding,
    fleet_readers,
    mapped_beside,
    recounting,
    times_as_values,
    uncallable,
    unfilled,
    unread,
    unstepped,
    unused,
    valueless,
)
from lasp_edge.dataflow import cardinality
from lasp_edge.examples import machines
from lasp_edge.examples.greenhouse import program as greenhouse
from lasp_edge.testing import check_program
from tests.lasp_edge.support_programs import averaged


@pytest.fixture
def house():
    program = averaged()
    program.seen = program.declare(GSet(), "seen")
    return program


def test_a_handler_that_exchanges_value_and_time_is_named(house):
    samples = house.declare_dynamic(BoundedLWWSet(bound=9), "last")

    @house.on_event("temperature")
    def right(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)
        update(samples, BoundedLWWSet.add, event.time_us - event.value, event.time_us)

    assert times_as_values(house.plan()) == []

    @house.on_event("temperature")
    def wrong(event, update):
        update(samples, BoundedLWWSet.add, event.time_us, event.value)

    (line,) = times_as_values(house.plan())
    assert line.startswith("handler wrong of event temperature exchanges value and time (")
    assert line.endswith("write update(samples, BoundedLWWSet.add, event.value, event.time_us)")


@pytest.mark.parametrize(
    ("key", "operator", "is_named"),
    [
        (None, "map", True),
        (lambda event: event.tags["room"], "map", True),
        (lambda event: event.name, "map", False),
        (None, "filter", False),  # a reading that is in a filter is one of its own
    ],
)
def test_a_window_that_a_reading_comes_into_as_it_is_and_by_a_map_is_named(key, operator, is_named):
    program = Program("attic")
    warm = program.event("warm", resolution="0.1", unit="°C")
    made = {
        "map": lambda: program.map(warm, lambda event: event.value, "made", resolution="0.1"),
        "filter": lambda: program.filter(warm, lambda event: event.value > 3, "made"),
    }[operator]()
    window = {"source": [warm, made], "fold": folds.mean(), "size_s": 60}
    program.window("w", **window, **({} if key is None else {"key": key}))
    program.window("only", source=[made], fold=folds.mean(), size_s=60)
    assert [line.partition(":")[0] for line in mapped_beside(program.plan())] == [
        "window w"
    ] * is_named


def test_functions_that_can_be_called_are_no_news(house):
    house.on_event("temperature")(lambda event, update: None)
    house.on_event("temperature")(lambda *arguments: None)
    house.on_event("temperature")(partial(lambda more, event, update: None, 1))
    house.on_value("everywhere")(print)
    assert uncallable(house.plan()) == uncallable(greenhouse.plan()) == []


@pytest.mark.parametrize(
    ("declare", "text"),
    [
        (
            lambda p: p.on_event("temperature")(lambda event: None),
            "handler of event temperature: <lambda>(event) is called as (event, update): too many",
        ),
        (
            lambda p: p.on_value("everywhere")(lambda value, update, more: None),
            "on_value of everywhere: <lambda>(value, update, more) is called as (value, update): ",
        ),
        (
            lambda p: p.on_threshold(p.seen)(lambda value: None),
            "on_threshold of seen: <lambda>(value) is called as (value, update): too many",
        ),
        (
            lambda p: p.window(
                "w", source="temperature", fold=folds.mean(), size_s=1, key=lambda: "a"
            ),
            "key of window w: <lambda>() is called as (event): too many positional arguments",
        ),
        (
            lambda p: p.map(p.seen, lambda: 1, "images"),
            "function of images: <lambda>() is called as (element): too many positional arguments",
        ),
    ],
)
def test_a_function_that_takes_something_else_is_named(house, declare, text):
    declare(house)
    (line,) = uncallable(house.plan())
    assert line.startswith(text)
    with pytest.raises(AssertionError, match="is called as"):
        check_program(house)


def test_a_handler_that_reads_the_fleets_value_is_named(house):
    @house.on_event("temperature")
    def compared(event, update):
        mean = update.value(house.everywhere)
        if mean and event.value > mean.number + 2:
            update(house.seen, GSet.add, event.tags["room"])

    (line,) = fleet_readers(house.plan())
    assert line.startswith("handlers of event temperature name everywhere: ")
    assert house.plan().reads == {"temperature": ("everywhere",)}


def test_a_handler_that_counts_what_comes_again_is_named(house):
    counted = house.declare(Counter(), "counted")
    row = house.result(house.map("temperature", lambda event: event.value, "m", resolution="1"))

    @house.on_event("temperature")
    def read(event, update):
        update(counted, Counter.increment)
        update(house.seen, GSet.add, str(event.value))

    house.on_result(row)(lambda row, update: update(house.seen, GSet.add, str(row.time_us)))
    house.on_threshold(house.seen, cardinality(3))(lambda value, update: None)
    house.on_result(row)(lambda row, update: row.revision or update(counted, Counter.increment))
    assert recounting(house.plan()) == []
    house.on_result(row)(lambda row, update: update(counted, Counter.increment))
    house.on_threshold(house.seen, cardinality(3))(lambda _, update: count(update))

    def count(update):
        update(counted, Counter.decrement)

    house.on_value(house.everywhere, above=25)(lambda _, update: count(update))
    house.on_value(house.here, above=25)(lambda _, update: count(update))
    late, again, everywhere = recounting(house.plan())
    assert late.startswith("on_result of m counts in counted, and runs again for a row that a late")
    assert again.startswith("on_threshold of seen counts in counted, and runs on each device and")
    assert everywhere.startswith(
        "on_value of everywhere counts in counted, and runs on each device"
    )
    assert again.endswith(
        "that counts more than once; add to a set, such as a GSet, whose size is the count"
    )


def test_a_variable_that_nothing_fills_is_named_until_something_does():
    program = Program("p")
    temperature = program.event("temperature")
    last = program.declare_dynamic(BoundedLWWSet(bound=5), "last")
    program.fold(last, folds.mean(), "here")
    (line,) = unfilled(program.plan())
    assert line.startswith("nothing fills variable last, so its folds have no value: program.coll")
    program.collect(temperature, into=last)
    assert unfilled(program.plan()) == []


def test_an_event_without_a_step_is_named_and_one_of_whole_numbers_is_not():
    program = Program("p")
    program.event("temperature", unit="°C")
    program.event("door", resolution="1")
    program.event("note", text=True)
    (line,) = unstepped(program.plan())
    assert line.startswith("readings of temperature count as whole numbers, 21.4 as 21: event('tem")


def test_an_event_and_a_variable_that_nothing_has_to_do_with_are_named():
    program = Program("copied")
    inner, outer = program.event("inner"), program.event("outer")
    seen, never = program.declare(GSet(), "seen"), program.declare(GSet(), "never")
    program.window("inner_m", source=inner, fold=folds.mean(), size_s=60)
    program.window("outer_m", source=inner, fold=folds.mean(), size_s=60)
    program.union(seen, never, "both")
    program.on_value(averaged_in(program))(lambda value, update: update(seen, GSet.add, "x"))
    assert [line.partition(":")[0] for line in unused(program.plan())] == [
        "nothing reads event outer",
        "nothing updates never",
    ]
    program.on_event(outer)(lambda event, update: update(never, GSet.add, event.device))
    assert unused(program.plan()) == unused(machines.program.plan()) == []


def averaged_in(program):
    """Return a fold of an event of its own."""
    third = program.event("third")
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples", measures=third)
    program.collect(third, into=samples)
    return program.fold(samples, folds.mean(), "here")


def test_a_stream_of_which_nothing_is_made_is_named():
    program = Program("forgot")
    door = program.event("door", resolution="1")
    twice = program.map(door, lambda event: 2 * event.value, "twice", resolution="1")
    program.map(twice, lambda event: event.value + 1, "more", resolution="1")
    program.window(
        "w", source=door, fold=folds.sum(), size_s=60, where=lambda event: event.value > 0
    )
    (line,) = unread(program.plan())
    assert line.startswith("nothing is made of map more: program.result('more'), a window over it")
    program.result("more")
    assert unread(program.plan()) == unread(machines.program.plan()) == []


@pytest.mark.parametrize(
    ("event", "values"),
    [
        ({"least": 0, "most": 1}, "0 and 1"),
        ({"least": 0, "most": 1, "resolution": "1"}, ""),
        ({"least": 0, "most": 2, "resolution": "5"}, "0"),
        ({"least": 0, "most": 100}, ""),
        ({}, ""),
        ({"text": True}, ""),
    ],
)
def test_a_range_of_one_or_two_steps_is_named(event, values):
    program = Program("coarse")
    program.event("level", **event)
    lines = valueless(program.plan())
    assert bool(lines) == bool(values)
    assert not values or lines[0].startswith(f"readings of level can only be {values}: 0 to ")


@pytest.mark.parametrize(("target", "found"), [("last", 1), ("other", 0)])
def test_a_handler_that_feeds_its_own_value_is_named(target, found):
    program = Program("oven")
    heat = program.event("heat", resolution="1")
    sets = {n: program.declare_dynamic(BoundedLWWSet(bound=5), n) for n in ("last", "other")}
    program.collect(heat, into=sets["last"])
    fed = sets[target]

    @program.on_value(program.fold_dynamic(program.fold(sets["last"], folds.mean(), "here"), "all"))
    def again(value, update):
        update(fed, BoundedLWWSet.add, value.number + 1, 0)

    assert [line.partition(",")[0] for line in feeding(program.plan())] == [
        "on_value of all names last"
    ] * found
