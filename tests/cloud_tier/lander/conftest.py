"""A lander on a log and a lake of its own."""

import pytest

from tests.cloud_tier.frames import Station
from tests.cloud_tier.support_devices import rooms


@pytest.fixture
def station(tmp_path):
    made = Station(tmp_path, rooms())
    yield made
    made.log.release()
