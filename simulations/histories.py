"""Histories of real processes: what was attacked once stays a test, and prints a line here.

`python -m simulations.histories` runs them in a checkout, one after the other, and prints a line
for each: ok or FAILED, how long it took, and what happened. They are tests of the suite, and stand
there alone; words select some: `python -m simulations.histories gateway clock`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

CHECKOUT: Final = Path(__file__).parent.parent
HISTORIES: Final = (
    "tests/device_agent/gateway/test_process.py",
    "tests/device_agent/gateway/test_waiting_process.py",
    "tests/device_agent/gateway/test_controlled_process.py",
    "tests/device_agent/gateway/test_changed_process.py",
    "tests/device_agent/gateway/test_streams_process.py",
    "tests/device_agent/agent/timing/test_faked_clocks.py",
    "tests/device_agent/agent/test_fence_processes.py",
    "tests/device_agent/agent/test_guard_processes.py",
    "tests/device_agent/agent/test_runtime.py",
    "tests/device_agent/agent/acting/test_alert_processes.py",
    "tests/device_agent/agent/watching/test_watched_agent.py",
    "tests/device_agent/console/command/test_members_commands.py",
    "tests/end_to_end/test_two_lakes.py",
    "tests/end_to_end/test_strangers.py",
)
"""The files of tests in which real processes run; all but the last two need no Spark."""


class HistoryLines:
    """Prints a line for each test that ran, as pytest reports them.

    Attributes:
        failed: how many failed.
        ran: how many ran.
    """

    def __init__(self) -> None:
        self.failed = self.ran = 0

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Print what came of a test, once, or where it could not begin."""
        if report.when == "call" or not report.passed:
            outcome = {"passed": "ok", "skipped": "skipped"}.get(report.outcome, "FAILED")
            self.ran, self.failed = self.ran + 1, self.failed + (outcome == "FAILED")
            _print(f"{outcome:>7} {report.duration:6.1f} s  {sentence_of(report.nodeid)}")
            if outcome == "FAILED":
                _print(f"{'':>16}  {str(report.longrepr).strip().splitlines()[-1]}")


def sentence_of(nodeid: str) -> str:
    """Return what a test finds, as a sentence.

    >>> sentence_of("tests/agent/test_clocks.py::test_a_clock_that_jumps_is_left[1 h]")
    'a clock that jumps is left [1 h]'
    """
    name, _, case = nodeid.rpartition("::")[2].partition("[")
    return name.removeprefix("test_").replace("_", " ") + (f" [{case}" if case else "")


def main(words: Sequence[str] | None = None) -> int:
    """Run the histories; return 1 where one failed, or none was there."""
    import pytest  # noqa: PLC0415 - only who has a checkout has it

    wanted = list(sys.argv[1:] if words is None else words)
    lines = HistoryLines()
    options = [
        "-p",
        "no:terminal",
        "-o",
        "addopts=--import-mode=importlib",
        f"--rootdir={CHECKOUT}",
    ]
    options += ["-k", " or ".join(wanted)] if wanted else []
    pytest.main([*options, *[str(CHECKOUT / each) for each in HISTORIES]], plugins=[lines])
    _print(f"{lines.ran - lines.failed} of {lines.ran} histories end as they should")
    return bool(lines.failed or not lines.ran)


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    sys.exit(main())
