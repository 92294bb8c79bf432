"""`check` says how many readings a partial has room for, before a device refuses one."""

import re

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Column, Fold, Op, Program, folds, scans
from lasp_edge.checking.reach import short_reaches
from lasp_edge.checking.room import room_of
from lasp_edge.examples import greenhouse, hothouse, machines, talk


class Cubes(Fold):
    name, parts, columns = "cubes", ("cubes",), (Column("cubes_q", Op.SUM),)

    def lift(self, value, time_us=0):
        return (value**3,)

    def lower(self, partial, resolution):
        return {"cubes": partial[0]}


def room(fold, size_s=60, **event):
    program = Program("room")
    program.window("w", source=program.event("x", **event), fold=fold, size_s=size_s)
    return room_of(program.plan())


def test_a_sum_of_squares_that_few_readings_fill_names_the_step_that_has_room():
    found = room(folds.stddev(), resolution="1", least=0, most=1_500_000_000)
    (line,) = found.doubts
    assert "room for 4 readings of 1500000000 steps (column squares_q)" in line
    assert 1_500_000_000**2 * 4 < 2**63 <= 1_500_000_000**2 * 5
    assert "event('x', resolution=\"100\"), or a smaller most=" in line
    assert room(folds.stddev(), resolution="100", least=0, most=1_500_000_000).doubts == []
    assert 10**3 * 15_000_000**2 < 2**63 <= 10**3 * 150_000_000**2
    assert found.wrong == found.notes == []


def test_a_reading_that_its_event_allows_and_no_column_takes_is_no_doubt():
    (line,) = room(Cubes(), resolution="0.001", least=0, most=1_700).wrong
    assert "room for 0 readings of 1700000 steps (column cubes_q)" in line
    (line,) = room(Cubes(), resolution="1", least=-200_000, most=0).doubts
    assert "of -200000 steps" in line
    assert line.endswith("or a smaller least=")


@pytest.mark.parametrize("fold", [folds.sum(), folds.mean(), folds.max(), folds.quantile(0.5)])
def test_whatever_a_sensor_gives_has_room_in_a_sum(fold):
    assert room(fold, resolution="1") == ([], [], [])


def test_a_longer_pane_needs_more_room():
    event = {"resolution": "1", "least": 0, "most": 10**7}
    assert room(folds.variance(), **event) == ([], [], [])
    (line,) = room(folds.variance(), size_s=86_400 * 7, **event).doubts
    assert f"room for {2**63 // 10**14:,} readings of 10000000 steps" in line


def test_without_a_range_it_is_said_up_to_which_value_enough_readings_fit():
    inner = folds.struct(sd=folds.stddev(), total=folds.sum())
    wrong, doubts, (note,) = room(inner, resolution="0.5")
    assert (wrong, doubts) == ([], [])
    assert note.startswith("window w, part sd: one pane of a device has room for 1,000 readings ")
    assert "within 10,000,000 steps (x up to 5000000)" in note
    line = folds.regression(lambda e: e.time_us, lambda e: e.value, steps=("1", "1"))
    assert room(line, resolution="1", least=0, most=5) == ([], [], [])  # fields can be anything


@pytest.mark.parametrize(("bound", "lines"), [(4, 0), (5, 1)])
def test_a_set_needs_room_for_as_many_as_it_keeps(bound, lines):
    program = Program("room")
    event = program.event("x", resolution="1", least=0, most=1_500_000_000)
    samples = program.declare_dynamic(BoundedLWWSet(bound=bound), "samples")
    program.collect(event, into=samples)
    program.fold(samples, folds.stddev(), "sd")
    assert len(room_of(program.plan()).doubts) == lines


@pytest.mark.parametrize("example", [greenhouse, hothouse, machines, talk])
def test_sound_programs_are_silent(example):
    assert room_of(example.program.plan()) == ([], [], [])


@pytest.mark.parametrize(
    ("event", "reach"),
    [
        ({"resolution": "1e-6", "unit": "Pa"}, 'end at 2,147 Pa.*resolution="0.0001"'),
        ({"resolution": "1e-6", "unit": "Pa", "least": 0, "most": 2_000}, ""),
        ({"resolution": "1e-6", "unit": "°C"}, ""),
        ({"resolution": "1e-6"}, "end at 2,147, which"),
        ({"resolution": "0.01"}, ""),
        ({"resolution": "1", "unit": "B"}, 'end at 2,147,483,648 B.*resolution="1000"'),
        ({"text": True}, ""),
    ],
)
def test_a_step_too_fine_for_its_unit_is_said_with_how_far_it_reaches(event, reach):
    program = Program("reach")
    program.event("x", **event)
    lines = short_reaches(program.plan())
    assert bool(lines) == bool(reach)
    assert not reach or re.search(reach, lines[0])


@pytest.mark.parametrize(
    ("fold", "size_s", "is_named"),
    [("max", 3_600, True), ("max", 60, False), ("sum", 3_600, False)],
)
def test_a_long_pane_of_outputs_has_room_for_so_many_values(fold, size_s, is_named):
    program = Program("room")
    used = program.scan(
        "used", source=program.event("m3"), scan=scans.differences(), per_device=True
    )
    program.window("hour", source=used, fold=getattr(folds, fold)(), size_s=size_s)
    notes = [line for line in room_of(program.plan()).notes if "different values" in line]
    assert [" 2,500 different values" in line for line in notes] == [True] * is_named
