"""A device with streams."""

from functools import partial

import pytest

from tests.device_agent.agent.fleet.conftest import jinja  # noqa: F401 - a fixture
from tests.device_agent.agent.scans.support_streams import Metered


@pytest.fixture
def begin(tmp_path):
    """Return a function that makes the device."""
    return partial(Metered, tmp_path)
