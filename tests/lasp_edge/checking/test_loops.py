"""Functions that are made in a loop, and what they see of it."""

import importlib
import sys

import pytest

from lasp_edge import Program, folds, scans
from lasp_edge.checking.loops import captured, rebound
from lasp_edge.checking.whole import all_tried
from lasp_edge.testing import check_program, replay

ROOMS = ("attic", "cellar", "hall")
START_S = 1_764_028_800


def house():
    program = Program("house")
    return program, program.event("warm", resolution="0.1")


def by_where():
    program, warm = house()
    for room in ROOMS:
        program.window(
            f"in_{room}",
            source=warm,
            fold=folds.count(),
            size_s=60,
            where=lambda event: event.tags["room"] == room,  # noqa: B023 - that is the mistake
        )
    return program


def by_a_name_that_follows_from_it():
    program, warm = house()
    for room in ROOMS:
        short = room[0]
        program.map(warm, lambda event: event.value + len(short), f"m_{room}")  # noqa: B023
    return program


def by_a_handler():
    program, warm = house()
    for number in range(2):

        @program.on_event(warm)
        def seen(event, update):
            print(number)  # noqa: B023

    return program


def in_a_comprehension():
    program, warm = house()
    [program.map(warm, lambda event: event.value * by, f"by_{by}") for by in (2, 3)]  # noqa: B023
    return program


def of_a_scan():
    program, warm = house()
    for by in (2, 3):
        scan = scans.running(lambda state, event: state + event.value * by)  # noqa: B023
        program.scan(f"by_{by}", source=warm, scan=scan, per_device=True)
    return program


MISTAKES = {
    by_where: ("where of window in_attic", "room is 'hall'", "room=room"),
    by_a_name_that_follows_from_it: ("map m_attic", "short is 'h'", "short=short"),
    by_a_handler: ("handler of event warm", "number is 1", "number=number"),
    in_a_comprehension: ("map by_2", "by is 3", "by=by"),
    of_a_scan: ("scan by_2", "by is 3", "by=by"),
}


@pytest.mark.parametrize("made", MISTAKES, ids=lambda made: made.__name__)
def test_a_function_that_sees_the_last_turn_of_its_loop_is_found(made):
    what, value, write = MISTAKES[made]
    (line,) = captured(made().plan())
    assert line.startswith(what)
    assert f"made in a loop, and {value} in " in line
    assert f", {write}: .." in line


def test_a_program_with_such_a_function_is_refused():
    with pytest.raises(AssertionError, match="room is 'hall'"):
        check_program(by_where())


def is_in(room):
    return lambda event: event.tags["room"] == room


def counted_by(where_of):
    program, warm = house()
    for room in ROOMS:
        program.window(
            f"in_{room}", source=warm, fold=folds.count(), size_s=60, where=where_of(room)
        )
    return program


def by_default():
    program, warm = house()
    for room in ROOMS:
        program.window(
            f"in_{room}",
            source=warm,
            fold=folds.count(),
            size_s=60,
            where=lambda event, room=room: event.tags["room"] == room,
        )
    return program


TABLE = """
from crdts import GSet
from lasp_edge import Program, folds
program, rooms, tables = Program("house"), {}, {}
for room in ("attic", "cellar", "hall"):
    kind = program.event(room, resolution="1")
    rooms[room], tables[room] = program.declare(GSet(), f"of_{room}"), room

    @program.on_event(kind)
    def came(event, update, room=room):
        update(rooms[room], GSet.add, event.device)

warm = program.event("warm", resolution="0.1")
for room in tables:
    program.window(
        f"in_{room}", source=warm, fold=folds.count(), size_s=60,
        where=lambda event, room=room: event.tags["room"] == tables[room],
    )
"""


RIGHT = {"a function that makes it": lambda: counted_by(is_in), "a default": by_default}


@pytest.mark.parametrize("made", RIGHT)
def test_a_function_that_keeps_its_turn_is_right_and_counts(made):
    program = RIGHT[made]()
    assert captured(program.plan()) == []
    given = [("a", "warm", 20, START_S + n, {"room": room}) for n, room in enumerate(ROOMS)]
    found = replay(program, given)
    assert [found.window(f"in_{room}")[0]["count"] for room in ROOMS] == [1, 1, 1]
    tried = all_tried(program.plan())
    assert (tried.wrong, tried.doubts) == ([], []), "made-up readings are of these rooms"


