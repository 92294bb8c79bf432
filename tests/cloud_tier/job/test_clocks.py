"""A lander with a wrong clock, in a lake: devices that are there stay in, and results go on."""

import pytest

from cloud_tier.job.maintenance import maintain
from cloud_tier.lake import coverage
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, Device, rooms, row, tick

pytestmark = pytest.mark.spark

PROGRAM = rooms()
HOUR_US = 3_600 * SECOND_US
YEAR_US = 365 * 24 * HOUR_US


def beats(devices, at_us):
    """Return the rows of devices that promise the time, and of a lander that runs well."""
    promises = [device.promise(at_us, at_us) for device in devices]
    return [*promises, tick(at_us // SECOND_US, at_us, BEGIN_US - HOUR_US)]


@pytest.fixture
def clock(monkeypatch):
    """The clock of the job's host, as a list of one time."""
    now_us = [BEGIN_US + 10 * SECOND_US]
    monkeypatch.setattr(coverage, "host_us", lambda: now_us[0])
    return now_us


def test_a_lander_that_was_a_year_ahead_holds_nothing_up(spark, tmp_path, clock):
    """Also after maintenance and a restart; its log is lost, so it never corrects itself."""
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    devices = [Device(PROGRAM, f"pi-{at}") for at in range(3)]
    lake.step(beats(devices, clock[0]))
    ahead_us = clock[0] + YEAR_US
    lake.step([tick(1, ahead_us, ahead_us - 24 * SECOND_US) | {"lander": "ahead"}])
    lake.step([tick(2, ahead_us, BEGIN_US - HOUR_US) | {"lander": "jumped"}])
    for is_kept_up in (False, True):
        if is_kept_up:
            maintain(spark, lake.job)
            lake.restart()
        clock[0] += 10 * SECOND_US
        outcome = lake.step(beats(devices, clock[0]))
        assert outcome.coverage.excluded == ()
        assert outcome.coverage.frontier == clock[0]


def test_without_a_clock_that_is_right_an_operator_retires_the_lander(spark, tmp_path, clock):
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    devices = [Device(PROGRAM, f"pi-{at}") for at in range(3)]
    at_us, clock[0] = clock[0], clock[0] + 2 * YEAR_US
    lake.step(beats(devices, at_us))
    outcome = lake.step([tick(1, at_us + YEAR_US) | {"lander": "ahead"}])
    assert outcome.coverage.excluded == ("pi-0", "pi-1", "pi-2")
    outcome = lake.step([row("member", "ahead", 0, 0, 0, control=1, retired=True)])
    assert outcome.coverage.excluded == ()
    lake.restart()
    outcome = lake.step(beats(devices, at_us + SECOND_US))
    assert outcome.coverage.frontier == at_us + SECOND_US
