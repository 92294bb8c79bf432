"""Values beside handlers that act: compared with the oracle, or said that nobody can."""

import pytest

from crdts import BoundedLWWSet, GSet
from lasp_edge import Program, folds, scans
from lasp_edge.testing import replay

START_S = 1_764_028_800
READINGS = [
    *((device, "warm", 20 + n, START_S + n) for n in range(4) for device in ("a", "b")),
    ("a", "door", 7, START_S + 9),
]


class Rooms:
    """A program whose value `fleet` no handler writes; `echoed` is of what handlers write."""

    def __init__(self):
        self.program = program = Program("rooms")
        self.warm = program.event("warm", resolution="0.1", unit="°C")
        self.door = program.event("door", resolution="0.1")
        last, echo = (
            program.declare_dynamic(BoundedLWWSet(bound=3), name, measures=self.warm)
            for name in ("last", "echo")
        )
        program.collect(self.warm, into=last)
        self.fleet = program.fold_dynamic(program.fold(last, folds.mean(), "here"), "fleet")
        program.fold_dynamic(program.fold(echo, folds.mean(), "echo_here"), "echoed")
        self.steps = program.result(
            program.scan("steps", source=self.warm, scan=scans.differences(), per_device=True)
        )
        self.echo, self.notes = echo, program.declare(GSet(), "notes")


def of_readings(rooms, echo, notes):
    @rooms.program.on_value(rooms.fleet)
    def told(value, update):
        update(notes, GSet.add, f"{value.number}")

    @rooms.program.on_result(rooms.steps)
    def stepped(row, update):
        update(notes, GSet.add, f"{row.time_us}")

    @rooms.program.on_event(rooms.door)
    def opened(event, update):
        update(echo, BoundedLWWSet.add, event.value, event.time_us)


def of_a_value(rooms, echo, _notes):
    @rooms.program.on_value(rooms.fleet, above=21)
    def hot(value, update):
        update(echo, BoundedLWWSet.add, value.number, 0)


def of_rows(rooms, echo, _notes):
    @rooms.program.on_result(rooms.steps)
    def stepped(row, update):
        update(echo, BoundedLWWSet.add, row.parts["difference"], row.time_us)


def of_what_is_read(rooms, echo, _notes):
    fleet = rooms.fleet

    @rooms.program.on_event(rooms.door)
    def compared(event, update):
        mean = update.value(fleet)
        update(echo, BoundedLWWSet.add, mean.number if mean else 0, event.time_us)


def compared_with(handlers):
    rooms = Rooms()
    handlers(rooms, rooms.echo, rooms.notes)
    return replay(rooms.program, READINGS).compared


def test_values_that_no_acting_handler_writes_are_compared():
    compared = compared_with(of_readings)
    assert "8 of 8 values are what the oracle says" in compared, "four, on two devices"
    assert not [line for line in compared if line.startswith("not compared: value")]


@pytest.mark.parametrize(
    ("handlers", "why"),
    [
        (of_a_value, "fleet (on_value) writes its samples"),
        (of_rows, "steps (on_result) writes its samples"),
        (of_what_is_read, "a handler of door reads what a device knows at that time"),
    ],
)
def test_a_value_of_what_an_acting_handler_writes_is_not_compared_and_all_others_are(handlers, why):
    compared = compared_with(handlers)
    assert f"not compared: value echoed: {why}" in compared
    assert "4 of 4 values are what the oracle says" in compared, "here and fleet, on two devices"
