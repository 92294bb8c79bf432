"""The browser in which the tests of a module look at pages."""

import pytest

from tests.device_agent.console.dashboard.support_browser import chromium


@pytest.fixture(scope="module")
def driver():
    made = chromium()
    yield made
    made.quit()
