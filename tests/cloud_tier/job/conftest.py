"""What the tests of the job share.

The clock of a job's host stands still: states that were known are compared with those read. And the
few rows of a test that go the way of many ones go there in one task, not in as many as those fill.
"""

import pytest

from cloud_tier.job.frames import MANY
from tests.cloud_tier.support_devices import BEGIN_US

DAY_US = 86_400_000_000


@pytest.fixture(autouse=True)
def clock_that_stands_still(monkeypatch):
    """Ten days after the fleets of these tests begin."""
    monkeypatch.setattr("cloud_tier.lake.coverage.host_us", lambda: BEGIN_US + 10 * DAY_US)


@pytest.fixture(autouse=True)
def one_task(monkeypatch):
    """A shuffle's 64 tasks take a second, whatever is in them."""
    monkeypatch.setitem(MANY, "spark.sql.shuffle.partitions", "1")
