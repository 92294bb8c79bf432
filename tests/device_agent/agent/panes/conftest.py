"""The agent that the tests of panes are about."""

import pytest

from tests.device_agent.agents import Device


@pytest.fixture
def device(tmp_path):
    """An agent of the greenhouse that has just started: nothing was published yet."""
    return Device(tmp_path)
