"""What a test does where the machine lacks a part: skip and say why, or fail if all is required."""

import os
from typing import NoReturn

import pytest

REQUIRE_ALL = "LASP_EDGE_REQUIRE_ALL"


def lacks(reason: str) -> NoReturn:
    """End the test, because this machine lacks a part that it needs.

    It is skipped, or fails where the environment has LASP_EDGE_REQUIRE_ALL=1.

    Args:
        reason: what is missing, and what would bring it.
    """
    __tracebackhide__ = True
    if os.environ.get(REQUIRE_ALL) == "1":
        pytest.fail(f"{reason} ({REQUIRE_ALL}=1)")
    pytest.skip(reason)
