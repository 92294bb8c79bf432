"""Comparisons that do not do what they say are named, and those that do are not."""

from itertools import count

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds, scans
from lasp_edge.checking.comparisons import always_true, compared
from lasp_edge.checking.handlers import doubled
from lasp_edge.checking.mixtures import mixtures
from lasp_edge.checking.part_names import exchanged


def counted(where=None, value=None, **event):
    """Return a plan with a window of an event; the event has steps of 0.1, from -40 to 60."""
    program = Program("house")
    given = event or {"resolution": "0.1", "least": -40, "most": 60}
    warm = program.event("warm", **given)
    window = {} if where is None else {"where": where}
    window |= {} if value is None else {"value": value}
    program.window("w", source=warm, fold=folds.max(), size_s=60, **window)
    return program.plan()


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (lambda event: event.value == "on", "never equal a text"),
        (lambda event: event.value in ("on", "open"), "never equal a text"),
        (lambda event: event.value in (0, 1), None),
        (lambda event: event.tags["mode"] == "on", None),
        (lambda event: event.tags["floor"] >= "3", "'10' < '3'"),
        (lambda event: event.tags.get("floor", "0") < "3", "'10' < '3'"),
        (lambda event: event.tags["day"] >= "2025-11-25", None),
        (lambda event: int(event.tags["floor"]) >= 3, None),
        (lambda event: event.value % 1 == 0.3, "round(event.value / 0.1)"),
        (lambda event: event.value - 0.1 == 0.2, "round(event.value / 0.1)"),
        (lambda event: event.value % 1 == 0.5, None),
        (lambda event: event.value % 10 == 0, None),
        (lambda event: round(event.value * 10) % 10 == 3, None),
        (lambda event: event.value == 21.5, None),
        (lambda event: event.value in range(18, 27), "18 <= event.value < 27"),
        (lambda event: round(event.value) in range(18, 27), None),
        (lambda event: max(event.value, 2) == 2, None),
    ],
    ids=count(),
)
def test_a_comparison_that_does_not_do_what_it_says_is_named(where, why):
    lines = compared(counted(where))
    assert (len(lines), why is None or why in lines[0]) == (why is not None, True)
    assert all(line.startswith("where of window w (") for line in lines)


def test_the_greatest_of_texts_is_no_number():
    text = {"text": True, "examples": ["3;10;9"]}
    (line,) = compared(counted(value=lambda e: int(max(e.value.split(";"))), **text))
    assert "write" not in line
    assert "map(int, ..)" in line
    assert not compared(counted(value=lambda e: max(map(int, e.value.split(";"))), **text))
    assert not compared(counted(lambda e: e.value == "on", lambda e: len(e.value), **text))


def test_a_handler_that_takes_a_switch_for_a_text_is_named():
    program = Program("house")
    door = program.event("door", resolution="1", least=0, most=1)
    program.on_event(door)(lambda event, update: event.value == "on")
    (line,) = compared(program.plan())
    assert line.startswith("handler of event door (")


@pytest.mark.parametrize(
    ("where", "event", "is_named"),
    [
        (lambda event: event.value < 61, {}, True),
        (lambda event: event.value != 21.35, {}, True),
        (lambda event: -40 <= event.value <= 60, {}, False),  # a guard
        (lambda event: event.value < 60, {}, False),
        (lambda event: event.value > -273, {"resolution": "0.1"}, False),
        (lambda event: event.value < 61 or event.tags["room"] == "attic", {}, False),
        (lambda event: event.value < 61 and event.device != "a", {}, False),
        (lambda event, limit=61: event.value < limit, {}, True),
        (lambda event, at: event.value < 61, {}, False),
        (lambda event: round(event.value) % 7 < 8, {}, True),
    ],
    ids=count(),
)
def test_a_where_that_every_reading_passes_is_named(where, event, is_named):
    assert len(always_true(counted(where, **event))) == is_named


def test_a_filter_that_every_reading_passes_is_named():
    program = Program("house")
    warm = program.event("warm", resolution="0.1", least=-40, most=60)
    program.result(program.filter(warm, lambda event: event.value < 70, "some"))
    (line,) = always_true(program.plan())
    assert line.startswith("filter some holds for every reading that there can be (warm is -40 to")


def test_a_reading_that_comes_into_a_set_twice_is_named():
    program = Program("house")
    warm = program.event("warm", resolution="0.1")
    last, other = (program.declare_dynamic(BoundedLWWSet(bound=5), name) for name in "ab")
    program.collect(warm, into=last)

    @program.on_event(warm)
    def came(event, update):
        update(other, BoundedLWWSet.add, event.value, event.time_us)

    assert doubled(program.plan()) == []

    @program.on_event(warm)
    def again(event, update):
        update(last, BoundedLWWSet.add, event.value, event.time_us)

    (line,) = doubled(program.plan())
    assert (
        line == "each reading of warm comes into a twice: by collect, and by its handler again; "
        "leave one out"
    )


@pytest.mark.parametrize(
    ("parts", "is_named"),
    [
        ({"humid": "1", "warm": "0.1"}, True),
        ({"warm": "0.1", "humid": "1"}, False),
        ({"a": "0.1", "b": "1"}, False),
        ({"humid": "1", "b": "1"}, True),
    ],
    ids=count(),
)
def test_parts_of_a_join_in_another_order_are_named(parts, is_named):
    program = Program("house")
    warm, humid = (program.event(name, resolution="0.1") for name in ("warm", "humid"))
    scan = scans.as_of(warm, humid, within_s=60)
    both = program.scan("both", source=[warm, humid], scan=scan, per_device=True)
    program.result(both, parts=parts)
    assert bool(exchanged(program.plan())) == is_named


@pytest.mark.parametrize(("unit", "is_named"), [("min", True), ("s", False), ("", False)])
def test_a_span_of_time_in_another_unit_than_seconds_is_named(unit, is_named):
    program = Program("house")
    warm = program.event("warm", resolution="0.1")
    span, gap = (program.parameter(name, "5", unit=unit) for name in ("span", "gap"))
    program.window("w", source=warm, fold=folds.max(), size_s=span)
    program.result(
        program.scan(
            "s",
            source=warm,
            scan=lambda at: scans.sessions(gap_s=at[gap]),
            per_device=True,
            uses=(gap,),
        )
    )
    lines = [line for line in mixtures(program.plan(), {}) if "in seconds" in line]
    named = ["window w: its size is in seconds", "scan s: gap_s is in seconds"]
    assert [line.partition(",")[0] for line in lines] == named * is_named
