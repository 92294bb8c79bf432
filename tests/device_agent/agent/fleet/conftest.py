"""What tests of Home Assistant's entities share."""

from datetime import UTC, datetime

import pytest

from tests.device_agent.agent.fleet.home import Home


@pytest.fixture
def home():
    return Home()


@pytest.fixture
def jinja():
    found = pytest.importorskip("jinja2", reason="needs the extra `dev`").Environment()
    found.filters["as_datetime"] = lambda time_s: datetime.fromtimestamp(time_s, UTC)
    return found
