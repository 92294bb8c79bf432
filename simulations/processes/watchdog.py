"""Ends the processes of a demo that was killed before it could tidy up itself.

The demo holds the only other end of this process's standard input. Whatever becomes of the demo,
SIGKILL included, that pipe ends then; the sessions that were started and not yet ended are killed,
and the demo's folder, the argument, is removed. It works wherever pipes do, and lives in a session
of its own, so that Ctrl-C does not reach it.

Each process that the demo starts leads a session. Its own children stay in that session,
even in a process group of its own, as Spark's JVM and the lander are.

Lines: `started SESSION`, `ended SESSION`.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

_PASSES = 2  # a process may start another one while the first pass looks around
_ATTEMPTS = 20
_PAUSE_S = 0.1


def left_behind(lines: Iterable[str]) -> set[int]:
    """Return the sessions that are still there after `lines`.

    >>> left_behind(["started 71", "started 72", "ended 71"])
    {72}
    """
    sessions: set[int] = set()
    for line in lines:
        verb, session = line.split()
        (sessions.add if verb == "started" else sessions.discard)(int(session))
    return sessions


def kill_sessions(sessions: Collection[int]) -> None:
    """Kill every process of these sessions."""
    for _ in range(_PASSES):
        for pid in _processes():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getsid(pid) in sessions:
                    os.kill(pid, signal.SIGKILL)


def _processes() -> Iterator[int]:
    """Yield the ids of all processes."""
    listed = [entry.name for entry in Path("/proc").glob("[0-9]*")]
    if not listed:
        ran = subprocess.run(["/bin/ps", "-A", "-o", "pid="], capture_output=True, check=False)
        listed = ran.stdout.decode().split()
    yield from map(int, listed)


def remove(folder: Path) -> None:
    """Remove a folder, whose files may be written to a moment longer."""
    for _ in range(_ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    kill_sessions(left_behind(sys.stdin))
    remove(Path(sys.argv[1]))
