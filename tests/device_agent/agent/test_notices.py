"""What is accepted and probably a mistake: each is a sentence while it holds."""

import pytest

from crdts import BoundedLWWSet
from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.progress import EMPTY_US
from device_agent.console.command.line import line_of
from device_agent.console.command.status import plainly, status_of
from lasp_edge import Program, folds
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import NOW_US, Device


def house():
    program = Program("house")
    heat = program.event("heat", resolution="0.1", unit="°C")
    program.event("power", resolution="0.1", unit="W")
    program.event("steps")
    mean = {"fold": folds.mean(), "size_s": 60}
    program.window("by_room", source=heat, key=lambda event: event.tags["room"], **mean)
    key = lambda event: event.tags["room"]  # noqa: E731 - both have it
    seen = program.declare_dynamic(BoundedLWWSet(bound=5), "seen", key=key)
    program.collect(heat, into=seen)
    program.fold(seen, folds.mean(), "here")
    return program.plan()


@pytest.fixture
def device(tmp_path):
    return Device(tmp_path, house())


def gives(device, name, values, room="attic", times=None, source="test"):
    count = len(values)
    columns = ([name] * count, times or [None] * count, list(values), [{"room": room}] * count)
    device.durable.read(Batch(source, *columns), device.now_us)
    device.tick(1)


def notices(device):
    """Return the notices, which the agent's line, its store and its topic have, too."""
    texts = device.core.report()["notices"]
    device.tick(20)
    line = line_of(device.core.report() | {"trouble": None})
    assert all(text in line for text in texts[:3])
    status = status_of(device.store)
    assert status["notices"] == texts
    assert all(text in plainly(status) for text in texts)
    return texts


def test_keys_that_differ_by_case_or_blanks_are_named_and_stay_two(device):
    for room in ("attic", "cellar", "Attic", "attic "):
        gives(device, "heat", [20], room)
    assert notices(device) == [
        f"{owner} has the keys 'attic' and {other!r}, which differ by case or blanks alone: each "
        "counts by itself"
        for owner in ("window by_room", "variable seen")
        for other in ("attic ",)
    ]
    assert {pane.key for pane, _ in device.rows()} == {"attic", "cellar", "Attic", "attic "}


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("heat", (21.4, 21.5, 70.7, 70.9, 70.5), "heat of room=attic went from 21.5 to 70.5, as"),
        (
            "power",
            (1500, 1520, 1.51, 1.5, 1.55, 0.3),
            "as a factor of 1000 does it: is it still in",
        ),
        ("power", (2, 2.1, 2050, 2080, 2100), "as a factor of 1/1000 does it"),
    ],
)
def test_a_jump_to_another_unit_is_named(device, name, values, says):
    for value in values:
        gives(device, name, [value])
    (text,) = notices(device)
    assert says in text
    gives(device, name, values[:1])  # it is back
    assert notices(device) == []


@pytest.mark.parametrize(
    "values", [(21, 70, 21, 70, 21), (20, 25, 30, 60), (0, 0, 0), (1500, 1.5, 1500), (5, 500, 80)]
)
def test_glitches_and_changes_are_no_other_unit(device, values):
    for value in values:
        gives(device, "power", [value])
        gives(device, "heat", [value])
    assert notices(device) == []


def test_digits_that_a_missing_resolution_takes_are_named(device):
    gives(device, "steps", [3, 4.0])
    assert notices(device) == []
    gives(device, "steps", [21.4])
    (text,) = notices(device)
    assert text.startswith("steps counts in whole numbers, 21.4 as 21: its event has no resolution")


@pytest.mark.parametrize("column_least", [1, 1_000])
def test_two_equal_readings_of_one_source_are_named_and_a_file_that_is_read_again_is_not(
    device, column_least
):
    device.core.intake.column_least = column_least
    gives(device, "power", [1, 2, 3], times=[NOW_US, NOW_US + 1, NOW_US + 2])
    device.restart()
    device.core.intake.column_least = column_least
    gives(device, "power", [1, 2, 3], times=[NOW_US, NOW_US + 1, NOW_US + 2])
    assert device.counted["repeated"] == 3
    assert notices(device) == []
    gives(device, "power", [4, 4], times=[NOW_US + 3] * 2)
    (text,) = notices(device)
    assert "one event, time and value came more than once from test: each counts once" in text


def test_a_source_that_never_gave_anything_is_named_until_it_does(tmp_path):
    device = Device(tmp_path, house())
    device.core.intake.sources.cursor("mqtt:kitchn")
    gives(device, "power", [1], source="test")
    assert device.core.report()["notices"] == []
    device.tick(EMPTY_US // SECOND_US)
    (text,) = notices(device)
    assert text.startswith("nothing ever came from mqtt:kitchn: lasp-edge doctor")
    gives(device, "power", [1], source="mqtt:kitchn")
    assert notices(device) == []
    device.restart()
    device.core.intake.sources.cursor("mqtt:kitchn")  # it gave something once
    device.tick(1)
    device.tick(EMPTY_US // SECOND_US)
    assert notices(device) == []


def test_status_tells_refusals_of_before_from_those_of_now(device):
    gives(device, "power", ["x", "y"])
    device.tick(20)
    assert "      2 power: not a number\n" in plainly(status_of(device.store)) + "\n"
    device.restart()
    device.tick(20)
    shown = plainly(status_of(device.store))
    assert "      2 power: not a number (none since the last start)\n" in shown + "\n"
    assert "to be sent" not in shown, "nobody keeps windows, and none is to be kept"
    gives(device, "power", ["x"])
    gives(device, "heat", [20])
    device.tick(20)
    shown = plainly(status_of(device.store))
    assert "      3 power: not a number (1 since the last start)\n" in shown + "\n"
    assert "1 pane entries, and no gateway or lander has answered yet" in shown


@pytest.mark.parametrize("column_least", [1, 1_000])
def test_times_of_another_zone_are_named_until_they_are_right(device, column_least):
    device.core.intake.column_least = column_least
    hour_us = 3_600 * SECOND_US

    def reads(*seconds_behind, source="test"):
        for behind in seconds_behind:
            device.tick(20)
            gives(device, "power", [1], times=[device.now_us - behind * SECOND_US], source=source)

    reads(3_601, 3_590)
    assert notices(device) == []  # two may be late by chance
    reads(3_600)
    (text,) = notices(device)
    assert text.startswith("the times of test are each 1 h behind the clock: is its --time-zone ")
    assert device.core.intake.low_us(device.now_us) < device.now_us - hour_us  # all wait for it
    reads(10, source="right")
    assert notices(device) == [text]
    reads(2)
    assert notices(device) == []
    reads(3_600, 5_400, 3_600, 5_400, 5_395, 5_402)
    assert [text[:35] for text in notices(device)] == ["the times of test are each 1.5 h be"]


def test_what_is_late_by_chance_or_was_recorded_is_in_no_other_zone(device):
    for behind in (3_600, 3_300, 2_900, 2_400, 1_800, 900, 899, 901, 1):  # a queue, and some late
        device.tick(20)
        times = [device.now_us - behind * SECOND_US]
        gives(device, "power", [behind], times=times)
    for second in range(20):  # a recording of an hour ago, quickly
        times = [device.now_us - (3_600 - second) * SECOND_US]
        gives(device, "power", [second], times=times)
    assert notices(device) == []
