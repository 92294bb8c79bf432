"""`check` warns of a handler that gives a set steps, or counts what it has cut."""

from itertools import count

import pytest

from crdts import BoundedLWWSet, Counter, GCounter, GSet
from lasp_edge import Program
from lasp_edge.checking.handled import misread


def handled(given, bottom, mutator, resolution="0.1", **event):
    """Return the lines for a handler that gives a variable what a function makes of a reading."""
    program = Program("garden")
    rain = program.event("rain", resolution=resolution, **event)
    declare = program.declare_dynamic if isinstance(bottom, BoundedLWWSet) else program.declare
    made = declare(bottom, "made")

    @program.on_event(rain)
    def fell(event, update):
        more = (event.time_us,) if isinstance(bottom, BoundedLWWSet) else ()
        if event.value > 0:
            update(made, mutator, given(event.value), *more)

    return misread(program.plan())


@pytest.mark.parametrize(
    ("given", "resolution", "is_named"),
    [
        (lambda value: round(value * 10), "0.1", True),
        (lambda value: value * 10, "0.1", True),
        (lambda value: value / 0.1, "0.1", True),
        (lambda value: value, "0.1", False),
        (lambda value: value, "1", False),
        (lambda value: value * 10, "0.01", False),
        (lambda value: value * 1.8 + 32, "0.1", False),
        (lambda value: 7, "0.1", False),
    ],
    ids=count(),
)
@pytest.mark.parametrize("event", [{}, {"least": 0, "most": 60}])
def test_samples_in_steps_are_named(given, resolution, is_named, event):
    lines = handled(given, BoundedLWWSet(bound=5), BoundedLWWSet.add, resolution, **event)
    assert len(lines) == is_named
    assert all("handler fell of event rain adds 2 to made for a reading of 0.2" in e for e in lines)


@pytest.mark.parametrize(
    ("given", "resolution", "is_named"),
    [
        (int, "0.1", True),
        (round, "0.5", True),
        (lambda value: round(value * 10), "0.1", False),
        (lambda value: 1, "0.1", False),
        (int, "1", False),
        (int, "5", False),
    ],
    ids=count(),
)
@pytest.mark.parametrize("counter", [Counter, GCounter])
def test_a_count_of_what_is_cut_is_named(given, resolution, is_named, counter):
    lines = handled(given, counter(), counter.increment, resolution, least=0, most=100)
    assert len(lines) == is_named
    assert all(f"count steps: round(event.value / {resolution})" in line for line in lines)


def test_what_is_kept_in_a_set_may_be_whole():
    assert handled(int, GSet(), GSet.add) == []


def test_a_handler_that_fails_is_found_elsewhere():
    assert handled(lambda value: value["x"], GSet(), GSet.add) == []


@pytest.mark.parametrize(
    ("given", "is_named"),
    [
        (lambda event: event.tags.get("room"), True),
        (lambda event: event.tags.get("room", "none"), False),
        (lambda event: event.tags["room"], False),
        (lambda event: event.value, False),
    ],
    ids=count(),
)
@pytest.mark.parametrize("text", [False, True])
def test_a_handler_that_adds_none_where_a_tag_is_not_there_is_named(given, is_named, text):
    program = Program("doors")
    kind = {"text": True} if text else {"resolution": "0.1"}
    door, seen = program.event("door", **kind), program.declare(GSet(), "seen")

    @program.on_event(door)
    def came(event, update):
        update(seen, GSet.add, given(event))

    lines = misread(program.plan())
    assert len(lines) == is_named
    assert all("handler came of event door adds None to seen" in line for line in lines)
