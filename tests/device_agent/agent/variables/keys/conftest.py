"""The agent that the tests of keys are about."""

import pytest

from tests.device_agent.agents import Device, rooms


@pytest.fixture
def device(tmp_path):
    """An agent that has a set of samples for each room."""
    return Device(tmp_path, rooms())
