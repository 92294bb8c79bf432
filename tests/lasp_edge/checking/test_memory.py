"""`check` finds what a function remembers from call to call, whatever readings it is given."""

import functools
import itertools
from collections import Counter

import pytest

from lasp_edge import Column, Fold, Op, Program, folds, scans
from lasp_edge.checking.memory import memories, memories_of
from lasp_edge.examples import greenhouse, hothouse, machines, talk
from lasp_edge.testing import check_program

USED, SEEN, ROOMS, TICKETS, LAST = [0], {}, set(), itertools.count(), None
FACTORS = {"attic": 2}


class Ticks:
    total = 0

    def tick(self):
        self.total += 1
        return self.total


TICKS = Ticks()


def counted(event):
    USED[0] += 1
    return USED[0] < 10_000


def counted_by_room(event):
    SEEN[event.tags["room"]] = SEEN.get(event.tags["room"], 0) + 1
    return SEEN[event.tags["room"]] < 10_000


def switched(event):
    USED[0] = 30 if event.value > 9 else 60
    return True


def last(event):
    global LAST
    before, LAST = LAST, event.value
    return before


def added(event):
    ROOMS.add(event.tags["room"])
    return len(ROOMS) < 10_000


def by_default(event, seen=[]):  # noqa: B006
    seen.append(event.value)
    return len(seen) < 10_000


def on_class(event):
    Ticks.total += 1
    return Ticks.total < 10_000


def helped(event):
    return counted(event)


def made():
    number = 0

    def numbered(event):
        nonlocal number
        number += 1
        return number < 10_000

    return numbered


CERTAIN = [
    (counted, "USED[0] += 1"),
    (counted_by_room, "SEEN[event.tags['room']] = SEEN.get(event.tags['room'], 0) + 1"),
    (switched, "USED[0] = 30 if event.value > 9 else 60"),
    (last, "before, LAST = (LAST, event.value)"),
    (added, "ROOMS.add(event.tags['room'])"),
    (by_default, "seen.append(event.value)"),
    (on_class, "Ticks.total += 1"),
    (helped, "USED[0] += 1"),
    (made(), "number += 1"),
    (lambda event: next(TICKETS) < 10_000, "next(TICKETS)"),
    (lambda event: TICKS.tick() < 10_000, "self.total += 1"),
]


@pytest.mark.parametrize(
    ("function", "statement"), CERTAIN, ids=[each[0].__qualname__ + each[1] for each in CERTAIN]
)
def test_what_a_function_remembers_is_found_with_its_place(function, statement):
    (found,) = memories(function)
    assert (found.text, found.is_certain) == (statement, True)
    assert f"{__file__}:"[-30:] in found.place + ":"


def looked_up(event):
    if event.value not in SEEN:
        SEEN[event.value] = str(event.value)
    return SEEN[event.value]


def set_once(event):
    global LAST  # noqa: PLW0603
    if LAST is None:
        LAST = 5
    return event.value * LAST


@pytest.mark.parametrize("function", [looked_up, set_once])
def test_a_memo_is_a_doubt_alone(function):
    (found,) = memories(function)
    assert not found.is_certain


@functools.cache
def remembered(value):
    return value + 1


def nested(event):
    words = []

    def add(word):
        nonlocal words
        words = [*words, word]
        words[0] = word

    add(event.value)
    return words


class Words:
    def __init__(self):
        self.words = []

    def add(self, word):
        self.words.append(word)


def locally(event):
    counts, words, numbers = Counter(), Words(), iter([1, 2])
    counts[event.value] += 1
    counts.update([event.value])
    words.add(event.value)
    words.last = next(numbers)
    ROOMS.union([event.value]), FACTORS.get("attic"), next(iter(FACTORS))
    for USED in counts:  # noqa: N806
        USED.total = 1
    return remembered(event.value)


@pytest.mark.parametrize("function", [nested, locally, Words])
def test_what_lives_no_longer_than_the_call_is_no_memory(function):
    assert list(memories(function)) == []


class Nth(scans.Scan):
    name, parts, zero = "nth", {"n": "1"}, 0

    def __init__(self):
        self.n = 0

    def step(self, state, event):
        self.n += 1
        return state + 1, [self.n if self.n > 10_000 else state + 1]


class Growing(Fold):
    name, parts, columns = "growing", ("n",), (Column("n", Op.SUM),)

    def lift(self, value, time_us=0):
        TICKS.total = TICKS.total + value
        return (value,)

    def lower(self, partial, resolution):
        return {"n": partial[0]}


@pytest.fixture
def program():
    found = Program("remembering")
    event = found.event("x", resolution="1")
    found.window("w", source=event, fold=Growing(), size_s=60, where=counted)
    found.result(found.scan("nth", source=event, scan=Nth(), per_device=True))
    return found


def test_methods_of_scans_and_folds_are_looked_at_and_handlers_that_act_are_not(program):
    samples = program.window("n", source="x", fold=folds.count(), size_s=60)
    program.on_result("nth")(lambda row, update: ROOMS.add(row.key))
    certain, possible = memories_of(program.plan())
    assert [line.partition(" (")[0] for line in certain] == [
        "where of window w remembers: USED[0] += 1",
        "scan nth remembers: self.n += 1",
        "fold of window w remembers: TICKS.total = TICKS.total + value",
    ]
    assert (possible, samples.name) == ([], "n")
    with pytest.raises(AssertionError, match=r"scan nth remembers: self\.n \+= 1"):
        check_program(program)


@pytest.mark.parametrize("example", [greenhouse, hothouse, machines, talk])
def test_sound_programs_are_silent(example):
    assert memories_of(example.program.plan()) == ([], [])
