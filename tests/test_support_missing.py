"""What is missing is skipped, or fails where everything is required."""

import pytest

from tests.support_missing import REQUIRE_ALL, lacks


def test_a_missing_part_skips_the_test_and_says_why(monkeypatch):
    monkeypatch.delenv(REQUIRE_ALL, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no broker"):
        lacks("no broker")


def test_a_missing_part_fails_the_test_where_all_is_required(monkeypatch):
    monkeypatch.setenv(REQUIRE_ALL, "1")
    with pytest.raises(pytest.fail.Exception, match="no broker"):
        lacks("no broker")
