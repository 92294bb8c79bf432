"""The agent's line for a person says what it refused, why, and who agrees."""

import pytest

from device_agent.command.plain_report import line_of, nothing_accepted
from device_agent.intake.batch import Batch
from tests.device_agent.agents import Device


@pytest.fixture
def device(tmp_path):
    made = Device(tmp_path)
    yield made
    made.kill()


def reported(device):
    return device.core.report() | {"trouble": None}


def refuse(device, **reasons):
    named = {name.replace("_", " "): times for name, times in reasons.items()}
    device.durable.read(Batch("s", [], [], [], [], refused=named), device.now_us)
    device.tick()


def test_refused_readings_are_told_with_the_reason_of_most(device):
    refuse(device, no_field_of_a_sort=100)
    assert line_of(reported(device)).startswith(
        "pi-1: 0 readings; 100 refused: no field of a sort; local_average: mean -; "
    )
    refuse(device, not_JSON=300)
    assert "400 refused: not JSON (300), and others" in line_of(reported(device))


def test_what_is_in_the_future_or_too_late_is_told(device):
    day_us = 86_400_000_000
    for time_us in (device.now_us, device.now_us + day_us, device.now_us - 8 * day_us):
        device.take([20.0], [time_us], [{}])
    device.tick()
    line = line_of(reported(device))
    assert "pi-1: 1 readings; 1 too late (--retain-days); 1 refused: ahead of this" in line


def test_a_device_that_is_alone_agrees_with_nobody(device):
    device.take([20.0], [None], [{}])
    device.settle()
    value = reported(device)["values"]["global_average"]
    assert "over 1 device (alone)" in line_of(reported(device)) or not value["settled"]
    both = {"devices": 2, "settled": True, "except": [], "parts": {"mean": 21.5}}
    words = {
        "agreed": both,
        "not yet": {**both, "settled": False},
        "missing": {**both, "except": ["attic"]},
        "keys": {"devices": 2, "settled": True, "except": [], "keys": {"a": 1}},
        "local": {"parts": {"mean": None, "count": 12_345_678}},
    }
    line = line_of(reported(device) | {"values": words})
    assert "agreed: mean 21.5 over 2 devices (agreed); not yet: mean 21.5 over 2 devices;" in line
    assert "missing: mean 21.5 over 2 devices (not reached: attic);" in line
    assert "keys: 1 keys over 2 devices (agreed); local: mean -, count 1.23457e+07;" in line


def test_why_nothing_was_accepted(device):
    assert nothing_accepted(reported(device)) == "no reading was accepted: the sources gave none"
    refuse(device, no_event=3)
    assert nothing_accepted(reported(device)) == "no reading was accepted: 3 refused: no event"
    device.take([20.0], [None], [{}])
    device.tick()
    assert nothing_accepted(reported(device)) == ""