def test_a_table_and_what_the_decorator_names_are_no_mistake(tmp_path, monkeypatch):
    (tmp_path / "planted_table.py").write_text(TABLE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "planted_table", raising=False)
    found = captured(importlib.import_module("planted_table").program.plan())
    monkeypatch.delitem(sys.modules, "planted_table")
    assert found == []


def test_what_is_the_same_in_all_turns_is_no_mistake():
    program, warm = house()
    limit = 20
    for room in ROOMS:
        least = 5
        program.window(
            f"in_{room}",
            source=warm,
            fold=folds.count(),
            size_s=60,
            key=lambda event: event.tags["room"],
            where=lambda event: limit > event.value > least,  # noqa: B023
        )
    assert captured(program.plan()) == []


def test_parameters_with_a_default_are_still_the_parameters():
    program, warm = house()
    limit = program.parameter("limit", "20")

    def where(event, at=None):
        return event.value > at[limit]

    program.window("w", source=warm, fold=folds.count(), size_s=60, where=where, uses=(limit,))
    found = replay(program, [("a", "warm", 20 + n, START_S + n) for n in range(3)])
    assert found.window("w")[0]["count"] == 2


MODULE = """
from lasp_edge import Program, folds
program = Program("oven")
warm = program.event("warm", resolution="0.1")
window = {{"source": warm, "fold": folds.count(), "size_s": 60}}
{first}
program.window("warm", **window, where=lambda event: event.value > LIMIT)
{second}
program.window("hot", **window, where=lambda event: event.value > LIMIT)
"""


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ("LIMIT = 20", "LIMIT = 30", 1),
        ("LIMIT = 20", "LIMIT += 10", 1),
        ("LIMIT = 20", "LIMIT = 20", 0),
        ("LIMIT = None", "LIMIT = 20", 0),
        ("LIMIT = 20", "def other():\n    LIMIT = 30", 0),
        ("LIMIT = 20\nLIMIT = 30", "", 0),
    ],
)
def test_a_global_that_is_bound_again_behind_a_function_is_named(
    tmp_path, monkeypatch, first, second, count
):
    text = MODULE.format(first=first, second=second)
    found = rebound(planted(text, tmp_path, monkeypatch))
    assert [line.partition(" (")[0] for line in found] == ["where of window warm"] * count
    assert all("names LIMIT, which line 8 binds again" in line for line in found)


CLASSES = """
from lasp_edge import Column, Fold, Op, Program, scans
class Above(scans.Scan):
    name, zero, limit, unused = "above", 0, 5, 1
    def step(self, state, event): return state + (event.value > self.limit), []
class Hot(Fold):
    name, parts, columns = "hot", ("n",), (Column("n", Op.SUM),)
    def __init__(self, level):
        self.level, self.parameters = level, f"{level}"
    def lift(self, value, time_us=0): return (int(value > self.level),)
    def lower(self, partial, resolution): return {"n": partial[0]}
program = Program("oven")
warm = program.event("warm", resolution="0.1")
hot, above = Hot(250), Above()
"""
SCAN = 'program.scan("s", source=warm, scan=Above(), per_device=True)'
WINDOW = 'program.window("w", source=warm, fold=hot, size_s=60)'


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ([SCAN, "Above.limit = 10"], "scan s asks for Above.limit, which is set to 10 when"),
        ([SCAN, "Above.limit += 5"], "scan s asks for Above.limit, which is set to 10 when"),
        ([WINDOW, "hot.level = 300"], "fold of window w asks for hot.level, which is set to 300"),
        (["hot.level = 300", WINDOW], ""),
        ([WINDOW, "hot = Hot(300)", "hot.level = 310"], ""),
        ([SCAN, "Above.unused = 2"], ""),
        ([SCAN, "Hot.limit = 3"], ""),
        ([SCAN, "def other():\n    Above.limit = 3"], ""),
    ],
)
def test_an_attribute_that_is_set_on_what_is_in_use_is_named(tmp_path, monkeypatch, lines, named):
    found = rebound(planted(CLASSES + "\n".join(lines), tmp_path, monkeypatch))
    assert len(found) == bool(named)
    assert all(line.startswith(named) for line in found)


def planted(text, tmp_path, monkeypatch):
    """Return the plan of a module with this text."""
    (tmp_path / "planted_oven.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "planted_oven", raising=False)
    plan = importlib.import_module("planted_oven").program.plan()
    monkeypatch.delitem(sys.modules, "planted_oven")
    return plan
