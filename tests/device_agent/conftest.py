"""The agent that most tests of agents are about."""

import pytest

from tests.device_agent.agents import Device


@pytest.fixture
def device(tmp_path):
    """An agent of the greenhouse that has ticked once."""
    device = Device(tmp_path)
    device.tick()
    yield device
    device.kill()
