"""The clock of a job's host stands still: states that were known are compared with those read."""

import pytest

from tests.cloud_tier.support_devices import BEGIN_US

DAY_US = 86_400_000_000


@pytest.fixture(autouse=True)
def clock_that_stands_still(monkeypatch):
    """Ten days after the fleets of these tests begin."""
    monkeypatch.setattr("cloud_tier.lake.coverage.host_us", lambda: BEGIN_US + 10 * DAY_US)
