"""What a whole program does for few readings: for one value of a hundred, or on one day."""

import pytest

from lasp_edge import Program, folds, scans
from lasp_edge.checking.whole import all_tried

PRICES = dict.fromkeys([0, 1, 2, 3, 4, 5, 6, 8, 9, 10], 2)
SATURDAY = 2  # the epoch began on a Thursday


def parcels(value):
    program = Program("parcels")
    grams = program.event("grams", resolution="1", least=0, most=1_000)
    program.window("income", source=grams, fold=folds.sum(), size_s=60, value=value)
    return program.plan()


def on_saturdays(event):
    return event.valeu if event.time_us // 86_400_000_000 % 7 == SATURDAY else event.value


@pytest.mark.parametrize(
    ("value", "raised"),
    [(lambda event: PRICES[int(event.value // 100)], "KeyError: 7"), (on_saturdays, "valeu")],
)
def test_what_fails_for_few_readings_is_found(value, raised):
    (failure,) = all_tried(parcels(value)).wrong
    assert raised in failure


def test_a_stream_is_reached_where_a_window_behind_it_has_rows():
    """No blade goes up by itself; in the run of the whole, with its gaps, there is one."""
    program = Program("salt")
    blade = program.event("blade", resolution="1", least=0, most=1)
    grams = program.event("grams", resolution="0.1", least=0, most=60)
    nothing = scans.pattern(
        lambda event: event.name == "blade" and event.value == 1,
        lambda event: event.name == "grams" and event.value < 5,
        within_s=120,
        absent_s=60,
    )
    found = program.scan("nothing", source=[blade, grams], scan=nothing, per_device=True)
    counted = program.map(found, lambda event: 1, "counted", resolution="1")
    program.window("times", source=counted, fold=folds.count(), size_s=3_600)
    assert all_tried(program.plan()).doubts == []
