"""The lander as a child process of the job: started, watched, started again, stopped."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

log = logging.getLogger(__name__)

_SHORTEST_WAIT_S: Final = 0.5
"""In seconds: the wait before the first restart. It doubles with every death in a row."""
_LONGEST_WAIT_S: Final = 30.0
"""In seconds: where the doubling ends, so that a repaired broker is found within half a minute."""
_STEADY_S: Final = 30.0
"""In seconds: a lander that ran for this long died of something new; the wait starts over."""
_STOPS_WITHIN_S: Final = 20.0
"""In seconds: how long a stopped lander may take to land its segment, ten times what one takes."""


class LanderChild:
    """A `lasp-edge lander` that is kept running.

    It is its own process group, so that Ctrl-C reaches the job alone, which then stops it; and it
    ends by itself when the job is gone.

    Args:
        arguments: what follows `lasp-edge lander` on the command line.
        secrets: variables that are added to its environment, where no other user can read them.
    """

    def __init__(self, arguments: Sequence[str], secrets: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ | (secrets or {})
        self._command = [sys.executable, "-m", "cloud_tier.command.lander", *arguments]
        self._command += ["--parent", str(os.getpid())]
        self._process: subprocess.Popen[bytes] | None = None
        self._wait_s = _SHORTEST_WAIT_S
        self._started_s = 0.0
        self._starts_s = 0.0

    @property
    def runs(self) -> bool:
        """Whether the process runs, so that it lands its segment when it is stopped."""
        return self._process is not None and self._process.poll() is None

    def watch(self, now_s: float) -> None:
        """Start the lander if it does not run; wait longer each time if it keeps dying."""
        if self.runs:
            return
        if self._process is not None:
            self._died(self._process.returncode, now_s)
        if now_s >= self._starts_s:
            self._process = subprocess.Popen(  # noqa: S603 - every part is our own
                self._command, process_group=0, env=self._environment
            )
            self._started_s = now_s

    def stop(self, within_s: float = _STOPS_WITHIN_S) -> None:
        """Have the lander land its segment, and wait until it has ended.

        Args:
            within_s: in seconds; then it is killed, and lands its segment at the next start.
        """
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _died(self, code: int, now_s: float) -> None:
        steady = now_s - self._started_s >= _STEADY_S
        self._wait_s = _SHORTEST_WAIT_S if steady else min(2 * self._wait_s, _LONGEST_WAIT_S)
        self._starts_s = now_s + self._wait_s
        self._process = None
        log.warning("the lander ended with code %d; it is started again", code)
