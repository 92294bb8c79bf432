"""What most tests of agents begin with: one in this process, or a stage for real ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.device_agent.agents import Device
from tests.device_agent.support_stage import Stage


@pytest.fixture
def device(tmp_path):
    """An agent of the greenhouse that has ticked once."""
    device = Device(tmp_path)
    device.tick()
    return device


@pytest.fixture(autouse=True)
def _end_of_devices() -> Iterator[None]:
    """Kill the devices that a test has started, and not killed."""
    before = set(Device.running)
    yield
    for device in Device.running - before:
        device.kill()


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A broker, a lander, and a directory where agents are started."""
    stage = Stage(tmp_path, monkeypatch)
    yield stage
    stage.close()
