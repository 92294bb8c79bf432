"""Made-up devices are called as the functions of a program ask for; others are made up."""

import pytest

from lasp_edge import Program, folds, scans
from lasp_edge.checking.readings import devices_of
from lasp_edge.checking.whole import all_tried
from lasp_edge.testing import check_program

ROOMS = {"pi-kitchen": "kitchen", "pi-attic": "attic"}


def keyed_by(key, **arguments):
    program = Program("house")
    warm = program.event("warm", resolution="0.1")
    program.window("w", source=warm, fold=folds.mean(), size_s=60, key=key, **arguments)
    steps = program.scan("steps", source=warm, key=key, scan=scans.differences(), per_device=True)
    program.result(steps)
    return program


def test_a_table_of_devices_is_one_that_check_can_read():
    program = keyed_by(lambda event: ROOMS[event.device])
    assert devices_of(program.plan()) == tuple(ROOMS)
    check_program(program)


def test_a_device_that_a_function_asks_for_is_there_and_another_one_too():
    program = keyed_by(None, where=lambda event: event.device == "pi-attic")
    assert devices_of(program.plan()) == ("pi-attic", "made-up-1")
    found = all_tried(program.plan())
    assert (found.wrong, found.doubts) == ([], [])


OTHERS = {
    "of a format": lambda event: f"{event.device} / {event.name}",
    "of another table": lambda event: ROOMS.get(event.name, ""),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_texts_are_no_devices(case):
    assert devices_of(keyed_by(OTHERS[case]).plan()) == ("made-up-1", "made-up-2")


AREAS = {"attic": 12.5, "hall": 20.0}


def test_a_table_of_tags_is_one_that_check_can_read():
    program = Program("house")
    power = program.event("power", resolution="0.1", unit="W")
    program.window(
        "per_m2",
        source=power,
        fold=folds.mean(),
        size_s=60,
        key=lambda event: event.tags["room"],
        value=lambda event: event.value / AREAS[event.tags["room"]],
    )
    steps = program.map(power, lambda event: AREAS[event.tags["room"]], "area", resolution="0.1")
    program.result(steps)
    check_program(program)
    assert all_tried(program.plan()).doubts == []


def test_an_optional_tag_stays_optional():
    program = Program("house")
    power = program.event("power", resolution="0.1", unit="W")
    kinds = {"heat": 1}
    program.result(
        program.map(power, lambda e: kinds.get(e.tags.get("kind", ""), 0), "kind", resolution="1")
    )
    found = all_tried(program.plan())
    assert (found.wrong, found.doubts, found.tags["power"]) == ([], [], {})
