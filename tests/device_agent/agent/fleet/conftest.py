"""What tests of Home Assistant's entities share."""

import pytest

from tests.device_agent.agent.fleet.home import Home


@pytest.fixture
def home():
    return Home()


@pytest.fixture
def jinja():
    return pytest.importorskip("jinja2", reason="needs the extra `dev`").Environment()
