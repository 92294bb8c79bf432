"""Handlers of events that ask what a fold is worth: what this device knew, and nothing more."""

import pytest

from crdts import GSet
from lasp_edge import Program, folds
from tests.device_agent.agent.acting.support_acting import House, peer_says, run
from tests.device_agent.agents import Device


@pytest.fixture
def start(tmp_path):
    return lambda house: Device(tmp_path, house.plan())


def asking(house, fold, key=None):
    """Let a handler of each reading keep what a fold is worth."""

    @house.program.on_event(house.temperature)
    def asked(event, update):
        house.seen.append(update.value(fold, key) if key else update.value(fold))

    return house


def test_a_reading_can_be_compared_with_the_fleets_mean(start):
    house = House()

    @house.program.on_event(house.temperature)
    def compared(event, update):
        mean = update.value(house.everywhere)
        if mean is not None and event.value > mean.number + 2:
            update(house.notices, GSet.add, f"{event.value} {mean.number} {mean.devices}")

    device = start(house)
    device.read([30.0])
    run(device, 1)
    peer_says(device, 1, 1, 200)
    run(device, 1)
    device.read([26.9, 27.1])
    run(device, 1)
    assert device.core.variables.shared()["notices"] == {"27.1 25.0 ('pi-1', 'pi-2')"}


def test_nothing_is_known_before_the_first_reading(start):
    house = House()
    asking(house, house.here)
    device = start(house)
    device.read([20.0])
    run(device, 1)
    device.read([21.0])
    assert [value and value.number for value in house.seen] == [None, 20.0]


def test_a_fleet_that_was_not_heard_yet_is_not_settled(start):
    house = House()
    asking(house, house.everywhere)
    device = start(house)
    for _ in range(6):
        device.read([20.0])
        run(device, 1)
    assert [value and value.settled for value in house.seen] == [
        None,
        False,
        False,
        True,
        True,
        True,
    ]


def test_of_a_fold_with_keys_the_key_of_the_event_is_meant(start):
    house = House(bound=1, key=lambda event: event.tags["room"])
    asking(house, house.everywhere)
    device = start(house)
    for value, room in ((20.0, "attic"), (10.0, "cellar"), (21.0, "attic"), (11.0, "cellar")):
        device.read([value], tags={"room": room})
        run(device, 1)
    assert [value and (value.key, value.number) for value in house.seen] == [
        None,
        None,
        ("attic", 20.0),
        ("cellar", 10.0),
    ]


def test_another_key_can_be_asked_for(start):
    house = House(bound=1, key=lambda event: event.tags["room"])
    asking(house, house.here, key="attic")
    device = start(house)
    for value, room in ((20.0, "attic"), (10.0, "cellar")):
        device.read([value], tags={"room": room})
        run(device, 1)
    assert [value and value.number for value in house.seen] == [None, 20.0]


def test_what_is_no_fold_refuses_the_reading_with_the_reason(start):
    house = House()
    asking(house, house.samples)
    device = start(house)
    device.read([20.0])
    (reason,) = [name for name in device.counted if name.startswith("refused: ")]
    assert "update.value: 'samples' is not made by fold or fold_dynamic" in reason


def test_a_handler_that_reads_a_value_changes_no_variables_meaning():
    plain, reading = House(), House()
    asking(reading, reading.everywhere)
    reading.on_value(reading.here)
    reading.program.alert("too warm", reading.everywhere, above=28)
    ours, theirs = reading.plan(), plain.plan()
    assert ours.reads == {"temperature": ("everywhere",)}
    assert ours.meanings["samples"] == theirs.meanings["samples"]
    assert ours.dynamic_folds["everywhere"].stream == theirs.dynamic_folds["everywhere"].stream
    assert ours.digest == theirs.digest


def test_a_value_handler_may_add_samples_that_its_code_names(start):
    house = House(bound=1)
    program: Program = house.program
    extremes = program.declare_dynamic(
        house.samples.bottom.bottom(), "extremes", measures="temperature"
    )
    high = program.fold(extremes, folds.mean(), "kept")

    @program.on_value(house.here, above=28)
    def keep(value, update):
        update(extremes, "add", value.number, 0)

    device = start(house)
    device.read([29.0])
    run(device, 5)
    assert device.core.results.local()[high.name][""].partial == (1, 290)
