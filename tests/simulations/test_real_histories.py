"""The command that runs the histories of real processes prints a line for each of them."""

from types import SimpleNamespace

import pytest

from simulations.histories import CHECKOUT, HISTORIES, HistoryLines


@pytest.mark.parametrize("file", HISTORIES)
def test_each_history_is_a_test_of_the_suite(file):
    assert (CHECKOUT / file).is_file()


def test_a_history_that_fails_is_a_line_with_its_reason(capsys):
    lines = HistoryLines()
    for outcome, when in (("passed", "setup"), ("passed", "call"), ("failed", "call")):
        lines.pytest_runtest_logreport(
            SimpleNamespace(
                when=when,
                passed=outcome == "passed",
                outcome=outcome,
                duration=1.25,
                nodeid="tests/test_clocks.py::test_a_clock_is_kept",
                longrepr="there\nE   it was left",
            )
        )
    assert (lines.ran, lines.failed) == (2, 1)
    ok, failed, reason = capsys.readouterr().out.splitlines()
    assert ok.split() == ["ok", "1.2", "s", "a", "clock", "is", "kept"]
    assert failed.startswith(" FAILED")
    assert reason.strip() == "E   it was left"
