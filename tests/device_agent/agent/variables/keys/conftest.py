"""The agent that the tests of keys are about."""

import pytest

from tests.device_agent.agents import Device, rooms


@pytest.fixture
def device(tmp_path):
    """An agent that has a set of samples for each room."""
    device = Device(tmp_path, rooms())
    yield device
    device.kill()
