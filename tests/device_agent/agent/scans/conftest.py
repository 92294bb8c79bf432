"""A device with streams, closed in the end."""

import pytest

from tests.device_agent.agent.fleet.conftest import jinja  # noqa: F401 - a fixture
from tests.device_agent.agent.scans.support_streams import Metered


@pytest.fixture
def begin(tmp_path):
    """Return a function that makes the device; it is closed in the end."""
    made = []

    def device(**more):
        made.append(Metered(tmp_path, **more))
        return made[-1]

    yield device
    for each in made:
        each.kill()
